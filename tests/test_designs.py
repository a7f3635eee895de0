"""Every experiment declares its design, its record obeys it, its pages show it.

A rule takes an experiment and one record of it and says what is broken, {violation:
words}. What is broken stands in `lacks` of the DESIGN with the reason, and nothing
else does: a reason whose rule holds is out of date. `pytest tests/test_designs.py -k
NAME` is the law for one experiment.
"""

import ast
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts.measure import design, records
from scripts.measure.design import Design, Run
from scripts.site.reading import source
from tests.experiment_checks import tiny_record
from tests.pages.page_prose import EN, ZH

# Experiments whose declaration is still to come; empty at the end.
UNDECLARED: set[str] = set()
LANGUAGES = {"zh", "en"}
APART = 4  # between the narrowest and the widest model at initialization
FEWEST_RATES = 3  # with the best of them inside
PAIRING = ("paired", "against")  # spread.paired, and what findings.Found makes of it
FEWEST_SEEDS = {"small": 5}  # elsewhere 3


# Rules ------------------------------------------------------------------------


def trains(module, record) -> dict[str, str]:
    """Both controls stand in the same grid: same rates, seeds and steps."""
    shape, found = module.DESIGN, {}
    if "trains" not in shape.says:
        return found
    runs = [run for run in shape.read(record) if run.trained]
    asked = {arm: {shape.without_layers} for arm in shape.arms}
    for arm in shape.arms:
        if not shape.without_layers:
            found["without_layers"] = "no model without layers"
        if arm in shape.frozen:
            asked[arm].add(shape.frozen[arm])
        else:
            found[f"frozen.{arm}"] = f"{arm} has no twin with frozen blocks"
    for arm, controls in asked.items():
        mine = [run for run in runs if run.arm == arm]
        for control in controls - {None}:
            there = {
                (r.cell, r.rate, r.seed, r.steps) for r in runs if r.arm == control
            }
            missing = [
                run
                for run in mine
                if not {
                    (cell, run.rate, run.seed, run.steps) for cell in (run.cell, None)
                }
                & there
            ]
            if missing:
                first = missing[0]
                key = "without_layers"
                key = key if control == shape.without_layers else f"frozen.{arm}"
                found[key] = (
                    f"{control} did not run where {arm} did, {len(missing)} times, "
                    f"first at cell {first.cell}, rate {first.rate}, seed {first.seed}"
                )
    return found


def grid(module, record) -> dict[str, str]:
    """After training: three rates or more, each with every seed, for every arm."""
    shape, found = module.DESIGN, {}
    if "after_training" not in shape.says and "trains" not in shape.says:
        return found
    for (arm, cell), runs in design.by_cell(shape.read(record)).items():
        rates, seeds = {run.rate for run in runs}, {run.seed for run in runs}
        ran = {(run.rate, run.seed) for run in runs}
        if len(rates) < FEWEST_RATES:
            found[f"grid.{arm}"] = f"{arm} {cell}: {len(rates)} rates were tried"
        elif len(ran) < len(rates) * len(seeds):
            found[f"grid.{arm}"] = f"{arm} {cell}: not every rate has every seed"
    return found


def edges(module, record) -> dict[str, str]:
    """After training: the best rate of each arm and control is inside its grid."""
    shape = module.DESIGN
    if "after_training" not in shape.says and "trains" not in shape.says:
        return {}
    runs = shape.read(record)
    best = design.chosen(runs)
    at_edge = sorted(design.edges(runs), key=str)
    return {f"edges.{a}": f"{a} {c}: best at edge {best[a, c]}" for a, c in at_edge}


def widths(module, record) -> dict[str, str]:
    """At initialization: two widths or more, a factor of four apart, in every arm."""
    shape, found = module.DESIGN, {}
    if "at_initialization" not in shape.says:
        return found
    drawn = [run for run in shape.read(record) if not run.trained]
    for arm in shape.arms:
        seen = {run.width for run in drawn if run.arm == arm}
        if not seen or max(seen) < APART * min(seen):
            found["widths"] = f"{arm}: widths {sorted(seen)}"
    return found


def pairs(module, record) -> dict[str, str]:
    """Differences: in each cell every arm has the same seeds, and enough of them."""
    shape, found = module.DESIGN, {}
    if "differences" not in shape.says:
        return found
    seeds: dict[tuple | None, dict[str, set]] = {}
    for run in shape.read(record):
        seeds.setdefault(run.cell, {}).setdefault(run.arm, set()).add(run.seed)
    least = FEWEST_SEEDS.get(record.size, 3)
    for cell, by_arm in seeds.items():
        if len(set(map(frozenset, by_arm.values()))) > 1:
            found["pairs"] = f"cell {cell}: arms have other seeds"
        if min(map(len, by_arm.values())) < least:
            found["seeds"] = f"cell {cell}: fewer than {least} seeds"
    return found


