"""Every style of writing a right model is read, and raises no alarm."""

import re

import pytest

pytest.importorskip("transformers")

import torch

from scripts.examine import faults, flow, text
from scripts.examine.load import Refusal
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


@pytest.mark.parametrize(
    ("block", "places"),
    [(styles.Unknown, 2), (styles.HalfUnknown, 1), (styles.OnOutputs, 1)],
)
def test_what_removes_the_scale_and_is_not_read_is_said(block, places):
    found = seen(styles.of(block))
    judged = faults.judged(found, True)
    assert [rule for rule, *_ in judged["faults"]] == []
    said = [places for rule, places, _ in judged["remarks"] if rule == "scale-lost"]
    assert sum(map(len, said)) == places
    assert all("styles.py:" in place for place, *_ in said)
    for row in found.rows:
        assert text.row_lines(row, "en")[0] == "Placement: not read."


def test_a_last_norm_that_no_probe_knows_is_not_called_missing():
    found = faults.judged(seen(styles.LastUnknown), True)
    assert found["faults"] == []
    assert [rule for rule, *_ in found["remarks"]] == ["scale-lost"]


def test_a_stream_without_norms_is_said_to_have_none():
    for row in seen(styles.of(styles.Bare)).rows:
        assert text.row_lines(row, "en")[0] == "Placement: none."


def test_a_block_whose_result_shows_no_tensor_is_named():
    with pytest.raises(Refusal) as caught:
        seen(styles.returning(styles.Opaque))
    assert "layers.0 returns an Opaque, no tensor seen in it" in str(caught.value)


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
        assert row["qk"] == []  # the other stream's norm is none of a latent
        assert row["status"] == "partial"
        english, chinese = (text.row_lines(row, x)[1] for x in ("en", "zh"))
        assert "other stream" in english and "长度不同的流" in chinese
    assert faults.judged(found, False)["faults"] == []


@pytest.mark.parametrize(
    ("attention", "qk"),
    [
        (styles.Turned, [[s, "RMSNorm", "none", "head", "after"] for s in "qk"]),
        (styles.Absorbed, [["latent-kv", "RMSNorm", "w", "latent", "none"]]),
    ],
)
def test_norms_inside_attention(attention, qk):
    found = seen(styles.with_attention(attention))
    (row,) = found.rows
    assert row["qk"] == qk
    outputs = {norm[7] for norm in row["norms"] if norm[4] == "none"}
    assert outputs <= {"in fp32, then cast → bfloat16"}
    assert faults.judged(found, True)["faults"] == []


def test_norms_between_the_parts_of_a_layer_that_no_module_holds():
    (row,) = seen(styles.Sphere).rows
    assert row["equations"] == [
        "a = N[unit_2](c⊙x + c⊙N[unit](Attention(x)))",
        "y = N[unit_4](c⊙a + c⊙N[unit_3](FFN(a)))",
    ]
    assert row["differ"] == "" and not any("weight" in n[1] for n in row["norms"])


def test_a_second_input_is_no_later_token():
    pictures = torch.randn(2, 7, styles.D)
    tokens = torch.randint(0, 61, (2, 12))

    given = {"tokens": tokens, "pictures": pictures}
    assert flow.reach(styles.Reading().eval(), given) == "past"


def test_a_stream_weighed_by_a_matrix_is_said_to_be_no_sum():
    class OfMixed(styles.Decoder):
        def __init__(self):
            super().__init__()
            self.layers = styles.nn.ModuleList(styles.Mixed() for _ in range(3))

    (row,) = seen(OfMixed).rows
    said = text.row_lines(row, "en")[0]
    assert said == (
        "not resolved: what the block returns is no sum of tensors seen on the way."
    )
