"""How close to their byte count do norms come in the backward pass?

RMSNorm, LayerNorm and residual addition with RMSNorm: the gradients of the input
and of the gain (and bias), by the page's kernels and by its peers. A fused kernel
reads the slopes and the input once and writes the input's gradient once; partial
sums of the gain come on top and are not counted. Cells, gate and times are those of
norm_bandwidth. Liger's RMSNorm must not overwrite the slopes here, which are used
again, and so fills the gradient with zeros first: a third more bytes than are counted.
Residual addition comes after the headlines.
"""

from scripts.measure.design import Design
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

DEVICE = "gpu"
SEEDS = (0,)
METHOD = (
    "device time: CUDA graph of launches over input and output sets of four times the "
    "L2 cache together, its replays timed by triton.testing.do_bench, providers and a "
    "stream of the same bytes interleaved in 10 rounds; the forward pass is not in it; "
    "share: bytes a fused kernel must move, over the rate of the best large copy of "
    "the run; gate: float64"
)
OPERATIONS = ("rms_norm_backward", "layer_norm_backward", "add_rms_norm_backward")
PROVIDERS = ("ours", "ours_again", "torch", "torch_unfused", "compile", "liger")
SIZES = {"tiny": {}, "small": {}, "full": {}}


def measure(size: str) -> list[Step]:
    """One step is one cell with all its providers and its stream."""
    from scripts.measure.kernels import steps

    return steps.sweep(OPERATIONS, size, added=0)


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(says=("none",), arms=PROVIDERS, **design_words(__file__))


# What the page says -------------------------------------------------------


def facts(record) -> dict[str, str]:
    from scripts.measure.kernels import report
    from scripts.measure.spread import ratio

    found = report.common_facts(record)
    found |= report.share_facts(record, OPERATIONS, PROVIDERS)
    for operation in OPERATIONS:
        for peer in ("torch", "torch_unfused"):
            gains = [
                ratio(of[peer]["device_seconds"], of["ours"]["device_seconds"])
                for cell, of in report.cells(record).items()
                if cell[0] == operation and peer in of and "ours" in of
            ]
            if gains:
                found[f"{operation}_over_{peer}_least"] = f"{min(gains):.1f}"
                found[f"{operation}_over_{peer}_most"] = f"{max(gains):.1f}"
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from scripts.measure.kernels import drawing

    return drawing.shares(record, words, OPERATIONS, PROVIDERS)
