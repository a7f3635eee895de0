"""What it costs the host to attach a kernel and its gradient to PyTorch.

The same norm without its arithmetic, forward and backward: the outputs are allocated,
nothing is computed and nothing launched. What is left is what a call costs before any
kernel starts. It is attached in four ways, beside torch's own norms, which compute
four rows of eight numbers. Wall clock on a CPU; in every round each way gives one
sample, in random order; `custom_op` is timed twice under two names, and their
difference is the noise floor.

A row holds one way in one mode (`no gradient`, `forward` with a graph built, `forward
and backward`): `seconds` is the list of its samples, each the mean over `inner` calls.
"""

from functools import cache, partial

from scripts.measure import spread
from scripts.measure.design import Design
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

DEVICE = "cpu"
SEEDS = (0,)
METHOD = (
    "wall clock on the CPU of calls on 4 rows of 8 numbers, one thread, ways "
    "interleaved in random order in every round; outputs are allocated and nothing is "
    "computed, except by torch's own norms"
)
SIZES = {
    "tiny": dict(rounds=3, least=1e-4, warmup=0.0),
    "small": dict(rounds=101, least=4e-3, warmup=0.1),
}
EPS = 1e-6
SCHEMA = "(Tensor x, Tensor gain, float eps) -> (Tensor, Tensor)"
SCHEMA_BACKWARD = "(Tensor dy, Tensor x, Tensor gain, Tensor rstd) -> (Tensor, Tensor)"
CUSTOM, CONTROL = "custom_op", "custom_op, again"
AUTOGRAD_KEY, OVER_OPERATORS = "autograd key", "function over operators"
FUNCTION, TORCH, TORCH_RMS = "function", "F.layer_norm", "F.rms_norm"
WAYS = (CUSTOM, CONTROL, AUTOGRAD_KEY, OVER_OPERATORS, FUNCTION, TORCH, TORCH_RMS)
NONE, FORWARD, BOTH = "no gradient", "forward", "forward and backward"
MODES = (NONE, FORWARD, BOTH)


def _forward(x, gain, eps):
    """y and rstd, as allocated."""
    import torch

    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return y, x.new_empty(x.shape[:-1].numel(), dtype=torch.float32)


def _backward(dy, x, gain, rstd):
    """The gradients of x and gain, as allocated."""
    import torch

    return torch.empty_like(x), torch.empty_like(gain)


def _function(forward, backward, both=False):
    """An autograd.Function whose parts are the given calls; both: rstd comes out."""
    import torch

    class Attached(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, gain, eps):
            y, rstd = forward(x, gain, eps)
            ctx.save_for_backward(x, gain, rstd)
            ctx.set_materialize_grads(False)
            if both:
                ctx.mark_non_differentiable(rstd)
            return (y, rstd) if both else y

        @staticmethod
        def backward(ctx, dy, *_):
            return *backward(dy, *ctx.saved_tensors), None

    return Attached


