"""How close to a copy does QK-Norm come, on narrow rows of packed projections?

RMSNorm over heads of 64, 128 and 256 features, forward and backward, and fused with
RoPE; queries as a slice of a packed projection, which a kernel must read where they
lie, and the same contiguous. Cells, gate and times are those of norm_bandwidth.
"""

from scripts.measure.kernels.design import design
from scripts.measure.records import Step
from scripts.measure.texts import figure_words

DEVICE = "gpu"
SEEDS = (0,)
METHOD = (
    "device time: CUDA graph of launches over input and output sets of four times the "
    "L2 cache together, its replays timed by triton.testing.do_bench, providers and a "
    "stream of the same bytes interleaved in 10 rounds; share: bytes a fused kernel "
    "must move, over the rate of the best large copy of the run; gate: float64"
)
OPERATIONS = ("rms_norm", "rms_norm_backward", "qk_norm_rope")
PROVIDERS = ("ours", "ours_again", "torch", "torch_unfused", "compile", "liger")
LAYOUTS = ("packed", "contiguous")
HEADS = {128: (8192 * 64, 64), 64: (8192 * 64, 64), 256: (8192 * 32, 32)}  # rows, heads
SIZES = {"tiny": {}, "small": {}, "full": {}}


def measure(size: str) -> list[Step]:
    """One step is one cell with all its providers and its stream.

    Edge cases are those of RoPE alone: norm_bandwidth and norm_backward have the rest.
    """
    from scripts.measure.kernels import steps
    from scripts.measure.kernels.cells import Cell

    tiny = size == "tiny"
    names = PROVIDERS[:3] if tiny else PROVIDERS
    dtype = "float32" if tiny else "bfloat16"

    def cells(layout: str, width: int) -> list[Cell]:
        rows, heads = (24, 3) if tiny else HEADS[width]
        return [Cell(o, rows, width, dtype, heads, layout) for o in OPERATIONS]

    found = steps.streams(OPERATIONS, size)
    if tiny:
        found += steps.of(
            [c for each in LAYOUTS for c in cells(each, 16)], size, 0, names
        )
    else:
        found += steps.of(cells("packed", 128), size, 0)
        rest = [*cells("contiguous", 128), *cells("packed", 64), *cells("packed", 256)]
        found += steps.of(rest, size, steps.REST)
    edge = Cell(
        OPERATIONS[-1], 3 * 7, 16 if tiny else 128, dtype, 3, "packed", "misaligned"
    )
    return [*found, *steps.of([edge], size, steps.LAST, ("ours", "torch"))]


# What was asked, and how it was held equal ---------------------------------

DESIGN = design(__file__, PROVIDERS)


# What the page says -------------------------------------------------------


def facts(record) -> dict[str, str]:
    from scripts.measure.kernels import report

    found = report.common_facts(record)
    for operation in OPERATIONS:
        for layout in LAYOUTS:
            for provider in PROVIDERS:
                shares = report.line(record, operation, provider, layout=layout)
                for width, share in shares.items():
                    name = f"{operation}_{layout}_{width}_{provider}"
                    found[name] = report.percent(share)
        packed = report.line(record, operation, report.OURS, layout="packed")
        found |= report.range_facts(operation, packed.values())
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from scripts.measure.kernels import drawing

    return drawing.shares(record, words, OPERATIONS, PROVIDERS, layout="packed")