def helper(module, record) -> dict[str, str]:
    """Differences: facts take them from the paired helper, with standard error."""
    if "differences" not in module.DESIGN.says or _calls(module, *PAIRING):
        return {}
    return {"paired": "facts() does not use spread.paired"}


def _calls(module, *names: str) -> bool:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    used = (n for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute))
    return any(getattr(n, "id", getattr(n, "attr", None)) in names for n in used)


def stopping(module, record) -> dict[str, str]:
    """In each cell every arm was trained for the same numbers of steps."""
    steps: dict[tuple, dict[str, set]] = {}
    for (arm, cell), runs in design.by_cell(module.DESIGN.read(record)).items():
        if cell is not None:
            steps.setdefault(cell, {})[arm] = {run.steps for run in runs}
    apart = [
        c for c, arms in steps.items() if len(set(map(frozenset, arms.values()))) > 1
    ]
    return (
        {"stopping": f"arms ran for other numbers of steps: {apart}"} if apart else {}
    )


def arms(module, record) -> dict[str, str]:
    """The record holds the declared arms and controls, and no other."""
    shape = module.DESIGN
    if shape.runs is None:
        wanted = shape.says != ("none",)
        return {"arms": "no runs to hold the record against"} if wanted else {}
    seen = {run.arm for run in shape.read(record)}
    other = seen ^ {*shape.arms, *shape.controls}
    return {"arms": f"declared or measured, not both: {sorted(other)}"} if other else {}


RULES = (arms, trains, grid, edges, widths, pairs, helper, stopping)


def broken(module, record) -> dict[str, str]:
    """All that a record breaks."""
    return {key: text for rule in RULES for key, text in rule(module, record).items()}


def violations(module, recorded: list) -> list[str]:
    """What is broken and not declared, and what is declared and not broken."""
    shape, found, all_broken = module.DESIGN, [], set()
    for record in recorded:
        here = broken(module, record)
        all_broken |= here.keys()
        found += [
            f"{record.machine}: {key}: {text}"
            for key, text in here.items()
            if not shape.lacking(key)
        ]
    whole = {key.partition(".")[0] for key in all_broken}
    if recorded:
        found += [
            f"lacks {key!r}, which holds: take it out"
            for key in shape.lacks
            if key not in all_broken | whole
        ]
    return found


def misdeclared(shape: Design) -> list[str]:
    """What is wrong with a declaration itself."""
    found = []
    if not shape.says or set(shape.says) - set(design.SAYS):
        found.append(f"says {shape.says}; known: {', '.join(design.SAYS)}")
    if "none" in shape.says and len(shape.says) > 1:
        found.append("says 'none' and something")
    if not shape.arms or len(set(shape.arms)) < len(shape.arms):
        found.append("no arms, or one twice")
    if unknown := set(shape.frozen) - set(shape.arms):
        found.append(f"frozen twins of {sorted(unknown)}, which are no arms")
    if set(shape.words) != LANGUAGES:
        return [*found, "words are not in both languages"]
    zh, en = shape.words["zh"], shape.words["en"]
    for texts in (zh, en):
        found += [f"no {name}" for name in design.TEXTS if not texts.get(name)]
        strange = set(texts) - {*design.TEXTS, *design.OPTIONAL}
        found += [f"unknown text {name!r}" for name in sorted(strange)]
    if zh.keys() != en.keys() or zh.get("arms", {}).keys() != en.get("arms", {}).keys():
        found.append("the languages have other texts")
    if unknown := set(en.get("arms", {})) - {*shape.arms, *shape.controls}:
        found.append(f"words for {sorted(unknown)}, which are no arms")
    found += [
        f"lacks {key!r} without a reason in both languages"
        for key, reason in shape.lacks.items()
        if set(reason) != LANGUAGES or not all(reason.values())
    ]
    return found


# The experiments ----------------------------------------------------------------

SURVEYS = {
    "kernel_resources",
    "model_atlas",
    "norm_prediction",
}  # the same at every size
EXPERIMENTS = records.experiments()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_declares_its_design(name):
    declared = hasattr(records.load_experiment(name), "DESIGN")
    if name in UNDECLARED:
        assert not declared, f"{name} has a DESIGN: take it out of UNDECLARED"
    else:
        assert declared, f"{name} declares no DESIGN"


