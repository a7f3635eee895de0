"""Which edits age a record: changed measurements do, words and comments do not."""

import textwrap
from dataclasses import replace

import pytest

from scripts.measure import digest, records
from scripts.measure.records import RecordError

SOURCE = '''
    """Question."""
    from scripts.measure import look
    from scripts.measure.records import Step
    from scripts.measure.counting import count
    from scripts.experiments.parts.deep import seven

    LIMIT = 3
    COLOUR = "blue"

    def square(x):
        """Docstring."""
        from snippets.page.shown import double
        from scripts.experiments import two as other
        return double(x) + LIMIT + other.model()  # a comment

    def measure(size):
        import torch
        seven()
        return [Step({"x": count()}, square)]

    def facts(record):
        return {"most": "1"}

    WORDS = {"en": {"title": "A"}, "zh": {"title": "B"}}

    def plot(record, words):
        return look, COLOUR
'''
SHOWN = '''
    # --8<-- [start:double]
    from snippets.page.earlier import ONE

    def double(x):
        """Twice."""
        return 2 * x * ONE
    # --8<-- [end:double]
'''
COUNTING = """
    def count():
        return _next(1)

    def _next(x):
        return x

    def other():
        return 2
"""

DEEP = """
    def seven():
        from scripts.experiments.parts.deeper import SIX
        return 7, SIX

    def eight():
        return 8
"""

SIBLING = """
    SIDE = 2

    def model():
        return SIDE

    def plot(record, words):
        return "a picture"
"""


