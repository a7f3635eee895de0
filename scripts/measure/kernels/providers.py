"""Who computes an operation: ours, torch as it comes, as models write it, peers.

A provider takes a cell's inputs and gives a call without arguments, which returns
what the operation lists. A provider that is not here, or cannot do a cell, raises
Missing with its reason: a row says so, nothing is left out in silence.
"""

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache

from scripts.measure.kernels.cells import EPS, Cell

ALSO = "ours_again"  # the A/A control: ours, registered twice


class Missing(Exception):
    """Why a provider has no number here."""


def _installed(package: str):
    try:
        return importlib.import_module(package)
    except ImportError as error:
        reason = str(error).splitlines()[0]
        raise Missing(f"{package.partition('.')[0]} is not here: {reason}") from None


def _leaves(inputs: dict, *names: str) -> list:
    return [inputs[name].detach().requires_grad_() for name in names]


def _gradient(forward: Callable, inputs: dict, *names: str) -> Callable:
    """A call that runs the backward pass alone, on a forward pass made before."""
    import torch

    leaves = _leaves(inputs, *names)
    outputs = forward(*leaves)
    slopes = inputs["dy"]
    if isinstance(outputs, tuple):
        slopes = (inputs["dstream"], inputs["dy"])

    def call():
        return torch.autograd.grad(outputs, leaves, slopes, retain_graph=True)

    return call


# Ours: the operators of the pages ---------------------------------------------


def _ours(cell: Cell, inputs: dict) -> Callable:
    from snippets.fused_residual import operator as added
    from snippets.memory_bound import soft_cap
    from snippets.qk_norm_rope import operator as rope
    from snippets.triton_layer_norm import operator as layer
    from snippets.triton_rms_norm import operator as rms

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


def _as_models_write_it(cell: Cell) -> Callable:
    """The class that Llama runs in transformers: a cast, a square, a mean, ..."""
    import torch
    from torch import nn

    if cell.operation.startswith("layer_norm"):
        raise Missing("models call torch's own LayerNorm")
    llama = _installed("transformers.models.llama.modeling_llama")
    norm = llama.LlamaRMSNorm(cell.width, EPS)

    def rms(x, gain):
        return torch.func.functional_call(norm, {"weight": gain}, (x,))

    assert isinstance(norm, nn.Module)
    return _after_adding(rms) if cell.operation.startswith("add_") else rms


def _rotated(x, cos, sin):
    import torch

    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]
    turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
    return turned.to(x.dtype)


def _torch(cell: Cell, inputs: dict, norm: Callable) -> Callable:
    """A call of the cell's operation built on torch's or a model's norm."""
    x, gain = inputs["x"], inputs["gain"]
    if cell.operation == "soft_cap":
        return lambda: (_cap(x),)
    if cell.operation == "qk_norm_rope":
        return lambda: (_rotated(norm(x, gain), inputs["cos"], inputs["sin"]),)
    if cell.operation == "add_rms_norm":
        return lambda: norm(x, inputs["branch"], gain)
    if cell.operation == "add_rms_norm_backward":
        call = _gradient(norm, inputs, "x", "branch", "gain")
        return lambda: call()[::2]  # dx is also the branch's
    names = ("x", "gain", "bias") if "bias" in inputs else ("x", "gain")
    if cell.operation.endswith("backward"):
        return _gradient(norm, inputs, *names)
    return lambda: (norm(*(inputs[name] for name in names)),)


def _torch_fused(cell: Cell, inputs: dict) -> Callable:
    if cell.operation == "soft_cap":
        raise Missing("torch has no soft-cap of its own")
    return _torch(cell, inputs, _fused(cell))


def _torch_models(cell: Cell, inputs: dict) -> Callable:
    norm = None if cell.operation == "soft_cap" else _as_models_write_it(cell)
    return _torch(cell, inputs, norm)


