"""Who computes an operation: ours, torch as it comes, a chain of operations, peers.

A provider takes a cell's inputs and gives a call without arguments, which returns
what the operation lists. A provider that is not here, or cannot do a cell, raises
Missing with its reason: a row says so, nothing is left out in silence.
"""

from collections.abc import Callable
from functools import cache, partial

from scripts.measure.kernels.cells import EPS, LARGE, Cell

BACKEND = "inductor"


class Missing(Exception):
    """Why a provider has no number here."""


def _built_on(cell: Cell, inputs: dict, norm: Callable) -> Callable:
    """A call of the cell's operation built on a norm with a gradient.

    Of a backward cell it runs the backward pass alone, on a forward pass made before;
    of both passes it runs both.
    """
    from torch.autograd import grad

    names = [k for k in ("x", "branch", "gain", "bias", "cos", "sin") if k in inputs]
    given = [inputs[name] for name in names]
    if not cell.backward:
        single = len(cell.spec.outputs) == 1
        return lambda: (norm(*given),) if single else norm(*given)
    leaves = [each.detach().requires_grad_() for each in given]
    slopes = [inputs[name] for name in ("dstream", "dy") if name in inputs]
    if len(cell.passes) == 2:
        call = lambda: grad(norm(*leaves), leaves, slopes)  # noqa: E731
    else:
        outputs = norm(*leaves)
        call = lambda: grad(outputs, leaves, slopes, retain_graph=True)  # noqa: E731
    added = "branch" in inputs  # whose gradient is that of x
    return lambda: call()[::2] if added else call()


def _completed(cell: Cell, rms: Callable, layer: Callable) -> Callable:
    """The cell's function, made of norms: alone, after an addition, before RoPE."""

    def added(x, branch, gain):
        stream = x + branch
        return stream, rms(stream, gain)

    def rotated(x, gain, cos, sin):  # in x's dtype, as models do
        from snippets.qk_norm_rope.operator import turned

        return turned(rms(x, gain), cos.to(x.dtype), sin.to(x.dtype))

    if cell.is_of("layer_norm"):
        return layer
    if cell.operation == "qk_norm_rope":
        return rotated
    return added if cell.is_of("add_") else rms


# Ours: the operators of the pages ---------------------------------------------


def _ours(cell: Cell, inputs: dict) -> Callable:
    from snippets.fused_residual.operator import add_rms_norm
    from snippets.qk_norm_rope.operator import qk_norm_rope
    from snippets.triton_layer_norm.operator import layer_norm
    from snippets.triton_rms_norm.operator import rms_norm

    norms = (add_rms_norm, qk_norm_rope, layer_norm, rms_norm)
    (norm,) = [norm for norm in norms if cell.is_of(norm.__name__)]
    return _built_on(cell, inputs, partial(norm, eps=EPS))


def _stream(cell: Cell, inputs: dict) -> Callable:
    """Sums of as many tensors as the cell reads, written as often as it writes."""
    import torch
    import triton

    from snippets.memory_bound.streams import BLOCK, add_streams

    reads, writes = cell.spec.streams
    given = [inputs[k].contiguous() for k in LARGE if k in inputs]
    sources = (given * 3)[:3]  # the kernel takes three and reads those that it should
    size = sources[0].numel()

    def call():
        made = [torch.empty_like(sources[0]) for _ in range(writes)]
        add_streams[(triton.cdiv(size, BLOCK),)](
            *sources, made[0], made[-1], size, READS=reads, WRITES=writes, BLOCK=BLOCK
        )
        return made

    return call


# Torch ------------------------------------------------------------------------


def _torch(cell: Cell, inputs: dict) -> Callable:
    """torch.nn.functional's own norms; the copy."""
    from torch.nn import functional as F

    if cell.operation == "copy":
        return lambda: (inputs["x"].clone(),)
    shape = (cell.width,)

    def layer(x, gain, bias):
        return F.layer_norm(x, shape, gain, bias, EPS)

    def rms(x, gain):
        return F.rms_norm(x, shape, gain, EPS)

    return _built_on(cell, inputs, _completed(cell, rms, layer))


def _written_out(cell: Cell) -> Callable:
    """The formula as the pages write it, operation by operation, in float32."""
    from snippets.layer_norm.reference import layer_norm
    from snippets.rms_norm.reference import rms_norm

    return _completed(cell, partial(rms_norm, eps=EPS), partial(layer_norm, eps=EPS))


@cache
def _compiled(cell: Cell) -> Callable:
    """What inductor makes of that, for this one shape."""
    import torch
    import torch._functorch.config

    # The backward pass runs again and again: its inputs must not be given away. A
    # first pass that keeps the graph tells newer versions so, but not all.
    torch._functorch.config.donated_buffer = False
    fixed = {"fullgraph": True, "dynamic": False, "backend": BACKEND}
    return torch.compile(_written_out(cell), **fixed)


def forget() -> None:
    """Drop what was compiled for the last cell: the next shape is its own."""
    import torch

    _compiled.cache_clear()
    torch._dynamo.reset()


# Liger ------------------------------------------------------------------------


def _liger(cell: Cell, inputs: dict) -> Callable:
    if cell.operation == "qk_norm_rope":
        raise Missing("Liger has no such kernel of its own")
    try:
        from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    except ImportError as error:
        raise Missing(f"liger_kernel is not here: {error}") from None

    # In place the slopes, which are used again, would be overwritten. Not in place, dx
    # is filled with zeros before it is written: 8 bytes a number instead of 6.
    def rms(x, gain):
        return LigerRMSNormFunction.apply(x, gain, EPS, 0.0, "gemma", False)

    def layer(x, gain, bias):
        return LigerLayerNormFunction.apply(x, gain, bias, EPS)

    def added(x, branch, gain):
        function = LigerFusedAddRMSNormFunction
        y, stream = function.apply(x, branch, gain, EPS, 0.0, "gemma", False)
        return stream, y

    if cell.is_of("add_"):
        return _built_on(cell, inputs, added)
    return _built_on(cell, inputs, layer if cell.is_of("layer_norm") else rms)


PROVIDERS: dict[str, Callable[[Cell, dict], Callable]] = {
    "ours": _ours,
    "ours_again": _ours,  # the A/A control
    "torch": _torch,
    "torch_unfused": lambda cell, inputs: _built_on(cell, inputs, _written_out(cell)),
    "compile": lambda cell, inputs: _built_on(cell, inputs, _compiled(cell)),
    "liger": _liger,
    "stream": _stream,
}
