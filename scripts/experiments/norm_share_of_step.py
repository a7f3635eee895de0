"""What share of a training step, and of a decoding step, are the norms?

The decoder of the page on the Transformer block, with its norms exchanged: LayerNorm
or RMSNorm, as models write it (a chain of operations), as torch fuses it, and by the
page's kernels; once in eager mode, once compiled as a whole. A model without norms
does everything else. The share of the norms is what they add to its time.

A training step is forward and backward pass on full sequences, without the
optimizer; a decoding step is one new token for each sequence, without a cache of
keys and values, so that reading the weights is what it does.
"""

from functools import partial
from itertools import product

from scripts.measure.design import Design
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

DEVICE = "gpu"
SEEDS = (0,)
METHOD = (
    "one decoder a kind of norm, equal weights; a step of the experiment times the "
    "decoder without norms twice beside RMSNorm and LayerNorm of one implementation, "
    "all in turn every round; share: time with norms less time without, over time "
    "with, by medians of one step; training: wall clock around two forward and "
    "backward passes and one synchronization, the loss never compiled; decoding: a "
    "CUDA graph"
)
BARE = ("none", "none_again")
FAMILIES = ("rms", "layer")
MADE = ("unfused", "torch", "ours")
NORMS = tuple(f"{family}_{made}" for family in FAMILIES for made in MADE)
MODES = ("eager", "compiled")
STEPS = ("training", "decoding")
ROUNDS, CALLS = 16, 2
COSTS = {"eager": (15, 2), "compiled": (50, 20)}  # seconds, assumed
SHOWN = ("d", "blocks", "batch", "time", "sequences")
SIZES = {
    "tiny": dict(
        d=16, blocks=1, heads=2, kv_heads=1, width=8, hidden=24, vocabulary=32,
        batch=2, time=8, sequences=2,
    ),
    "small": dict(
        d=1024, blocks=4, heads=8, kv_heads=2, width=128, hidden=2816,
        vocabulary=32000, batch=4, time=1024, sequences=8,
    ),
    "full": dict(
        d=4096, blocks=4, heads=32, kv_heads=8, width=128, hidden=14336,
        vocabulary=32000, batch=2, time=4096, sequences=8,
    ),
}  # fmt: skip


def norm_class(kind: str):
    """The module class that takes the place of an RMSNorm: Norm(rms_norm)."""
    from torch import nn
    from torch.nn import functional as F

    from snippets.layer_norm.reference import layer_norm as layer_unfused
    from snippets.rms_norm.reference import rms_norm as rms_unfused
    from snippets.triton_layer_norm.operator import layer_norm as layer_ours
    from snippets.triton_rms_norm.operator import rms_norm as rms_ours

    functions = {
        "rms_unfused": lambda x, own: rms_unfused(x, own.gain, own.eps),
        "rms_torch": lambda x, own: F.rms_norm(x, own.gain.shape, own.gain, own.eps),
        "rms_ours": lambda x, own: rms_ours(x, own.gain, own.eps),
        "layer_unfused": lambda x, own: layer_unfused(x, own.gain, own.bias, own.eps),
        "layer_torch": lambda x, own: F.layer_norm(
            x, own.gain.shape, own.gain, own.bias, own.eps
        ),
        "layer_ours": lambda x, own: layer_ours(x, own.gain, own.bias, own.eps),
    }
    function = functions.get(kind)

    class Norm(nn.Module):
        def __init__(self, norm) -> None:
            super().__init__()
            self.gain, self.eps = norm.gain, norm.eps
            if kind.startswith("layer"):
                self.bias = nn.Parameter(norm.gain.detach() * 0)

        def forward(self, x):
            return x if function is None else function(x, self)

    return Norm


def model(kind: str, setting: dict):
    """The decoder with all its norms of one kind, the same weights for each."""
    import torch

    from snippets.rms_norm.reference import RMSNorm
    from snippets.transformer_block.decoder import Decoder, Sizes

    cuda = torch.cuda.is_available()
    sizes = {k: v for k, v in setting.items() if k in Sizes.__annotations__}
    torch.manual_seed(0)
    with torch.device("cuda" if cuda else "cpu"):
        decoder = Decoder(Sizes(**sizes))
    make = norm_class(kind.removesuffix("_again"))
    for parent in list(decoder.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, RMSNorm):
                setattr(parent, name, make(child))
    return decoder.to(torch.bfloat16) if cuda else decoder


def call(kind: str, which: str, mode: str, setting: dict):
    """A training or a decoding step of one model, as a call without arguments."""
    import torch
    from torch.nn import functional as F

    decoder = run = model(kind, setting)
    device = next(decoder.parameters()).device
    generator = torch.Generator().manual_seed(0)
    shape = (setting["batch"], setting["time"] + 1)
    vocabulary = setting["vocabulary"]
    text = torch.randint(vocabulary, shape, generator=generator).to(device)
    tokens, following = text[:, :-1].contiguous(), text[:, 1:].flatten()
    new = text[:1, :1].expand(setting["sequences"], 1).contiguous()
    if mode == "compiled":
        run = torch.compile(decoder, fullgraph=True, dynamic=False)

    def training():
        logits = run(tokens)
        F.cross_entropy(logits.flatten(0, 1).float(), following).backward()
        for parameter in decoder.parameters():
            parameter.grad = None

    def decoding():
        with torch.no_grad():
            return run(new)

    return {"training": training, "decoding": decoding}[which]