@cache
def _compiled_function(cell: Cell, tuned: bool) -> Callable:
    """What inductor makes of the unfused code, for this one shape."""
    import torch

    layer = cell.operation.startswith("layer_norm")
    if cell.operation == "soft_cap":
        function = _cap
    else:
        function = _fused(cell) if layer else _as_models_write_it(cell)
    if cell.operation == "qk_norm_rope":
        norm = function

        def function(x, gain, cos, sin):
            return _rotated(norm(x, gain), cos, sin)

    options = TUNED if tuned else None
    return torch.compile(function, fullgraph=True, dynamic=False, options=options)


def _compiled(cell: Cell, inputs: dict, tuned: bool) -> Callable:
    function = _compiled_function(cell, tuned)
    if cell.operation == "soft_cap":
        return lambda: (function(inputs["x"]),)
    if cell.operation == "qk_norm_rope":
        names = ("x", "gain", "cos", "sin")
        return lambda: (function(*(inputs[name] for name in names)),)
    return _torch(cell, inputs, function)


def forget() -> None:
    """Drop what was compiled for the last cell: the next shape is its own."""
    import torch

    _compiled_function.cache_clear()
    torch._dynamo.reset()


TUNED = {
    "max_autotune_pointwise": True,
    "coordinate_descent_tuning": True,
}


# Peers ------------------------------------------------------------------------


def _liger(cell: Cell, inputs: dict) -> Callable:
    x, gain = inputs["x"], inputs["gain"]
    if cell.operation in ("qk_norm_rope", "soft_cap"):
        raise Missing("Liger has no such kernel of its own")
    if cell.operation.startswith("layer_norm"):
        function = _installed("liger_kernel.ops.layer_norm").LigerLayerNormFunction

        def layer(x, gain, bias):
            return function.apply(x, gain, bias, EPS)

        if cell.operation.endswith("backward"):
            return _gradient(layer, inputs, "x", "gain", "bias")
        return lambda: (layer(x, gain, inputs["bias"]),)
    if cell.operation.startswith("add_"):
        module = _installed("liger_kernel.ops.fused_add_rms_norm")
        function = module.LigerFusedAddRMSNormFunction

        def added(x, branch, gain):
            y, stream = function.apply(x, branch, gain, EPS, 0.0, "gemma", False)
            return stream, y

        if cell.operation.endswith("backward"):
            call = _gradient(added, inputs, "x", "branch", "gain")
            return lambda: call()[::2]
        return lambda: added(x, inputs["branch"], gain)
    function = _installed("liger_kernel.ops.rms_norm").LigerRMSNormFunction

    def rms(x, gain):  # in_place would overwrite dy, which is used again
        return function.apply(x, gain, EPS, 0.0, "gemma", False)

    if cell.operation.endswith("backward"):
        return _gradient(rms, inputs, "x", "gain")
    return lambda: (rms(x, gain),)


def _quack(cell: Cell, inputs: dict) -> Callable:
    quack = _installed("quack")
    x, gain = inputs["x"], inputs["gain"]
    if cell.operation == "rms_norm":
        return lambda: (quack.rmsnorm(x, gain, eps=EPS),)
    if cell.operation == "rms_norm_backward":
        return _gradient(
            lambda x, gain: quack.rmsnorm(x, gain, eps=EPS), inputs, "x", "gain"
        )
    raise Missing(f"quack's {cell.operation} is not timed here")


def _jax(cell: Cell, inputs: dict) -> Callable:
    if cell.operation != "rms_norm":
        raise Missing("only RMSNorm's forward pass is written in JAX here")
    jax = _installed("jax")
    from torch.utils import dlpack

    import_tensor = jax.dlpack.from_dlpack
    x, gain = import_tensor(inputs["x"]), import_tensor(inputs["gain"])

    @jax.jit
    def rms(x, gain):
        wide = x.astype("float32")
        scale = jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + EPS)
        return (wide * scale * gain.astype("float32")).astype(x.dtype)

    # Its own streams and allocator: torch's graphs and events cannot hold it.
    return lambda: (dlpack.from_dlpack(rms(x, gain).block_until_ready()),)


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