@pytest.mark.parametrize("name", [n for n in EXPERIMENTS if n not in UNDECLARED])
def test_records_obey_their_design(name, no_violations):
    module = records.load_experiment(name)
    no_violations(misdeclared(module.DESIGN))
    no_violations(f"{name}: {v}" for v in violations(module, records.find(name)))


@pytest.mark.parametrize("name", sorted(set(EXPERIMENTS) - SURVEYS))
def test_every_experiment_has_the_sizes_that_are_asked_of_it(name):
    module = records.load_experiment(name)
    usual = getattr(module, "CPU_SIZE", "small")
    assert {"tiny", usual} <= set(module.SIZES) <= set(records.SIZES)
    assert usual in ("small", "medium")


def unshown(text: str, undeclared: set[str]) -> list[str]:
    """Experiments whose figure a page shows without their design, shown once."""
    plain = source.without_fences(text)
    figures = set(re.findall(r"\[\[ figures\.(\w+) \]\]", plain))
    designs = Counter(re.findall(r"\[\[ designs\.(\w+) \]\]", plain))
    return [
        f"[[ designs.{name} ]] stands {designs[name]} times beside its figure"
        for name in sorted((figures - undeclared) | set(designs))
        if designs[name] != 1
    ]


@pytest.mark.parametrize("page", [*ZH.values(), *EN.values()], ids=lambda p: p.where)
def test_pages_show_the_designs_of_their_figures(page, no_violations):
    no_violations(f"{page.where}: {v}" for v in unshown(page.text, UNDECLARED))


# A planted violation of each rule -------------------------------------------------

TEXTS = {"question": "Why?", "refuted_by": "A loss.", "stopping": "All stop."}
WORDS = {"en": TEXTS, "zh": {"question": "问", "refuted_by": "错", "stopping": "停"}}
REASON = {"en": "It was too dear.", "zh": "太贵了。"}
PAIRS = Path(__file__).parent / "measure/test_spread.py"  # a file that uses `paired`


def good_runs() -> list[Run]:
    """An arm and its controls: tuned, paired, inside; drawn at two widths."""
    trained = [
        Run(arm, seed, cell, rate, width=64, steps=9, loss=loss)
        for arm, cells in (("pre", [(4,), (8,)]), ("ice", [(4,), (8,)]), ("0", [None]))
        for cell in cells
        for rate, loss in ((0.1, 3.0), (0.2, 2.0), (0.4, 2.5))
        for seed in range(5)
    ]
    drawn = [
        Run("pre", seed, (4,), width=width, steps=0)
        for width in (16, 64)
        for seed in range(5)
    ]
    return trained + drawn


GOOD = good_runs()


def planted(file=PAIRS, runs=GOOD, **declared):
    """An experiment that obeys every rule but for what is planted."""
    shape = Design(
        says=("trains", "after_training", "at_initialization", "differences"),
        arms=("pre",),
        words=WORDS,
        without_layers="0",
        frozen={"pre": "ice"},
        runs=runs and (lambda record: runs),
    )
    return SimpleNamespace(DESIGN=replace(shape, **declared), __file__=file)


def but(change, **where) -> list[Run]:
    """The good runs, those that match changed: by fields, or taken out by None."""
    found = []
    for run in good_runs():
        hit = all(getattr(run, name) == value for name, value in where.items())
        if not hit:
            found.append(run)
        elif change is not None:
            found.append(replace(run, **change))
    return found


RECORD = replace(tiny_record("a_b", [{"seed": 0}], range(5)), size="small")


def test_good():
    module = planted()
    assert misdeclared(module.DESIGN) == []
    assert broken(module, RECORD) == {}
    assert violations(module, [RECORD]) == []
    speed = planted(says=("none",), runs=None, without_layers=None, frozen={})
    assert broken(speed, RECORD) == {}