def working(kinds, which: str, mode: str, setting: dict) -> tuple[dict, dict]:
    """Kind -> its call, compiled if it has to be; kind -> why it cannot run."""
    import torch

    if mode == "compiled":  # models of earlier steps count towards the limit
        torch._dynamo.reset()
        torch._dynamo.config.recompile_limit = 64
    finish = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    found, failed = {}, {}
    for kind in kinds:
        try:
            work = call(kind, which, mode, setting)
            work()
            finish()
            found[kind] = work
        except Exception as error:
            finish()  # a device that is broken for all ends the run here
            line = (str(error).strip().splitlines() or [""])[0]
            failed[kind] = f"{type(error).__name__}: {line}"[:200]
    return found, failed


def step_times(which: str, mode: str, made: str, size: str) -> list[dict]:
    """Times of RMSNorm and LayerNorm of one implementation, and of no norms."""
    from scripts.measure.kernels import timing

    setting = SIZES[size]
    rounds = 2 if size == "tiny" else ROUNDS
    kinds = (*BARE, *(f"{family}_{made}" for family in FAMILIES))
    found, failed = working(kinds, which, mode, setting)
    providers = {kind: [work] for kind, work in found.items()}
    if which == "decoding":
        timed = timing.device_times(providers, rounds, failed)
        times = {kind: (each.method, each.seconds) for kind, each in timed.items()}
    else:
        timed = timing.call_times(providers, rounds, CALLS, failed)
        times = {kind: ("caller", seconds) for kind, seconds in timed.items()}
    sizes = {name: setting[name] for name in SHOWN}
    return [
        {
            "step": which,
            "mode": mode,
            "made": made,
            "norm": kind,
            "method": times[kind][0] if kind in times else None,
            "seconds": times[kind][1] if kind in times else None,
            **sizes,
            "status": "ok" if kind in times else "failed",
            "why": failed.get(kind),
        }
        for kind in kinds
    ]


def measure(size: str) -> list[Step]:
    """One step is one kind of step, in one mode, with norms of one implementation."""
    from scripts.measure.kernels import steps

    modes = MODES[:1] if size == "tiny" else MODES
    return [
        Step(
            {"step": which, "mode": mode, "made": made},
            partial(step_times, which, mode, made, size),
            cost=COSTS[mode][STEPS.index(which)],
            turn=steps.LAST if mode == "compiled" else steps.MODELS,
        )
        for mode in modes
        for which in STEPS
        for made in MADE
    ]


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(
    says=("none",),
    arms=(*BARE, *NORMS),
    **design_words(__file__),
)


# What the page says -------------------------------------------------------

MISSING = "—"  # not measured, or it failed


def _times(record, step: str, mode: str, made: str) -> dict[str, list[float]]:
    """Kind of norm -> seconds, where all were taken by the method of the bare model."""
    rows = record.select(step=step, mode=mode, made=made, status="ok")
    methods = [row["method"] for row in rows if row["norm"] == BARE[0]]
    return {row["norm"]: row["seconds"] for row in rows if row["method"] in methods}


def _share(record, step: str, mode: str, norm: str) -> float | None:
    """Of the time with norms, what they add to the model without any."""
    from scripts.measure.spread import ratio

    times = _times(record, step, mode, norm.partition("_")[2])
    return 1 - ratio(times["none"], times[norm]) if norm in times else None


def _percent(share: float | None) -> str:
    from scripts.measure.spread import number

    return MISSING if share is None else f"{number(100 * share, 1)}%"


def _milliseconds(seconds: list[float]) -> str:
    from statistics import median

    return f"{1e3 * median(seconds):.2f} ms" if seconds else MISSING


def facts(record) -> dict[str, str]:
    from scripts.measure.spread import noise_floor, ratio_interval

    first = record.rows[0]
    found = {name: str(first[name]) for name in SHOWN}
    found["machine"] = record.provenance["device"]["name"]
    found["failed"] = str(len(record.select(status="failed")))
    intervals = []
    for mode, step in product(MODES, STEPS):
        groups = [_times(record, step, mode, made) for made in MADE]
        bare = [s for times in groups for s in times.get("none", [])]
        found[f"{step}_{mode}_bare"] = _milliseconds(bare)
        intervals += [
            ratio_interval(times["none_again"], times["none"])
            for times in groups
            if "none_again" in times
        ]
        for norm in NORMS:
            share = _share(record, step, mode, norm)
            found[f"{step}_{mode}_{norm}"] = _percent(share)
    found["floor"] = _percent(noise_floor(intervals) if intervals else None)
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from scripts.measure import figures

    figure, axes = figures.new_figure(words, record, rows=2, height=7.4, sharex=True)
    modes = [mode for mode in MODES if record.select(mode=mode)]
    for axis, step in zip(axes, STEPS, strict=True):
        for series, mode in enumerate(modes):
            shift = 0.4 * (series - (len(modes) - 1) / 2)
            shares = [_share(record, step, mode, norm) for norm in NORMS]
            heights = [n + shift for n, s in enumerate(shares) if s is not None]
            widths = [100 * s for s in shares if s is not None]
            colour = figures.style(series)["color"]
            axis.barh(heights, widths, height=0.36, color=colour, label=words[mode])
        axis.axvline(0, color=figures.MUTED, linewidth=0.8)
        axis.set_yticks(range(len(NORMS)), [words[norm] for norm in NORMS])
        axis.set_ylim(len(NORMS) - 0.5, -0.5)
        axis.set_title(words[step])
    axes[-1].set_xlabel(words["share"])
    figures.legend(figure)
    figures.footer(figure, record, words, words["band"])
    return figure
