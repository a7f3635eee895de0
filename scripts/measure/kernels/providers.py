"""Who computes an operation: ours, torch as it comes, as models write it, peers.

A provider takes a cell's inputs and gives a call without arguments, which returns
what the operation lists. A provider that is not here, or cannot do a cell, raises
Missing with its reason: a row says so, nothing is left out in silence.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial

from scripts.measure.kernels.cells import EPS, Cell

ALSO = "ours_again"  # the A/A control: ours, registered twice
BACKEND = "inductor"
TUNED = {
    "max_autotune_pointwise": True,
    "coordinate_descent_tuning": True,
    "triton.mix_order_reduction_allow_multi_stages": True,
}


class Missing(Exception):
    """Why a provider has no number here."""


@contextmanager
def _installed() -> Iterator[None]:
    """Around the import of a peer: one that is not here is missing.

    The imports are statements, so that records name the peers' versions.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "a package").partition(".")[0]
        reason = str(error).partition("\n")[0]
        raise Missing(f"{package} is not here: {reason}") from None


def _both(cell: Cell) -> bool:
    """Whether the forward pass belongs to each call of the backward pass."""
    return cell.operation.endswith("_forward_backward")


def _leaves(inputs: dict, *names: str) -> list:
    """Tensors that want a gradient; one that does already stays what it is."""
    found = [inputs[name] for name in names]
    return [x if x.requires_grad else x.detach().requires_grad_() for x in found]


def _gradient(cell: Cell, forward: Callable, inputs: dict, *names: str) -> Callable:
    """A call that gives the gradients of the named inputs.

    It runs the backward pass alone, on a forward pass made before, or both.
    """
    from torch.autograd import grad

    leaves = _leaves(inputs, *names)
    slopes = [inputs[name] for name in ("dstream", "dy") if name in inputs]
    if _both(cell):
        return lambda: grad(forward(*leaves), leaves, slopes)
    outputs = forward(*leaves)
    return lambda: grad(outputs, leaves, slopes, retain_graph=True)


# Ours: the operators of the pages ---------------------------------------------


def _ours(cell: Cell, inputs: dict) -> Callable:
    from snippets.fused_residual import operator as added
    from snippets.memory_bound import soft_cap
    from snippets.qk_norm_rope import operator as rope
    from snippets.triton_layer_norm import operator as layer
    from snippets.triton_rms_norm import operator as rms

    if _both(cell):
        return _built_on(cell, inputs, _public(cell))
    x, gain, eps = inputs["x"], inputs["gain"], EPS
    if cell.operation == "rms_norm":
        return lambda: (rms.rms_norm_op(x, gain, eps)[0],)
    if cell.operation == "layer_norm":
        return lambda: (layer.layer_norm_op(x, gain, inputs["bias"], eps)[0],)
    if cell.operation == "add_rms_norm":
        return lambda: added.add_rms_norm_op(x, inputs["branch"], gain, eps)[:2]
    if cell.operation == "soft_cap":
        return lambda: (soft_cap.soft_cap(x, 30.0),)
    if cell.operation == "qk_norm_rope":
        tables = inputs["cos"], inputs["sin"]
        return lambda: (rope.qk_norm_rope_op(x, gain, *tables, eps)[0],)
    if cell.operation == "rms_norm_backward":
        _, rstd = rms.rms_norm_op(x, gain, eps)
        return lambda: rms.rms_norm_backward_op(inputs["dy"], x, gain, rstd)
    if cell.operation == "layer_norm_backward":
        _, *saved = layer.layer_norm_op(x, gain, inputs["bias"], eps)
        return lambda: layer.layer_norm_backward_op(inputs["dy"], x, gain, *saved)
    stream, _, rstd = added.add_rms_norm_op(x, inputs["branch"], gain, eps)
    slopes = inputs["dy"], inputs["dstream"]
    return lambda: added.add_rms_norm_backward_op(*slopes, stream, gain, rstd)