def _custom_op():
    """custom_op with register_autograd."""
    import torch
    from torch import Tensor

    @torch.library.custom_op("attachment::custom", mutates_args=())
    def op(x: Tensor, gain: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        return _forward(x, gain, eps)

    @torch.library.custom_op("attachment::custom_backward", mutates_args=())
    def backward(
        dy: Tensor, x: Tensor, gain: Tensor, rstd: Tensor
    ) -> tuple[Tensor, Tensor]:
        return _backward(dy, x, gain, rstd)

    def save(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2], output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    op.register_fake(_forward)
    backward.register_fake(_backward)
    op.register_autograd(
        lambda ctx, dy, _: (*backward(dy, *ctx.saved_tensors), None),
        setup_context=save,
    )
    return lambda x, gain: op(x, gain, EPS)[0]


def _defined(library, name: str):
    """Two operators by Library.define and impl: forward and backward."""
    import torch

    made = {
        name: (SCHEMA, _forward),
        f"{name}_backward": (SCHEMA_BACKWARD, _backward),
    }
    for each, (schema, function) in made.items():
        library.define(each + schema)
        library.impl(each, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"attachment::{each}", function, lib=library)
    return [getattr(torch.ops.attachment, each).default for each in made]


@cache
def ways() -> dict:
    """Way -> function of x and gain; operators are registered once a process."""
    import torch
    from torch.nn import functional as F

    library = torch.library.Library("attachment", "FRAGMENT")
    keyed, keyed_backward = _defined(library, "keyed")

    def below(x, gain, eps):
        with torch._C._AutoDispatchBelowAutograd():
            return keyed(x, gain, eps)

    both = _function(below, keyed_backward, both=True)
    library.impl("keyed", lambda *given: both.apply(*given), "Autograd")
    over = _function(*_defined(library, "over"))
    bare = _function(_forward, _backward)
    custom = _custom_op()
    ways.library = library  # operators last as long as it does
    return {
        CUSTOM: custom,
        CONTROL: custom,
        AUTOGRAD_KEY: lambda x, gain: keyed(x, gain, EPS)[0],
        OVER_OPERATORS: lambda x, gain: over.apply(x, gain, EPS),
        FUNCTION: lambda x, gain: bare.apply(x, gain, EPS),
        TORCH: lambda x, gain: F.layer_norm(x, gain.shape, gain),
        TORCH_RMS: lambda x, gain: F.rms_norm(x, gain.shape, gain),
    }


def run(mode: str, size: str) -> list[dict]:
    """All ways in one mode, timed together."""
    import torch

    from scripts.measure.timing import fixed_threads, time_together

    generator = torch.Generator().manual_seed(SEEDS[0])
    x, dy = (torch.randn(4, 8, generator=generator) for _ in "xd")
    own = x.requires_grad_(), torch.ones(8, requires_grad=True)

    def call(way):
        if mode == BOTH:
            return lambda: torch.autograd.grad(way(*own), own, dy)
        return lambda: way(*own)

    calls = {name: call(way) for name, way in ways().items()}
    with fixed_threads(1), torch.set_grad_enabled(mode != NONE):
        timed = time_together(calls, **SIZES[size])
    return [
        {"mode": mode, "way": way, "inner": each.inner, "seconds": each.seconds}
        for way, each in timed.items()
    ]


def measure(size: str) -> list[Step]:
    """One step is one mode."""
    return [Step({"mode": m}, partial(run, m, size), timed=True) for m in MODES]


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(says=("none",), arms=WAYS, **design_words(__file__))


# What the page says -------------------------------------------------------


def _samples(record, mode: str) -> dict[str, list[float]]:
    return {row["way"]: row["seconds"] for row in record.select(mode=mode)}


def _key(name: str) -> str:
    return name.lower().replace(",", "").replace(".", "_").replace(" ", "_")


def facts(record) -> dict[str, str]:
    from statistics import median

    every = {mode: _samples(record, mode) for mode in MODES}
    floor = spread.noise_floor(
        [spread.ratio_interval(of[CONTROL], of[CUSTOM]) for of in every.values()]
    )
    found = {
        "noise": f"{100 * floor:.2g}%",
        "rounds": str(len(every[BOTH][CUSTOM])),
        "torch": record.provenance["versions"].get("torch", "unknown"),
        "machine": record.device,
        "date": record.date,
    }
    for mode, of in every.items():
        for way in of:
            name = f"{_key(way)}_{_key(mode)}"
            found[name] = f"{1e6 * median(of[way]):.3g}"
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from statistics import median

    from scripts.measure import figures

    figure, axes = figures.new_figure(words, record, rows=2, height=5.6, sharex=True)
    shown = [way for way in WAYS if way != CONTROL]
    for axis, mode, series in zip(axes, (FORWARD, BOTH), (0, 1), strict=True):
        of = _samples(record, mode)
        for place, way in enumerate(shown):
            low, high = spread.median_interval(of[way])
            axis.plot(
                [1e6 * low, 1e6 * high],
                [place, place],
                color=figures.SERIES[series],
                marker="none",
                linewidth=3,
                alpha=0.4,
            )
            drawn = {**figures.style(series), "linestyle": "none"}
            axis.plot(1e6 * median(of[way]), place, **drawn)
        axis.set_title(words[mode])
        axis.set_yticks(range(len(shown)), [words[way] for way in shown])
        axis.set_ylim(len(shown) - 0.4, -0.6)
        axis.grid(axis="y", visible=False)
    axes[-1].set_xlim(left=0)  # shared: after everything is drawn
    axes[-1].set_xlabel(words["time"])
    figures.footer(figure, record, words, words["band"])
    return figure
