"""The figures of kernels: a panel an operation, a line a provider."""

from collections.abc import Sequence

from scripts.measure import figures
from scripts.measure.kernels import report


def shares(
    record, words: dict, operations: Sequence[str], providers: Sequence[str], **wanted
):
    """Share of the copy rate against width; `wanted` chooses rows."""
    figure, axes = figures.new_figure(
        words, record, rows=len(operations), height=3 * len(operations), sharex=True
    )
    for axis, operation in zip(axes, operations, strict=True):
        shown = [name for name in providers if name != report.AGAIN]
        for series, provider in enumerate(shown):
            line = report.line(record, operation, provider, **wanted)
            if line:
                heights = [100 * share for share in line.values()]
                drawn = {**figures.style(series), "markersize": 4.5}
                axis.plot(list(line), heights, label=words[provider], **drawn)
        axis.set_title(words[operation])
        axis.set_xscale("log", base=2)
        axis.set_ylim(bottom=0)
        axis.set_ylabel(words["share"])
    axes[-1].set_xlabel(words["width"])
    figures.legend(figure)
    figures.footer(figure, record, words, words["band"])
    return figure
