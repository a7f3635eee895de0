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

from scripts.measure.records import Step

DEVICE = "gpu"
SEEDS = (0,)
METHOD = (
    "one model a kind of norm, equal weights; medians over rounds in which all kinds "
    "take their turn; share: time with norms less time without, over time with; "
    "training: CUDA events around forward and backward pass, decoding: a CUDA graph"
)
NORMS = (
    "none",
    "none_again",
    "rms_unfused",
    "rms_torch",
    "rms_ours",
    "layer_unfused",
    "layer_torch",
    "layer_ours",
)
MODES = ("eager", "compiled")
STEPS = ("training", "decoding")
ROUNDS = 30
SIZES = {
    "tiny": dict(
        d=16, blocks=2, heads=2, kv_heads=1, width=8, hidden=24, vocabulary=32,
        batch=2, time=8, sequences=2,
    ),
    "small": dict(
        d=1024, blocks=8, heads=8, kv_heads=2, width=128, hidden=2816,
        vocabulary=32000, batch=4, time=1024, sequences=8,
    ),
    "full": dict(
        d=4096, blocks=8, heads=32, kv_heads=8, width=128, hidden=14336,
        vocabulary=32000, batch=2, time=4096, sequences=8,
    ),
}  # fmt: skip


def norm_class(kind: str):
    """A module class with a gain (and a bias): Norm(d, eps)."""
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

    torch.manual_seed(0)
    sizes = {k: v for k, v in setting.items() if k in Sizes.__annotations__}
    decoder = Decoder(Sizes(**sizes))
    make = norm_class(kind.removesuffix("_again"))
    for parent in list(decoder.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, RMSNorm):
                setattr(parent, name, make(child))
    cuda = torch.cuda.is_available()
    return decoder.to("cuda", torch.bfloat16) if cuda else decoder


def calls(kind: str, mode: str, setting: dict):
    """(training, decoding): two calls without arguments."""
    import torch
    from torch.nn import functional as F

    decoder = model(kind, setting)
    device = next(decoder.parameters()).device
    generator = torch.Generator().manual_seed(0)
    shape = (setting["batch"], setting["time"] + 1)
    vocabulary = setting["vocabulary"]
    text = torch.randint(vocabulary, shape, generator=generator).to(device)
    new = text[:1, :1].expand(setting["sequences"], 1).contiguous()
    run = torch.compile(decoder, fullgraph=True) if mode == "compiled" else decoder

    def training():
        logits = run(text[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), text[:, 1:].flatten())
        loss.backward()
        for parameter in decoder.parameters():
            parameter.grad = None

    def decoding():
        with torch.no_grad():
            return run(new)

    return training, decoding


def step_times(mode: str, which: str, size: str) -> list[dict]:
    """Times of all kinds of norms in one mode, interleaved."""
    import torch

    from scripts.measure.kernels import timing

    setting = SIZES[size]
    rounds = 2 if size == "tiny" else ROUNDS
    index = STEPS.index(which)
    providers = {kind: [calls(kind, mode, setting)[index]] for kind in NORMS}
    if which == "decoding" or not torch.cuda.is_available():
        timed = timing.device_times(providers, rounds)
        found = {kind: (each.method, each.seconds) for kind, each in timed.items()}
    else:
        timed = timing.call_times(providers, rounds, calls=3)
        found = {kind: ("caller", seconds) for kind, seconds in timed.items()}
    return [
        {
            "step": which,
            "mode": mode,
            "norm": kind,
            "method": method,
            "seconds": seconds,
            **{name: setting[name] for name in ("d", "blocks", "batch", "time")},
            **{"sequences": setting["sequences"], "status": "ok", "why": None},
        }
        for kind, (method, seconds) in found.items()
    ]


def measure(size: str) -> list[Step]:
    """One step is one kind of step in one mode, with every kind of norm."""
    modes = MODES[:1] if size == "tiny" else MODES
    return [
        Step({"step": which, "mode": mode}, partial(step_times, mode, which, size))
        for mode in modes
        for which in STEPS
    ]


# What the page says -------------------------------------------------------


def _seconds(record, step: str, mode: str, norm: str) -> list[float]:
    found = record.select(step=step, mode=mode, norm=norm)
    return found[0]["seconds"] if found else []


def _modes(record) -> list[str]:
    return [mode for mode in MODES if any(r["mode"] == mode for r in record.rows)]


def _share(record, step: str, mode: str, norm: str) -> float:
    """Of the time with norms, what they add to the model without any."""
    from scripts.measure.spread import ratio

    bare = _seconds(record, step, mode, "none")
    return 1 - ratio(bare, _seconds(record, step, mode, norm))


