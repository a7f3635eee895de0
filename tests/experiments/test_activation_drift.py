"""The experiment measures what its page says, and says it in both languages."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from scripts.experiments import activation_drift
from tests.experiment_checks import check_facts, draw, select

SETTING = activation_drift.SIZES["tiny"]
LINES = [4] * 6 + [3] * 6


def test_rows(rows):
    places = activation_drift.kept(SETTING["depth"])
    assert places[:10] == [*range(9), 12] and places[-1] == SETTING["depth"]
    assert activation_drift.kept(64)[-1] == 64
    assert len(rows) == 3 * 4 * 4 * 5
    cells = {(r["activation"], r["norm"], r["init"], r["seed"]) for r in rows}
    assert len(cells) == len(rows)
    for row in rows:
        for name in ("size", "spread", "gradient"):
            assert len(row[name]) == len(places)
        assert len(row["gradient_of_8"]) == 9
        assert all(value > 0 for value in row["size"] + row["gradient"])
        assert row["gradient_zeros"] == 0 and row["overflow"] is None  # 16 layers


REFERENCE = {
    "none": lambda y: y,
    "BatchNorm": lambda y: F.batch_norm(y, None, None, training=True),
    "LayerNorm": lambda y: F.layer_norm(y, y.shape[-1:]),
    "RMSNorm": lambda y: F.rms_norm(y, y.shape[-1:], eps=1e-5),
}


@pytest.mark.parametrize("norm", activation_drift.NORMS)
@pytest.mark.parametrize("init", activation_drift.INITS)
def test_stack_is_torchs(rows, norm, init):
    """The same network from torch's own norms, one gradient a layer."""
    d, batch = SETTING["d"], SETTING["batch"]
    torch.manual_seed(0)
    x, sent = torch.randn(2, batch, d).double()
    layers = activation_drift.make_stack(init, SETTING["depth"], d, "cpu")
    h, states = x.requires_grad_(), [x]
    for layer in layers:
        h = torch.relu(REFERENCE[norm](h @ layer.weight.double().T + layer.bias))
        h.retain_grad()
        states.append(h)
    (h * sent).sum().backward()
    (row,) = select(rows, activation="ReLU", norm=norm, init=init, seed=0)
    for index, place in enumerate(activation_drift.kept(SETTING["depth"])):
        state = states[place]
        wanted = {
            "size": state.norm() / state.numel() ** 0.5,
            "gradient": state.grad.norm() / state.numel() ** 0.5,
            "spread": state.var(dim=0).mean().sqrt(),
        }
        for name, value in wanted.items():
            assert row[name][index] == pytest.approx(value.item(), rel=1e-6, abs=1e-14)


def test_initializations():
    torch.manual_seed(0)
    deviations = {"default": 1 / math.sqrt(3 * 128), "Xavier": 128**-0.5}
    deviations |= {"He": (2 / 128) ** 0.5, "unit normal": 1.0}
    assert set(deviations) == set(activation_drift.INITS)
    for init, wanted in deviations.items():
        (layer,) = activation_drift.make_stack(init, 1, 128, "cpu")
        assert layer.weight.std().item() == pytest.approx(wanted, rel=0.03)
        assert layer.weight.dtype == torch.float32
        bias = layer.bias.std().item()
        assert bias == (pytest.approx(wanted, rel=0.3) if init == "default" else 0)