CASES = {
    "no model without layers": (
        "without_layers",
        dict(runs=but(None, arm="0"), without_layers=None),
    ),
    "the model without layers lacks a rate": (
        "without_layers",
        dict(runs=but(None, arm="0", rate=0.4)),
    ),
    "the model without layers lacks a seed": (
        "without_layers",
        dict(runs=but(None, arm="0", seed=3)),
    ),
    "no frozen twin": ("frozen.pre", dict(runs=but(None, arm="ice"), frozen={})),
    "the frozen twin lacks a depth": (
        "frozen.pre",
        dict(runs=but(None, arm="ice", cell=(8,))),
    ),
    "the frozen twin was stopped sooner": (
        "frozen.pre",
        dict(runs=but(dict(steps=5), arm="ice")),
    ),
    "one rate was not tried with one seed": (
        "grid.pre",
        dict(runs=but(None, arm="pre", cell=(8,), rate=0.2, seed=4)),
    ),
    "two rates": ("grid.pre", dict(runs=but(None, rate=0.4))),
    "the best rate is the greatest": (
        "edges.pre",
        dict(runs=but(dict(loss=1.0), arm="pre", rate=0.4, cell=(4,))),
    ),
    "the greatest rates failed but one, which is best": (
        "edges.0",
        dict(runs=but(dict(loss=None), arm="0", rate=0.2)),
    ),
    "one width": ("widths", dict(runs=but(None, width=16))),
    "widths a factor of two apart": (
        "widths",
        dict(runs=but(dict(width=32), width=16)),
    ),
    "an arm with other seeds": (
        "pairs",
        dict(runs=but(dict(seed=7), arm="ice", cell=(4,), seed=0)),
    ),
    "four seeds": ("seeds", dict(runs=but(None, seed=4))),
    "differences without a standard error": ("paired", dict(file=records.__file__)),
    "an arm was trained longer": (
        "stopping",
        dict(runs=but(dict(steps=99), arm="pre", cell=(4,), width=64, steps=9)),
    ),
    "an arm that was not declared": (
        "arms",
        dict(runs=but(dict(arm="post"), arm="pre", cell=(8,))),
    ),
    "an arm that was not measured": ("arms", dict(arms=("pre", "post"))),
    "nothing to hold the record against": ("arms", dict(runs=None)),
}


@pytest.mark.parametrize("case", CASES)
def test_bad(case):
    """The rule finds it; declared with a reason, it passes."""
    key, changes = CASES[case]
    module = planted(**changes)
    found = broken(module, RECORD)
    assert key in found
    assert any(f"{key}: " in text for text in violations(module, [RECORD]))
    module.DESIGN = replace(module.DESIGN, lacks=dict.fromkeys(found, REASON))
    assert violations(module, [RECORD]) == []
    rules = {name.partition(".")[0] for name in found}
    module.DESIGN = replace(module.DESIGN, lacks=dict.fromkeys(rules, REASON))
    assert violations(module, [RECORD]) == []


def test_a_reason_whose_rule_holds_is_out_of_date():
    module = planted(lacks={"edges.pre": REASON, "seeds": REASON})
    found = violations(module, [RECORD])
    assert [text.split("'")[1] for text in found] == ["edges.pre", "seeds"]
    assert violations(module, []) == [], "without a record nothing can be said"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (dict(says=()), "says"),
        (dict(says=("learns",)), "says"),
        (dict(says=("none", "trains")), "says 'none' and something"),
        (dict(arms=("pre", "pre")), "one twice"),
        (dict(frozen={"post": "ice"}), "no arms"),
        (dict(words={"en": TEXTS}), "both languages"),
        (dict(words={**WORDS, "zh": {**WORDS["zh"], "question": ""}}), "no question"),
        (dict(words={**WORDS, "en": {**TEXTS, "note": "?"}}), "unknown text 'note'"),
        (dict(words={**WORDS, "en": {**TEXTS, "cell": "?"}}), "other texts"),
        (dict(lacks={"edges": {"en": "Too dear."}}), "without a reason"),
    ],
)
def test_misdeclared(changes, what):
    assert any(what in text for text in misdeclared(planted(**changes).DESIGN))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[[ figures.a_b ]]\n\n[[ designs.a_b ]]", 0),
        ("[[ figures.a_b ]]", 1),
        ("[[ figures.a_b ]]\n\n[[ designs.a_b ]]\n\n[[ designs.a_b ]]", 1),
        ("[[ figures.a_b ]]\n\n[[ designs.c_d ]]", 1),
        ("[[ figures.c_d ]]", 0),
    ],
)
def test_unshown(text, found):
    assert len(unshown(text, {"c_d"})) == found


def test_chosen_and_edges():
    runs = [Run("a", s, rate=r, loss=x) for s in (0, 1, 2) for r, x in ((1, 2), (2, 1))]
    assert design.chosen(runs) == {("a", ()): 2}
    assert design.edges(runs) == {("a", ())}
    failed = [replace(run, loss=None) for run in runs]
    assert design.chosen(failed) == {("a", ()): None} and not design.edges(failed)
    half = [replace(r, loss=None) if r.rate == 2 and r.seed else r for r in runs]
    assert design.chosen(half) == {("a", ()): 1}, "the median counts failed runs"
