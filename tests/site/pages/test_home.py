"""The home page's live token computes what torch does; its claims hold."""

import contextlib
import json
import re

import pytest
import torch
from torch.nn import functional as F

from scripts.site.data import claims, reference_lists
from scripts.site.pictures import explore
from scripts.site.reading.source import SourceError
from tests import javascript

TOKENS = [
    [1.2, -0.4, 0.7, 2.1, -1.3, 0.2, 0.9, -0.6],
    [0.0] * 8,
    [3.0] * 8,
    [1e-4, -2e-4, 0.0, 5e-5, 1e-4, 0.0, 0.0, 3e-4],
    [1e3, -2.0, 5.5, 0.25, 1e-3, 7.0, -40.0, 12.0],
]


@contextlib.contextmanager
def running(old: str = "", new: str = ""):
    """The page's script, with the one place that reads ``old`` reading ``new``."""
    with javascript.context(explore.joined(explore.HOME), old, new) as context:
        yield context


@pytest.fixture(scope="module")
def script():
    with running() as context:
        yield context


def right(x, eps):
    x = torch.tensor(x, dtype=torch.float64)
    return F.rms_norm(x, (8,), eps=eps), F.layer_norm(x, (8,), eps=eps)


def agrees(script, x, eps) -> bool:
    calls = [f"normed({json.dumps(norm)}, {x}, {eps})" for norm in ("rms", "layer")]
    found = [json.loads(script.eval(f"JSON.stringify({call})")) for call in calls]
    found = [torch.tensor(y, dtype=torch.float64) for y in found]
    pairs = zip(found, right(x, eps), strict=True)
    return all(torch.allclose(a, b, rtol=1e-6, atol=1e-12) for a, b in pairs)


@pytest.mark.parametrize("eps", [1e-6, 1e-5, 1e-2])
@pytest.mark.parametrize("token", TOKENS, ids=str)
def test_the_live_token_computes_as_torch(script, token, eps):
    assert agrees(script, token, eps)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('norm === "layer" }', "true }"),
        ('norm === "layer" }', "false }"),
        ("shared(norm, [1, 1, x.length])", "shared(norm, [1, x.length, 1])"),
        ("gain: x.map(() => 1)", "gain: x"),
        ("x.map(() => 1), eps,", "x.map(() => 1), eps: 0,"),
    ],
)
def test_a_wrong_formula_does_not_agree(old, new):
    with running(old, new) as wrong:
        assert not all(agrees(wrong, token, 1e-2) for token in TOKENS)


def test_the_dare_is_half_true():
    chosen = [row for _, row in claims.everything() if row.get("dare")]
    assert [row["dare"] for row in sorted(chosen, key=lambda row: row["dare"])] == [
        *range(1, len(chosen) + 1)
    ]
    verdicts = [row["verdict"] for row in chosen]
    assert verdicts.count("holds") == verdicts.count("wrong") == len(chosen) / 2


def test_a_dare_is_true_or_false(monkeypatch):
    topic, row = claims.everything()[0]
    monkeypatch.setattr(
        claims,
        "everything",
        lambda: [(topic, row | {"verdict": "holds-when", "dare": 1})],
    )
    with pytest.raises(SourceError, match="true or false"):
        claims.dare("en")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_map_leads_to_every_section(language):
    shown = reference_lists.contents(language)
    for path in ("learn/index.md", "kernels/memory-bound.md", "interview/quiz.md"):
        assert f"]({path})<br>" in shown
    names = re.findall(r"\[([^]]+)\]\(", shown)
    assert len(names) == len(set(names)) > 15
