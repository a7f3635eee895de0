"""Known-wrong variants are compiled from the snippet's text with a change."""

import pytest
import torch

from scripts.site.reading.source import SourceError
from snippets.rms_norm.backward import rms_norm_backward
from snippets.rms_norm.reference import RMSNorm, rms_norm
from tests import wrong


def test_a_change_in_the_module():
    half = wrong.variant(
        rms_norm, "half", "wide * torch.rsqrt => 0.5 * wide * torch.rsqrt"
    )
    x = torch.randn(3, 8)
    assert half is not rms_norm
    assert torch.equal(half(x), 0.5 * rms_norm(x))
    inside = wrong.variant(RMSNorm, "inside", "x, self.gain => 2 * x, self.gain")(8)
    assert torch.equal(inside(x), rms_norm(2 * x, torch.ones(8)))


def test_a_change_in_a_snippet_that_the_module_imports():
    from snippets.rms_norm.folding import to_rms_norm

    change = "y.to(x.dtype) => y.to(x.dtype) + 1"
    shifted = wrong.variant(to_rms_norm, "shifted", change)
    norm, reader = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)
    x = torch.randn(3, 8)
    assert torch.equal(shifted(norm, reader)(x), rms_norm(x, torch.ones(8), 1e-5) + 1)


def test_a_change_that_does_not_apply():
    with pytest.raises(SourceError, match=r"rms.* stands \d+ times"):
        wrong.variant(rms_norm_backward, "x", "rms => y")


def test_only_an_assertion_rejects(known_wrong):
    def check(norm):
        norm(None)

    with pytest.raises(AttributeError):
        known_wrong.rejected_by([check], rms_norm)


def test_what_a_page_shows_does_not_run(capsys):
    wrong.variant(rms_norm_backward, "shown", "u - n * => u + n *")
    assert capsys.readouterr().out == ""
