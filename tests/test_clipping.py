"""No loss that a page prints was cut, to a table's, to a guess's or to the first one.

What is cut cannot be told apart: a run that diverged, one on a plateau and one that has
only not finished come out as the same number.
"""

import ast

import pytest

from scripts.measure.records import EXPERIMENTS, experiments

BOUNDS = ("frequenc", "uniform", "[0]")  # a table, a guess, the loss at the start
DEFINED = {  # where a published measure is defined with the cut, and says so
    ("qk_norm_stability", "_capped_losses"): "Wortsman's sensitivity",
    ("warmup_sensitivity", "_sensitivities"): "Wortsman's sensitivity",
}


def violations(text: str, experiment: str) -> list[str]:
    """'function: call' for each loss cut to something else than itself."""
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        if (experiment, function.name) in DEFINED:
            continue
        for call in ast.walk(function):
            if not isinstance(call, ast.Call) or len(call.args) != 2:
                continue
            name, said = ast.unparse(call.func), ast.unparse(call)
            cut = name == "min" and any(bound in said for bound in BOUNDS)
            cut = cut and any(w in said for w in ("loss", "after", "run", "row"))
            drawn = function.name == "plot" and name == "min"
            if cut or (drawn and any(edge in said for edge in ("ceiling", "top"))):
                found.append(f"{experiment}.{function.name}: {said}")
    return found


def test_experiments(no_violations):
    texts = {n: (EXPERIMENTS / f"{n}.py").read_text("utf-8") for n in experiments()}
    no_violations(
        each for name, text in texts.items() for each in violations(text, name)
    )
    for name, function in DEFINED:
        assert f"def {function}(" in texts[name]


@pytest.mark.parametrize(
    "body",
    [
        "return frequencies if after is None else min(after, frequencies)",
        "return [min(run[-1], run[0]) for run in runs]",
        "return min(row['values'][1], uniform)",
    ],
)
def test_bad(body):
    text = f"def _final(row, runs, after, frequencies, uniform):\n    {body}\n"
    assert len(violations(text, "toy_loss")) == 1


def test_a_line_bent_at_the_edge_of_a_figure():
    text = "def plot(losses, ceiling):\n    draw([min(x, ceiling) for x in losses])\n"
    assert len(violations(text, "toy_loss")) == 1


def test_good():
    text = "def _best(rates, losses):\n    return min(rates, key=losses.get)\n"
    assert violations(text, "toy_loss") == []