@pytest.fixture
def tree(tmp_path):
    """A small repository: an experiment, two snippets and a helper."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    write("scripts/experiments/one.py", SOURCE)
    write("snippets/page/shown.py", SHOWN)
    write("snippets/page/earlier.py", "ONE = 1\n")
    write("scripts/measure/counting.py", COUNTING)
    write("scripts/experiments/parts/deep.py", DEEP)
    write("scripts/experiments/parts/deeper.py", "SIX = 6\nFIVE = 5\n")
    write("scripts/experiments/two.py", SIBLING)
    write("scripts/measure/records.py", "class Step: ...\nclass Record: ...\n")
    write("scripts/measure/look.py", "INK = 0\n")
    return tmp_path


def _digest(tree):
    return digest.code_digest("one", folder=tree / "scripts/experiments", root=tree)


def _edit(tree, name, old, new):
    path = tree / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


EXPERIMENT = "scripts/experiments/one.py"
SHOWN_FILE = "snippets/page/shown.py"
HARMLESS = {
    "comment": (EXPERIMENT, "# a comment", "# another comment"),
    "docstring": (EXPERIMENT, "Docstring.", "Other words."),
    "question": (EXPERIMENT, "Question.", "Other question?"),
    "caption": (EXPERIMENT, '"title": "A"', '"title": "Caption"'),
    "fact": (EXPERIMENT, '"most": "1"', '"most": "2"'),
    "design": (EXPERIMENT, "WORDS =", "DESIGN = [x for LIMIT in 'ab']\nWORDS ="),
    "plot": (EXPERIMENT, "return look, COLOUR", "return COLOUR"),
    "colour": (EXPERIMENT, '"blue"', '"red"'),
    "another import": (EXPERIMENT, "import Step", "import Record, Step"),
    "formatting": (EXPERIMENT, "double(x) + LIMIT", "(double(x)) + LIMIT"),
    "another experiment's figure": ("scripts/experiments/two.py", "a pic", "the pic"),
    "marker": (SHOWN_FILE, "[start:double]", "[start:twice]"),
    "snippet's docstring": (SHOWN_FILE, "Twice.", "Two times."),
    "helper not used": ("scripts/measure/counting.py", "return 2", "return 3"),
    "part not used": ("scripts/experiments/parts/deep.py", "return 8", "return 9"),
    "number not used": ("scripts/experiments/parts/deeper.py", "FIVE = 5", "FIVE = 4"),
    "look": ("scripts/measure/look.py", "INK = 0", "INK = 1"),
    "records": ("scripts/measure/records.py", "...", "x = 1"),
}
AGEING = {
    "constant": (EXPERIMENT, "LIMIT = 3", "LIMIT = 4"),
    "function": (EXPERIMENT, "+ LIMIT", "- LIMIT"),
    "cell": (EXPERIMENT, '{"x": count()}', '{"y": count()}'),
    "snippet imported in a function": (SHOWN_FILE, "2 * x", "3 * x"),
    "snippet of a snippet": ("snippets/page/earlier.py", "ONE = 1", "ONE = 2"),
    "helper": ("scripts/measure/counting.py", "_next(1)", "_next(2)"),
    "own part": ("scripts/experiments/parts/deep.py", "return 7,", "return 9,"),
    "part of a part": ("scripts/experiments/parts/deeper.py", "SIX = 6", "SIX = 5"),
    "another experiment's model": (
        "scripts/experiments/two.py",
        "SIDE = 2",
        "SIDE = 3",
    ),
    "helper of a helper": ("scripts/measure/counting.py", "return x", "return x + 1"),
}


@pytest.mark.parametrize("edit", HARMLESS.values(), ids=HARMLESS)
def test_a_harmless_edit_does_not_age(tree, edit):
    before = _digest(tree)
    _edit(tree, *edit)
    assert _digest(tree) == before


@pytest.mark.parametrize("edit", AGEING.values(), ids=AGEING)
def test_an_edit_of_what_is_measured_ages(tree, edit):
    before = _digest(tree)
    _edit(tree, *edit)
    assert _digest(tree) != before


def test_another_experiment_handed_on_counts_whole(tree):
    _edit(tree, EXPERIMENT, "other.model()", "len([other, other.model()])")
    before = _digest(tree)
    _edit(tree, "scripts/experiments/two.py", "a pic", "the pic")
    assert _digest(tree) != before


def test_a_statement_without_a_name_counts(tree):
    before = _digest(tree)
    with (tree / EXPERIMENT).open("a", encoding="utf-8") as file:
        file.write("print('set up')\n")
    assert _digest(tree) != before


def test_packages_are_those_the_measured_code_imports(tree):
    where = dict(folder=tree / "scripts/experiments", root=tree)
    assert digest.packages("one", **where) == {"torch"}


def test_stale_means_another_digest(tree, record):
    where = dict(folder=tree / "scripts/experiments", root=tree)
    made = {**record.provenance, "digest": _digest(tree)}
    fresh = replace(record, experiment="one", provenance=made)
    assert not digest.is_stale(fresh, **where)
    _edit(tree, *AGEING["function"])
    assert digest.is_stale(fresh, **where)
    _edit(tree, EXPERIMENT, "- LIMIT", "+ LIMIT")
    assert not digest.is_stale(fresh, **where)


def test_unknown_experiment_and_broken_code_are_one_line(tree):
    where = dict(folder=tree / "scripts/experiments", root=tree)
    with pytest.raises(
        RecordError, match="unknown experiment 'three'; known: one, two"
    ):
        digest.code_digest("three", **where)
    (tree / EXPERIMENT).write_text("def (:\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"one\.py line 1"):
        digest.code_digest("one", **where)


@pytest.mark.parametrize("name", records.experiments())
def test_real_experiments_have_a_digest(name):
    assert len(digest.code_digest(name)) == digest.DIGITS


def test_dump_skips_what_other_python_versions_add():
    import ast

    tree = ast.parse("def f(): pass")
    before = digest._dump(tree.body)
    tree.body[0].type_params = []  # since Python 3.12
    tree.body[0]._fields = (*tree.body[0]._fields, "type_params")
    assert digest._dump(tree.body) == before


def test_parts_of_an_experiment_are_no_experiments(tree):
    assert records.experiments(tree / "scripts/experiments") == ["one", "two"]
    reached = digest.closure("model_atlas").parts
    assert "scripts.experiments.atlas.blocks" in reached
    assert "snippets.norm_probe.matching" in reached
