"""The design of an experiment: what it asks, compares and holds equal, as data.

Every experiment declares one and a page shows it folded, `[[ designs.<name> ]]`:

    def _runs(record):
        return [
            Run(row["arm"], row["seed"], cell=(row["layers"],), rate=row["rate"],
                width=64, steps=300, loss=row["values"][-1])
            for row in record.select(quantity="held_out")
        ]

    DESIGN = Design(
        says=("trains", "after_training", "differences"),
        arms=("pre", "post"),
        without_layers="no_layers",
        frozen={"pre": "pre_frozen", "post": "post_frozen"},
        runs=_runs,
        **design_words(__file__),  # words and lacks, see experiment_words.py
    )

The laws in tests/test_designs.py hold each record against what is said with it. A
rule that a record breaks is a key of `lacks` with its reason in both languages; the
key of a rule (`edges`) stands for all its arms (`edges.post`), and a key that nothing
breaks any more fails. Nothing here is reached by `measure`: no record ages by it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from statistics import median

from scripts.measure.records import Record

# What the pages may say with an experiment; each brings rules with it.
SAYS = (
    "trains",  # trains, learns, works at N layers: beside both controls
    "after_training",  # a state or a loss reached by training: rates tuned, all shown
    "at_initialization",  # of models as drawn: two widths, a factor of four apart
    "differences",  # between arms: paired by seed, with a standard error
    "none",  # speed, surveys, counts: arms are not trained models
)
TEXTS = ("question", "refuted_by", "stopping")  # in every language
OPTIONAL = ("arms", "cell", "grid")  # arms: what one is; the names of cell and grid


@dataclass(frozen=True)
class Run:
    """One run as the laws read it: one seed of one arm at one setting.

    ``cell`` is what arms are compared within (depth, batch size, warm-up); None is
    a control that belongs to every cell. ``rate`` is the tuned setting. ``steps`` 0
    is a model as drawn. ``loss`` picks the best rate; None is a run that failed.
    """

    arm: str
    seed: int
    cell: tuple | None = ()
    rate: float | None = None
    width: int | None = None
    steps: int | None = None
    loss: float | None = None

    @property
    def trained(self) -> bool:
        return self.steps != 0


def of_one_setting(rows: Iterable[dict], size: dict, loss: Callable) -> list[Run]:
    """Runs that differ in arm, rate and seed alone, in one cell.

    A model without layers belongs to every cell; ``loss`` reads that of a row.
    """
    return [
        Run(
            row["arm"],
            row["seed"],
            cell=None if row["arm"].startswith("no_layers") else (),
            rate=row["rate"],
            width=size["d"],
            steps=size["steps"],
            loss=loss(row),
        )
        for row in rows
    ]


@dataclass(frozen=True)
class Design:
    """What an experiment declares. ``arms`` leaves the two kinds of control out."""

    says: tuple[str, ...]
    arms: tuple[str, ...]
    words: Mapping[str, Mapping]
    without_layers: str | None = None  # the arm of embedding and head alone
    frozen: Mapping[str, str] = field(default_factory=dict)  # arm -> its frozen twin
    lacks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    runs: Callable[[Record], list[Run]] | None = None

    @property
    def controls(self) -> tuple[str, ...]:
        """The arms without layers and with blocks frozen at initialization."""
        first = (self.without_layers,) if self.without_layers else ()
        return (*first, *dict.fromkeys(self.frozen.values()))

    def lacking(self, violation: str) -> bool:
        """Whether the design declares this violation, by arm or as a whole."""
        return violation in self.lacks or violation.partition(".")[0] in self.lacks

    def read(self, record: Record) -> list[Run]:
        """The runs of a record; none for an experiment of another kind."""
        return self.runs(record) if self.runs else []


def by_cell(runs: Iterable[Run]) -> dict[tuple, list[Run]]:
    """Trained runs of each arm in each cell: {(arm, cell): runs}."""
    found: dict[tuple, list[Run]] = {}
    for run in runs:
        if run.trained:
            found.setdefault((run.arm, run.cell), []).append(run)
    return found


def chosen(runs: Iterable[Run]) -> dict[tuple, float | None]:
    """{(arm, cell): best rate}, by the median loss over seeds; None: all failed."""
    found = {}
    for place, of in by_cell(runs).items():
        losses: dict[float, list[float]] = {}
        for run in of:
            if run.rate is not None:
                loss = inf if run.loss is None else run.loss
                losses.setdefault(run.rate, []).append(loss)
        if losses:
            medians = {rate: median(values) for rate, values in losses.items()}
            best = min(medians, key=medians.get)
            found[place] = best if medians[best] < inf else None
    return found


def edges(runs: Iterable[Run]) -> set[tuple]:
    """The (arm, cell) whose best rate is the least or the greatest that was tried."""
    runs = list(runs)
    best = chosen(runs)
    tried = {place: {run.rate for run in of} for place, of in by_cell(runs).items()}
    return {
        place
        for place, rate in best.items()
        if rate is not None and rate in (min(tried[place]), max(tried[place]))
    }
