"""How close to a copy do norms come in the forward pass?

RMSNorm, LayerNorm and residual addition with RMSNorm, from 1k to 64k features, by the
page's kernels and by its peers. Every cell is first held against float64; one that
fails the gate has no time. The device time is that of a CUDA graph over cold sets of
inputs and outputs; bytes are those a fused kernel must move. Peers that are not
installed are rows with the reason.
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
OPERATIONS = ("rms_norm", "layer_norm", "add_rms_norm")
PROVIDERS = ("ours", "ours_again", "torch", "torch_unfused", "compile", "liger")
SIZES = {"tiny": {}, "small": {}, "full": {}}


def measure(size: str) -> list[Step]:
    """One step is one cell with all its providers and its stream."""
    from scripts.measure.kernels import steps

    return steps.sweep(OPERATIONS, size, added=2)


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(says=("none",), arms=PROVIDERS, **design_words(__file__))


# What the page says -------------------------------------------------------


def facts(record) -> dict[str, str]:
    from scripts.measure.kernels import report
    from scripts.measure.spread import ratio, ratio_interval, unresolved

    found = report.common_facts(record)
    found |= report.share_facts(record, OPERATIONS, PROVIDERS)
    floor = report.floor(record)
    within, ahead, values = 0, 0, []
    ours = {
        cell: of[report.OURS]["device_seconds"]
        for cell, of in report.cells(record).items()
        if report.OURS in of
    }
    for cell, rms in ours.items():
        layer = ours.get(("layer_norm", *cell[1:]))
        if cell[0] != "rms_norm" or layer is None:
            continue
        values.append(ratio(layer, rms))
        same = unresolved(ratio_interval(layer, rms), floor)
        within += same
        ahead += not same and values[-1] > 1
    found |= {
        "layer_over_rms_least": f"{min(values):.2f}" if values else report.NOTHING,
        "layer_over_rms_most": f"{max(values):.2f}" if values else report.NOTHING,
        "layer_rms_cells": str(len(values)),
        "layer_rms_within_noise": str(within),
        "rms_ahead": str(ahead),
    }
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from scripts.measure.kernels import drawing

    return drawing.shares(record, words, OPERATIONS, PROVIDERS)
