"""Which edits age a record: changed measurements do, words and comments do not."""

import textwrap
from dataclasses import replace

import pytest

from scripts.measure import digest, records
from scripts.measure.records import RecordError

SOURCE = '''
    """Question."""
    from scripts.measure import figures
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
        return figures, COLOUR
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
    write("scripts/measure/figures.py", "INK = 0\n")
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
    "plot": (EXPERIMENT, "return figures, COLOUR", "return COLOUR"),
    "colour": (EXPERIMENT, '"blue"', '"red"'),
    "another import": (EXPERIMENT, "import Step", "import Record, Step"),
    "formatting": (EXPERIMENT, "double(x) + LIMIT", "(double(x)) + LIMIT"),
    "another experiment's figure": ("scripts/experiments/two.py", "a pic", "the pic"),
    "marker": (SHOWN_FILE, "[start:double]", "[start:twice]"),
    "snippet's docstring": (SHOWN_FILE, "Twice.", "Two times."),
    "helper not used": ("scripts/measure/counting.py", "return 2", "return 3"),
    "part not used": ("scripts/experiments/parts/deep.py", "return 8", "return 9"),
    "number not used": ("scripts/experiments/parts/deeper.py", "FIVE = 5", "FIVE = 4"),
    "figures": ("scripts/measure/figures.py", "INK = 0", "INK = 1"),
    "records": ("scripts/measure/records.py", "...", "x = 1"),
    "class not used": (EXPERIMENT, "WORDS =", "class Pen: ...\n\nWORDS ="),
    "growing what is not used": (EXPERIMENT, '"blue"', '"blue"\nCOLOUR += "ish"'),
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
    "anything in a snippet": (SHOWN_FILE, "[end:double]", "[end:double]\nTHREE = 3"),
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


def test_a_helper_imported_twice_counts_with_both_names(tree):
    late = "from scripts.measure.counting import other; seven(), other()"
    _edit(tree, EXPERIMENT, "    seven()", f"    {late}")
    seen = {_digest(tree)}
    _edit(tree, "scripts/measure/counting.py", "_next(1)", "_next(2)")
    seen.add(_digest(tree))
    _edit(tree, "scripts/measure/counting.py", "return 2", "return 3")
    seen.add(_digest(tree))
    assert len(seen) == 3


def test_a_global_that_is_only_stored_counts(tree):
    grow = "TOTAL = 5\n\ndef grow():\n    global TOTAL\n    TOTAL += 1\n\n\nLIMIT ="
    _edit(tree, EXPERIMENT, "LIMIT =", grow)
    _edit(tree, EXPERIMENT, "    seven()", "    seven(), grow()")
    before = _digest(tree)
    _edit(tree, EXPERIMENT, "TOTAL = 5", "TOTAL = 6")
    assert _digest(tree) != before


def test_constants_differ_by_value_and_by_type(tree):
    seen, last = set(), "LIMIT = 3"
    values = ["0", "False", "None", "''", "b''", "0.0", "1", "True", "'1'", "[]", "()"]
    for value in values:
        _edit(tree, EXPERIMENT, last, f"LIMIT = {value}\n")
        last = f"LIMIT = {value}\n"
        seen.add(_digest(tree))
    assert len(seen) == len(values)


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
    last = "0" if made["digest"][-1] != "0" else "1"
    near = replace(fresh, provenance={**made, "digest": made["digest"][:-1] + last})
    assert digest.is_stale(near, **where)


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
    found = digest.code_digest(name)
    assert len(found) == digest.DIGITS
    assert found == digest.closure(name).digest()  # helpers and snippets too


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


PLOT = """
from scripts.measure.draw import {names}

def measure(size):
    return 1

def plot(record, words):
    return {names}
"""


@pytest.fixture
def drawn_with(tmp_path, monkeypatch):
    """The digest of a plot that uses some names of a draw.py with this text."""

    def part(names: str, text: str, plot: str = PLOT) -> str:
        folder = tmp_path / "scripts" / "measure"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "draw.py").write_text(text, encoding="utf-8")
        own = plot.replace("{names}", names) if names else "def plot():\n    return 1\n"
        (tmp_path / "toy_loss.py").write_text(own, encoding="utf-8")
        monkeypatch.setattr(digest, "ROOT", tmp_path)
        monkeypatch.setattr(digest, "EXPERIMENTS", tmp_path)
        digest._parsed.cache_clear()
        return digest.part_digest("toy_loss", ("plot",))

    return part


STROKES = "A = 1\n\ndef a():\n    return A\n\ndef b():\n    return 2\n"


@pytest.mark.parametrize(
    ("names", "old", "new", "same"),
    [
        ("a", "A = 1", "A = 2", False),
        ("a", "return A", "return -A", False),
        ("a", "return 2", "return 3", True),
        ("b", "return 2", "return 3", False),
        ("b", "A = 1", "A = 2", True),
        ("a, b", "return 2", "return 3", False),
        ("", "A = 1", "A = 2", True),
        ("a", "A = 1", "A = 1  # said", True),
    ],
)
def test_a_figure_ages_by_the_strokes_it_uses(drawn_with, names, old, new, same):
    before = drawn_with(names, STROKES)
    after = drawn_with(names, STROKES.replace(old, new))
    assert (before == after) == same


def test_a_whole_import_of_the_strokes_counts_whole(drawn_with):
    source = "from scripts.measure import draw as {names}"
    whole = PLOT.replace("from scripts.measure.draw import {names}", source)
    texts = STROKES, STROKES.replace("return 2", "return 3")
    assert drawn_with("draw", texts[0], whole) != drawn_with("draw", texts[1], whole)


@pytest.fixture
def small(tree, monkeypatch):
    monkeypatch.setattr(digest, "ROOT", tree)
    return tree


def test_a_snippet_counts_with_the_snippets_that_it_imports(small):
    def found():
        text = "from snippets.page.shown import double\nimport torch\n"
        return digest.module_digest("snippets.page.shown"), digest.snippets_digest(text)

    before = found()
    assert before[0] == before[1]
    _edit(small, SHOWN_FILE, "Twice.", "Two times.")
    assert found() == before
    _edit(small, "snippets/page/earlier.py", "ONE = 1", "ONE = 2")
    assert not set(found()) & set(before)
    nothing = digest.snippets_digest("import torch\n")
    helper = "from scripts.measure.counting import count\n"
    assert digest.snippets_digest(helper) == nothing  # no snippet
    with pytest.raises(RecordError, match=r"no module snippets\.page\.none"):
        digest.module_digest("snippets.page.none")


def test_a_file_counts_without_its_comments(tree):
    path = tree / SHOWN_FILE
    before = digest.file_digest(path)
    _edit(tree, SHOWN_FILE, "[start:double]", "[start:twice]")
    _edit(tree, SHOWN_FILE, "Twice.", "Two times.")
    assert digest.file_digest(path) == before
    _edit(tree, SHOWN_FILE, "2 * x", "3 * x")
    assert digest.file_digest(path) != before
    assert len(before) == digest.DIGITS