def test_claims_that_hold_at_any_size(rows):
    def middle(quantity, deep=True, **wanted):
        values = activation_drift._at(select(rows, **wanted), quantity, deep)
        return sorted(values)[len(values) // 2]

    plain = dict(activation="ReLU", norm="none")
    # The default settles on a floor while its gradient goes on falling.
    eight, end = (middle("size", deep, init="default", **plain) for deep in (0, 1))
    assert 0.5 < end / eight < 2 and end < 0.3
    gradient = [middle("gradient", deep, init="default", **plain) for deep in (0, 1)]
    assert gradient[1] < gradient[0] / 100
    # Without biases a ReLU stack only passes a factor on.
    spreads = [middle("spread", init=i, **plain) for i in ("Xavier", "He")]
    assert spreads[0] == pytest.approx(spreads[1], rel=1e-5)
    # Behind a norm the scale of the weights is gone, up to epsilon.
    for norm in activation_drift.NORMS[1:]:
        for quantity in ("size", "gradient"):
            found = [
                middle(quantity, norm=norm, init=init, activation="tanh")
                for init in ("Xavier", "He", "unit normal")
            ]
            assert found == pytest.approx([found[0]] * 3, rel=0.01)
    # What BatchNorm's gradient does over depth, LayerNorm's does not.
    growth = [
        middle("gradient", norm=norm, activation="ReLU")
        for norm in ("BatchNorm", "LayerNorm")
    ]
    assert growth[0] > 3 * growth[1]


def test_overflow_is_told_from_growth(monkeypatch):
    """22.6 a layer leaves float32 (3.4e38) where the float64 size says so."""
    deep = dict(d=64, batch=4, depth=60)
    monkeypatch.setitem(activation_drift.SIZES, "tiny", deep)
    rows = activation_drift.run("tiny", "ReLU", "none", 0)
    by_init = {row["init"]: row for row in rows}
    row = by_init["unit normal"]
    places = activation_drift.kept(60)
    sizes = dict(zip(places, row["size"], strict=True))
    before, behind = (row["overflow"] // 4 + step for step in (-1, 1))
    assert sizes[4 * before] < 3.4e38 < sizes[4 * behind] * 1e3
    assert math.isfinite(row["size"][-1]) and row["gradient_overflow"] is not None
    assert by_init["Xavier"]["overflow"] is None


@pytest.mark.parametrize(
    ("norm", "activation", "wanted"),
    [
        ("LayerNorm", "ReLU", 1.0),
        ("BatchNorm", "ReLU", (math.pi / (math.pi - 1)) ** 0.5),
        ("RMSNorm", "GELU", 1.0348),  # 4 million draws
        ("BatchNorm", "GELU", 1.1477),
        ("LayerNorm", "tanh", 1.0854),
        ("BatchNorm", "tanh", 1.0854),
    ],
)
def test_predicted_growth(norm, activation, wanted):
    found = activation_drift.predicted_growth(norm, activation)
    assert found == pytest.approx(wanted, rel=1e-3)


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""
    rows = []
    for row in record.rows:
        count = len(row["size"])
        made = {
            "size": [1.0] * (count - 1) + [2e-7],
            "spread": [0.5] * (count - 1) + [1e-8],
            "gradient": [3e5] + [2.0] * (count - 1),
            "gradient_of_8": [0.25] + [0.5] * 8,
        }
        loud = row["norm"] == "none" and row["init"] == "unit normal"
        made["overflow"] = 7 + row["seed"] if loud else None
        rows.append({**row, **made})
    made = replace(record, rows=rows)
    expected = {
        "seeds": "5",
        "relu_he_size_8": "1.0",
        "relu_he_size_end": "2×10⁻⁷",
        "relu_he_spread_8": "0.50",
        "relu_he_spread_end": "0.050",
        "relu_he_gradient_8": "0.50",
        "relu_he_gradient_end": "2×10⁵",
        "batchnorm_tanh_growth": f"{150000 ** (1 / 16):.2f}",
        "norm_size_by_init": "1.00",
        "overflowing": "10",
        "overflow_tried": "10",
        "overflow_elsewhere": "5",
        "overflow_layer": "7–11",
    }
    check_facts(activation_drift, made, expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00264, "0.0026"),
        (0.0995, "0.10"),
        (0.999, "1.0"),
        (9.96, "10"),
        (77.4, "77"),
        (190, "190"),
        (3.28e8, "3×10⁸"),
        (1.04e-25, "10⁻²⁵"),
        (9.9e-4, "10⁻³"),
    ],
)
def test_number(value, text):
    assert activation_drift._number(value) == text


def test_a_row_of_panels_has_one_scale(record):
    axes = draw(activation_drift, record, "en").axes
    for first in range(0, 12, 3):
        assert len({axis.get_ylim() for axis in axes[first : first + 3]}) == 1