def _public(cell: Cell) -> Callable:
    """The norm that users call, which has a gradient."""
    from snippets.fused_residual.operator import add_rms_norm
    from snippets.triton_layer_norm.operator import layer_norm
    from snippets.triton_rms_norm.operator import rms_norm

    if cell.operation.startswith("add_"):
        return partial(add_rms_norm, eps=EPS)
    layer = cell.operation.startswith("layer_norm")
    return partial(layer_norm if layer else rms_norm, eps=EPS)


# Torch ------------------------------------------------------------------------


def _cap(x):
    import torch

    return 30.0 * torch.tanh(x / 30.0)


def _after_adding(norm: Callable) -> Callable:
    """The norm of a residual addition, and the sum, which the next layer needs."""

    def added(x, branch, gain):
        stream = x + branch
        return stream, norm(stream, gain)

    return added


def _fused(cell: Cell) -> Callable:
    """torch.nn.functional's own norms."""
    from torch.nn import functional as F

    shape = (cell.width,)
    if cell.operation.startswith("layer_norm"):
        return lambda x, gain, bias: F.layer_norm(x, shape, gain, bias, EPS)

    def rms(x, gain):
        return F.rms_norm(x, shape, gain, EPS)

    return _after_adding(rms) if cell.operation.startswith("add_") else rms


def _as_models_write_it(cell: Cell, weight=None) -> Callable:
    """The class that Llama runs in transformers: a cast, a square, a mean, ...

    With a weight, a parameter, the module holds it, as in a model. Without one the gain
    that is passed takes its place, which is what a compiled function needs, and a
    gradient that is timed alone; but the host works longer.
    """
    import torch

    if cell.operation.startswith("layer_norm"):
        raise Missing("models call torch's own LayerNorm")
    with _installed():
        from transformers.models.llama.modeling_llama import LlamaRMSNorm
    norm = LlamaRMSNorm(cell.width, EPS)
    if weight is not None:
        norm.weight = weight

    def rms(x, gain):
        if weight is not None:
            return norm(x)
        return torch.func.functional_call(norm, {"weight": gain}, (x,))

    return _after_adding(rms) if cell.operation.startswith("add_") else rms


def _rotated(x, cos, sin):
    """In the dtype of the tables: float32 rounds once, as a kernel does."""
    import torch

    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]
    turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
    return turned.to(x.dtype)


def _built_on(cell: Cell, inputs: dict, norm: Callable) -> Callable:
    """A call of the cell's operation built on a norm with a gradient."""
    x, gain = inputs["x"], inputs["gain"]
    if cell.operation == "soft_cap":
        return lambda: (_cap(x),)
    if cell.operation == "qk_norm_rope":
        cos, sin = (inputs[name].to(x.dtype) for name in ("cos", "sin"))  # as models
        return lambda: (_rotated(norm(x, gain), cos, sin),)
    if cell.operation == "add_rms_norm":
        return lambda: norm(x, inputs["branch"], gain)
    if cell.operation.startswith("add_"):
        call = _gradient(cell, norm, inputs, "x", "branch", "gain")
        return lambda: call()[::2]  # dx is also the branch's
    names = ("x", "gain", "bias") if "bias" in inputs else ("x", "gain")
    if cell.operation.endswith("backward"):
        return _gradient(cell, norm, inputs, *names)
    return lambda: (norm(*(inputs[name] for name in names)),)


def _torch_fused(cell: Cell, inputs: dict) -> Callable:
    if cell.operation == "soft_cap":
        raise Missing("torch has no soft-cap of its own")
    return _built_on(cell, inputs, _fused(cell))


def _torch_models(cell: Cell, inputs: dict) -> Callable:
    import torch

    if cell.operation == "soft_cap":
        return _built_on(cell, inputs, _cap)
    if cell.operation.endswith("backward") and not _both(cell):
        return _built_on(cell, inputs, _as_models_write_it(cell))
    gain = torch.nn.Parameter(inputs["gain"], requires_grad=_both(cell))
    return _built_on(cell, inputs | {"gain": gain}, _as_models_write_it(cell, gain))


