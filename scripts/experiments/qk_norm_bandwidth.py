"""How close to a copy does QK-Norm come, on narrow rows of packed projections?

RMSNorm over heads of 64, 128 and 256 features, forward and backward, and fused with
RoPE; queries as a slice of a packed projection, which a kernel must read where they
lie, and the same contiguous. Cells, gate and times are those of norm_bandwidth.
"""

from scripts.measure.design import Design
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

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
SIZES = {"tiny": {}, "small": {}, "full": {}}


def measure(size: str) -> list[Step]:
    """One step is one cell with all its providers and its stream."""
    from scripts.measure.kernels import steps
    from scripts.measure.kernels.cells import Cell, heads

    found = steps.copy(size)
    if size == "tiny":
        cells = [
            Cell(o, 24, 16, "float32", 3, each) for each in LAYOUTS for o in OPERATIONS
        ]
        return found + steps.of(cells, size, 0, PROVIDERS[:3])
    rest = [(128, "contiguous"), (64, "packed"), (256, "packed")]
    cells = [heads(o, *each) for each in rest for o in OPERATIONS]
    found += steps.of([heads(o, 128) for o in OPERATIONS], size, 0)
    return found + steps.of(cells, size, steps.REST)


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(says=("none",), arms=PROVIDERS, **design_words(__file__))


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
