"""Every style of writing a right model is read, and raises no alarm."""

import re

import pytest

pytest.importorskip("transformers")

import torch

from scripts.examine import faults, text
from tests.examine import styles
from tests.examine.test_faults import one_thread, seen  # noqa: F401


@pytest.mark.parametrize("name", styles.RIGHT)
def test_a_right_model_is_read(name):
    factory, kind, gain, equations = styles.RIGHT[name]
    found = seen(factory)
    judged = faults.judged(found, True)
    assert judged["faults"] == []
    for row in found.rows:
        assert row["status"] == "resolved", row["reason"]
        at = {norm[0]: norm for norm in row["norms"]}
        assert at["attention-in"][3:5] == [kind, gain]
        assert row["placement"] == "pre"
        said = [re.sub(r"N\[[^\]]*\]", "N", line) for line in row["equations"]]
        assert equations is None or said == equations
        assert "none" not in text.row_lines(row, "en")[0]


@pytest.mark.parametrize("name", styles.NO_ALARM)
def test_no_rule_alarms_beside_its_fault(name):
    assert faults.judged(seen(styles.NO_ALARM[name]), True)["faults"] == []


class Strange(styles.Vectors):
    """A root of rows that belongs to no norm."""

    def forward(self, x):
        root = (1 + x.square().mean(-1, keepdim=True)).sqrt()
        x = x + self.attention(torch.tanh(x) / root * self.w1)
        return x + self.feed_forward(x)


def test_what_may_be_a_norm_and_is_not_read_is_said():
    (row,) = seen(styles.of(Strange)).rows
    for language, said in (("en", "Placement: not read."), ("zh", "位置：未读出。")):
        first, second, *_ = text.row_lines(row, language)
        assert first == said
        assert "sqrt in block (test_styles.py:" in second


def test_a_final_norm_that_is_not_read_is_not_called_missing():
    class Last(styles.Decoder):
        def __init__(self):
            super().__init__()
            del self.norm

        def forward(self, tokens):
            x = self.stream(tokens)
            root = (1 + x.square().mean(-1, keepdim=True)).sqrt()
            return self.head(torch.tanh(x) / root)

    found = faults.judged(seen(Last), True)
    assert found["faults"] == []
    assert [entry[0] for entry in found["remarks"]] == ["unread"]


def test_a_second_stream_is_said_to_be_left_out():
    found = seen(styles.OfJoint)
    for row in found.rows:
        assert row["status"] == "partial"
        english, chinese = (text.row_lines(row, x)[1] for x in ("en", "zh"))
        assert "other stream" in english and "长度不同的流" in chinese
    assert faults.judged(found, False)["faults"] == []
