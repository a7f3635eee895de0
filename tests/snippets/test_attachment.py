"""What tells PyTorch of the kernels: exports, second derivatives, autocast, names."""

import pytest
import torch

from snippets.fused_residual.operator import add_rms_norm
from snippets.memory_bound import attachment
from snippets.memory_bound.soft_cap import soft_cap
from snippets.qk_norm_rope.operator import angles, qk_norm_rope
from snippets.triton_layer_norm.operator import layer_norm
from snippets.triton_rms_norm.operator import rms_norm

GAIN, TABLES = torch.linspace(0.5, 2, 12), angles(4, 12)
CASES = {  # name -> the function of x alone, the shape of x
    "rms_norm": (lambda x: rms_norm(x, GAIN), (6, 12)),
    "layer_norm": (lambda x: layer_norm(x, GAIN, GAIN), (6, 12)),
    "add_rms_norm": (lambda x: add_rms_norm(x, x, GAIN)[1], (6, 12)),
    "qk_norm_rope": (lambda x: qk_norm_rope(x, GAIN, *TABLES), (6, 4, 2, 12)),
    "soft_cap": (lambda x: soft_cap(x, 3.0), (6, 12)),
}
each_case = pytest.mark.parametrize("name", CASES)


def drawn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


@each_case
def test_exported_as_one_node_for_any_batch(name):
    function, (batch, *rest) = CASES[name]

    class Model(torch.nn.Module):
        def forward(self, x):
            return function(x)

    sizes = ({0: torch.export.Dim("batch", min=2, max=64)},)
    program = torch.export.export(Model(), (drawn(batch, *rest),), dynamic_shapes=sizes)
    called = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert called.count(f"norms.{name}.default") == 1
    assert set(called) <= {f"norms.{name}.default", "<built-in function getitem>"}
    x = drawn(9, *rest)
    assert torch.equal(program.module()(x), function(x))


@each_case
@pytest.mark.parametrize("needed", [False, True], ids=["constant", "needed"])
def test_a_second_derivative_is_an_error(name, needed):
    """Also where the gradient from above needs none: then torch's own is a zero."""
    function, shape = CASES[name]
    x = drawn(*shape).requires_grad_()
    dy = torch.ones(shape, requires_grad=needed)
    y = function(x)
    assert not torch.autograd.grad(y, x, dy, retain_graph=True)[0].requires_grad
    (dx,) = torch.autograd.grad(y, x, dy, create_graph=True)
    with pytest.raises(RuntimeError, match=r"norms::.*backward: no second derivative"):
        (x.square().sum() + dx.square().sum()).backward()


@each_case
def test_autocast_leaves_dtypes_alone(name):
    function, shape = CASES[name]
    x = drawn(*shape)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(function(x), function(x))
        assert function(x).dtype is torch.float32
        assert function(x.bfloat16()).dtype is torch.bfloat16


def test_a_cell_may_run_again():
    """A name's second definition takes the place of the first."""
    for factor in (2, 3):

        @attachment.operator("cells::times")
        def times(x: torch.Tensor) -> torch.Tensor:
            return factor * x  # noqa: B023

        @attachment.fake(times)
        def _(x):
            return torch.empty_like(x)

        assert times(torch.ones(1)) == factor
        assert torch.ops.cells.times(torch.ones(1)) == factor
        compiled = torch.compile(times, fullgraph=True, backend="aot_eager")
        assert compiled(torch.ones(1)) == factor
