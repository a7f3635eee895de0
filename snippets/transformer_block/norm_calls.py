from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class NormCall:
    """What one norm of a model read and returned."""

    name: str
    x: Tensor
    y: Tensor


def is_norm(module: nn.Module) -> bool:
    """By its class name: RMSNorm, LlamaRMSNorm, T5LayerNorm, ..."""
    return type(module).__name__.endswith("Norm")


@torch.no_grad()
def norm_calls(model: nn.Module, tokens: Tensor) -> list[NormCall]:
    """Run model on tokens; all calls of its norms, in order of execution.

    Works for any model whose norms are modules; leaves no hook behind.
    """
    calls: list[NormCall] = []

    def watch(name: str, module: nn.Module):
        def record(_, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            calls.append(NormCall(name, inputs[0].clone(), output.clone()))

        return module.register_forward_hook(record)

    hooks = [watch(*pair) for pair in model.named_modules() if is_norm(pair[1])]
    try:
        model(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return calls
