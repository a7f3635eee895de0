"""The experiment measures what its page says, and says it in both languages."""

from dataclasses import replace

import pytest
import torch

from scripts.experiments import fp16_overflow
from tests.experiment_checks import check_facts, draw, select

LINES = [4] * 6


def test_rows(rows):
    assert len(rows) == 4 * 3 * 5 * len(fp16_overflow.factors("tiny"))
    for row in rows:
        for name in ("infinite", "nan", "beyond"):
            assert len(row[name]) == 4 and all(0 <= v <= 1 for v in row[name])
        broken = sum(row["infinite"]) + sum(row["nan"])
        assert (row["first"] in fp16_overflow.PLACES) == (broken > 0)


@pytest.mark.parametrize("sandwich", [False, True])
def test_forward_is_the_sites_stack(sandwich):
    """In float64, against the blocks themselves with the mask switched off."""
    blocks = fp16_overflow.make_blocks("tiny", sandwich, "weights", 2.0, 3)
    x = torch.randn(2, 5, 32, dtype=torch.float64)
    seen = {place: 0 for place in fp16_overflow.PLACES}

    def note(place, tensor):
        seen[place] += tensor.numel()

    found = [fp16_overflow.forward(blocks, x, relaxed, note) for relaxed in (0, 1)]
    assert torch.allclose(*found, rtol=1e-9)
    wanted = x
    for block in blocks:
        y = block.pre(wanted)
        if hasattr(block.branch, "up"):
            y = block.branch(y)
        else:
            q, k = block.branch.queries_and_keys(y)
            v = block.branch.split(block.branch.value(y))
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
            y = block.branch.output(y.transpose(1, 2).flatten(start_dim=2))
        wanted = wanted + (block.post(y) if sandwich else y)
    assert torch.allclose(found[0], wanted, rtol=1e-9)
    assert seen == {"logits": 800, "hidden": 5120, "output": 2560, "stream": 3200}


def test_factor_reaches_the_right_matrices():
    plain = fp16_overflow.make_blocks("tiny", True, "stream", 10.0, 0).state_dict()
    for sweep, endings in fp16_overflow.SWEEPS.items():
        blocks = fp16_overflow.make_blocks("tiny", True, sweep, 10.0, 0)
        for name, value in blocks.state_dict().items():
            grown = name.split(".")[-2] in endings
            assert torch.equal(value, plain[name] * (10 if grown else 1))


def test_half_products_accumulate_in_float32():
    """Partial sums beyond float16 return, and one rounding is left."""
    a = torch.full((1, 64), 200.0).half()
    b = torch.cat([torch.full((32, 1), 200.0), torch.full((32, 1), -200.0)]).half()
    assert (a @ b).item() == 0  # 32 * 40000 on the way
    assert (a[None, None] @ b[None, None]).item() == 0
    torch.manual_seed(0)
    for shape in ((64, 64), (4, 4, 32, 16)):
        a, b = torch.randn(2, *shape).half()
        gap = (a @ b.mT).float() - (a.float() @ b.float().mT).half().float()
        assert gap.abs().max() <= 2.0**-6  # one unit between 16 and 32


def test_counts():
    counts = fp16_overflow.Counts()
    counts("hidden", torch.tensor([1.0, 7e4, -7e4, 65504.0]))
    assert counts.first is None
    counts("logits", torch.tensor([float("inf"), 1.0]))
    counts("stream", torch.tensor([float("nan")]))
    assert counts.first == "logits"
    for place in fp16_overflow.PLACES:
        counts.total[place] = max(counts.total[place], 1)
    assert counts.shares(counts.beyond)[:2] == [0.5, 0.5]  # an infinity is beyond
    assert counts.shares(counts.infinite) == [0.5, 0, 0, 0]
    assert counts.shares(counts.nan) == [0, 0, 0, 1]


def test_claims_that_hold_at_any_size(rows):
    """What each remedy removes, and what is left."""
    top = max(row["factor"] for row in rows)
    for row in select(rows, sweep="weights", factor=top):
        if not row["method"].endswith("relaxed"):
            assert row["first"] == "logits"
        _, _, output, stream = row["beyond"]
        assert output > 0
        assert (stream == 0) == row["method"].startswith("sandwich")
    for row in select(rows, sweep="weights", factor=100.0):
        if row["method"] in ("pre_relaxed", "sandwich_relaxed"):
            assert row["beyond"][0] == row["infinite"][0] == 0
        else:
            assert row["first"] == "logits"
    for row in select(rows, sweep="stream", factor=1.0):
        assert row["first"] is None


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""
    rows = []
    for row in record.rows:
        broken = row["factor"] >= 100 and row["sweep"] == "weights"
        made = {
            "first": "hidden" if broken else None,
            "infinite": [0.25 if broken else 0.0] * 4,
            "nan": [0.5 if broken else 0.0] * 4,
            "beyond": [0.1, 0.02, 0.003, 1.0],
        }
        rows.append({**row, **made})
    made = replace(record, rows=rows)
    expected = {
        "seeds": "5",
        "branches": "4",
        "weights_pre_breaks": "100",
        "weights_pre_first_hidden": "5",
        "weights_pre_first_logits": "0",
        "writers_sandwich_breaks": "–",
        "pre_logits_beyond": "10%",
        "pre_output_beyond": "0.3%",
        "sandwich_stream_beyond": "100%",
        "pre_stream_lost": "75%",
    }
    check_facts(fp16_overflow, made, expected)


def test_panels_have_one_scale(record):
    axes = draw(fp16_overflow, record, "en").axes
    assert len({axis.get_ylim() for axis in axes}) == 1