def facts(record) -> dict[str, str]:
    from scripts.measure.kernels.report import microseconds
    from scripts.measure.spread import noise_floor, ratio_interval

    first = record.rows[0]
    found = {
        name: str(first[name]) for name in ("d", "blocks", "batch", "time", "sequences")
    }
    found["machine"] = record.provenance["device"]["name"]
    intervals = []
    for mode in _modes(record):
        for step in STEPS:
            pair = [_seconds(record, step, mode, n) for n in ("none_again", "none")]
            intervals.append(ratio_interval(*pair))
            bare = _seconds(record, step, mode, "none")
            found[f"{step}_{mode}_bare"] = microseconds(bare)
            for norm in NORMS[2:]:
                share = 100 * _share(record, step, mode, norm)
                found[f"{step}_{mode}_{norm}"] = f"{share:.1f} %".replace("-", "−")
    found["floor"] = f"{100 * noise_floor(intervals):.1f} %"
    return found


WORDS = {
    "zh": {
        "title": "归一化占一步的多少时间",
        "training": "训练步",
        "decoding": "解码步",
        "eager": "eager",
        "compiled": "整体编译",
        "rms_unfused": "RMSNorm，未融合",
        "rms_torch": "RMSNorm，torch",
        "rms_ours": "RMSNorm，本站的算子",
        "layer_unfused": "LayerNorm，未融合",
        "layer_torch": "LayerNorm，torch",
        "layer_ours": "LayerNorm，本站的算子",
        "share": "占这一步的时间（%）",
        "band": "与去掉归一化的同一模型相比。噪声下限 {floor}。",
        "caption": (
            "{machine} 上一个 {blocks} 层、d = {d} 的解码器：归一化占训练步和解码步的"
            "时间，分 eager 与整体编译。"
        ),
        "alt": (
            "两幅条形图，横轴是归一化占一步时间的百分比，每种归一化一条。"
            "eager 模式的训练步里，未融合的 RMSNorm 占 {training_eager_rms_unfused}，"
            "本站的算子占 {training_eager_rms_ours}；LayerNorm 用本站的算子占 "
            "{training_eager_layer_ours}。解码步里，未融合的 RMSNorm 占 "
            "{decoding_eager_rms_unfused}，本站的算子占 {decoding_eager_rms_ours}。"
        ),
    },
    "en": {
        "title": "The norms' share of a step",
        "training": "Training step",
        "decoding": "Decoding step",
        "eager": "eager",
        "compiled": "compiled as a whole",
        "rms_unfused": "RMSNorm, unfused",
        "rms_torch": "RMSNorm, torch",
        "rms_ours": "RMSNorm, ours",
        "layer_unfused": "LayerNorm, unfused",
        "layer_torch": "LayerNorm, torch",
        "layer_ours": "LayerNorm, ours",
        "share": "share of the step's time (%)",
        "band": "Against the same model without norms. Noise floor {floor}.",
        "caption": (
            "A decoder of {blocks} layers with d = {d} on {machine}: the norms' share "
            "of the time of a training step and of a decoding step, eager and compiled."
        ),
        "alt": (
            "Two bar charts of the norms' share of a step's time, a bar for each norm. "
            "In eager training steps unfused RMSNorm takes "
            "{training_eager_rms_unfused}, this site's kernels "
            "{training_eager_rms_ours}; LayerNorm with this site's kernels takes "
            "{training_eager_layer_ours}. In decoding steps unfused RMSNorm takes "
            "{decoding_eager_rms_unfused}, this site's kernels "
            "{decoding_eager_rms_ours}."
        ),
    },
}


def plot(record, words):
    from scripts.measure import look

    figure, axes = look.new_figure(words, record, rows=2, height=7.4, sharex=True)
    modes, norms = _modes(record), NORMS[2:]
    places = range(len(norms))
    for axis, step in zip(axes, STEPS, strict=True):
        for series, mode in enumerate(modes):
            shares = [100 * _share(record, step, mode, norm) for norm in norms]
            shift = 0.4 * (series - (len(modes) - 1) / 2)
            colour = look.style(series)["color"]
            heights = [place + shift for place in places]
            axis.barh(heights, shares, height=0.36, color=colour, label=words[mode])
        axis.axvline(0, color=look.MUTED, linewidth=0.8)
        axis.set_yticks(list(places), [words[norm] for norm in norms])
        axis.invert_yaxis()
        axis.set_title(words[step])
    axes[-1].set_xlabel(words["share"])
    look.legend(figure)
    look.footer(figure, record, words, words["band"])
    return figure
