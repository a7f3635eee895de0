"""Every way gives the same outputs and a gradient, and can be compiled and exported."""

import pytest
import torch

from scripts.experiments import attachment_overhead as experiment
from tests.experiment_checks import (
    check_facts,
    check_facts_and_words,
    draw,
    tiny_record,
)

OURS = [way for way in experiment.WAYS if not way.startswith("F.")]
OPERATORS = [way for way in OURS if way != experiment.FUNCTION]


def inputs():
    return torch.randn(4, 8, requires_grad=True), torch.ones(8, requires_grad=True)


def test_rows(rows):
    found = [(row["mode"], row["way"]) for row in rows]
    assert found == [(m, way) for m in experiment.MODES for way in experiment.WAYS]
    assert all(len(row["seconds"]) == 3 and min(row["seconds"]) > 0 for row in rows)
    assert len(experiment.measure("small")) == len(experiment.MODES)


@pytest.mark.parametrize("way", experiment.WAYS)
def test_every_way_has_outputs_and_gradients(way):
    own = inputs()
    y = experiment.ways()[way](*own)
    assert (y.shape, y.dtype, y.requires_grad) == ((4, 8), torch.float32, True)
    found = torch.autograd.grad(y, own, torch.ones(4, 8))
    assert [each.shape for each in found] == [(4, 8), (8,)]


class Model(torch.nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = experiment.ways()[way]
        self.gain = torch.nn.Parameter(torch.ones(8))

    def forward(self, x):
        return self.way(x, self.gain)


@pytest.mark.parametrize("way", [*OURS, experiment.TORCH])
def test_compiled_and_exported(way):
    """The page says which ways stay one node."""
    model = Model(way)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    compiled(inputs()[0]).sum().backward()
    assert model.gain.grad.shape == (8,)
    program = torch.export.export(model, (torch.randn(4, 8),))
    called = [str(node.target) for node in program.graph.nodes]
    operators = ("attachment.", "aten.layer_norm.")
    named = [name for name in called if name.startswith(operators)]
    assert len(named) == (way in (*OPERATORS, experiment.TORCH))


def made_up(rows):
    """As many microseconds as the place among the ways, twice that backward."""
    return [
        {
            **row,
            "seconds": [1e-6 * (1 + experiment.WAYS.index(row["way"])) * (1 + (i == 2))]
            * 3,
        }
        for i, mode in enumerate(experiment.MODES)
        for row in rows
        if row["mode"] == mode
    ]


def test_facts_say_what_the_rows_say(rows, record):
    check_facts_and_words(experiment, record)
    told = tiny_record("attachment_overhead", made_up(rows), experiment.SEEDS)
    expected = {
        "noise": "1e+02%",
        "rounds": "3",
        "custom_op_forward": "1",
        "function_forward": "5",
        "function_forward_and_backward": "10",
    }
    check_facts(experiment, told, expected)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(rows, lang):
    told = tiny_record("attachment_overhead", made_up(rows), experiment.SEEDS)
    figure = draw(experiment, told, lang)
    medians = [line.get_xdata()[0] for line in figure.axes[0].lines[1::2]]
    assert medians == pytest.approx([1, 3, 4, 5, 6, 7])
    for axis in figure.axes:
        low, high = axis.get_xlim()
        every = [x for line in axis.lines for x in line.get_xdata()]
        assert low == 0 < max(every) < high