@cache
def _compiled_function(cell: Cell, tuned: bool) -> Callable:
    """What inductor makes of the unfused code, for this one shape."""
    import torch
    import torch._functorch.config

    # The backward pass runs again and again: its inputs must not be given away. A
    # first pass that keeps the graph tells newer versions so, but not all.
    torch._functorch.config.donated_buffer = False
    layer = cell.operation.startswith("layer_norm")
    if cell.operation == "soft_cap":
        function = _cap
    else:
        function = _fused(cell) if layer else _as_models_write_it(cell)
    if cell.operation == "qk_norm_rope":
        norm = function

        def function(x, gain, cos, sin):
            return _rotated(norm(x, gain), cos, sin)

    fixed = {"fullgraph": True, "dynamic": False, "backend": BACKEND}
    return torch.compile(function, options=_tuned() if tuned else None, **fixed)


def _tuned() -> dict:
    """The options of TUNED that this version of torch has."""
    import torch

    known = set(torch._inductor.list_options())
    return {name: value for name, value in TUNED.items() if name in known}


def _compiled(cell: Cell, inputs: dict, tuned: bool) -> Callable:
    function = _compiled_function(cell, tuned)
    if cell.operation == "soft_cap":
        return lambda: (function(inputs["x"]),)
    if cell.operation == "qk_norm_rope":
        names = ("x", "gain", "cos", "sin")
        return lambda: (function(*(inputs[name] for name in names)),)
    return _built_on(cell, inputs, function)


def forget() -> None:
    """Drop what was compiled for the last cell: the next shape is its own."""
    import torch

    _compiled_function.cache_clear()
    torch._dynamo.reset()


# Peers ------------------------------------------------------------------------


def _liger(cell: Cell, inputs: dict) -> Callable:
    x, gain = inputs["x"], inputs["gain"]
    if cell.operation in ("qk_norm_rope", "soft_cap"):
        raise Missing("Liger has no such kernel of its own")
    if cell.operation.startswith("layer_norm"):
        with _installed():
            from liger_kernel.ops.layer_norm import LigerLayerNormFunction

        def layer(x, gain, bias):
            return LigerLayerNormFunction.apply(x, gain, bias, EPS)

        if cell.operation.endswith("backward"):
            return _gradient(cell, layer, inputs, "x", "gain", "bias")
        return lambda: (layer(x, gain, inputs["bias"]),)
    if cell.operation.startswith("add_"):
        with _installed():
            from liger_kernel.ops.fused_add_rms_norm import (
                LigerFusedAddRMSNormFunction as function,
            )

        def added(x, branch, gain):
            y, stream = function.apply(x, branch, gain, EPS, 0.0, "gemma", False)
            return stream, y

        if cell.operation.endswith("backward"):
            call = _gradient(cell, added, inputs, "x", "branch", "gain")
            return lambda: call()[::2]
        return lambda: added(x, inputs["branch"], gain)
    with _installed():
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    # in_place would overwrite dy, which is used again; without it dx is filled
    # with zeros before it is written: 8 instead of 6 bytes a number in bfloat16.
    def rms(x, gain):
        return LigerRMSNormFunction.apply(x, gain, EPS, 0.0, "gemma", False)

    if cell.operation.endswith("backward"):
        return _gradient(cell, rms, inputs, "x", "gain")
    return lambda: (rms(x, gain),)


def _quack(cell: Cell, inputs: dict) -> Callable:
    with _installed():
        import quack
    x, gain = inputs["x"], inputs["gain"]
    if cell.operation == "rms_norm":
        return lambda: (quack.rmsnorm(x, gain, eps=EPS),)
    if cell.operation == "rms_norm_backward":
        return _gradient(cell, partial(quack.rmsnorm, eps=EPS), inputs, "x", "gain")
    raise Missing(f"quack's {cell.operation} is not timed here")


def _jax(cell: Cell, inputs: dict) -> Callable:
    raise Missing("JAX has its own streams and memory: no graph or event here times it")


PROVIDERS: dict[str, Callable[[Cell, dict], Callable]] = {
    "ours": _ours,
    ALSO: _ours,
    "torch": _torch_fused,
    "torch_unfused": _torch_models,
    "compile": lambda cell, inputs: _compiled(cell, inputs, False),
    "compile_tuned": lambda cell, inputs: _compiled(cell, inputs, True),
    "liger": _liger,
    "quack": _quack,
    "jax": _jax,
}
