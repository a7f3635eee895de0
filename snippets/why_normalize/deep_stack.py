# --8<-- [start:make_layers]
import torch
from torch import Tensor

from snippets.why_normalize.standardize import standardize

Layer = tuple[Tensor, Tensor]  # weight (d, d), bias (d,)


def make_layers(
    depth: int, d: int, weight_std: float, bias_std: float = 0.0
) -> list[Layer]:
    """Normal weights and biases with these standard deviations, float64."""
    draws = torch.Generator().manual_seed(0)
    options = {"generator": draws, "dtype": torch.float64}
    return [
        (
            weight_std * torch.randn(d, d, **options),
            bias_std * torch.randn(d, **options),
        )
        for _ in range(depth)
    ]


# --8<-- [end:make_layers]


# --8<-- [start:blocks]
def plain(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """ReLU of a linear layer; h is (inputs, d)."""
    return torch.relu(h @ weight.mT + bias)


def normed(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """LayerNorm between the linear layer and ReLU, no gain."""
    return torch.relu(standardize(h @ weight.mT + bias, eps=1e-6))


def batch_normed(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """BatchNorm there instead: each feature over the inputs."""
    return torch.relu(standardize(h @ weight.mT + bias, dim=0, eps=1e-6))


def residual(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A residual connection, no norm."""
    return h + torch.relu(h) @ weight.mT + bias


def residual_normed(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A residual connection whose branch reads through LayerNorm."""
    return h + torch.relu(standardize(h, eps=1e-6)) @ weight.mT + bias


# --8<-- [end:blocks]


# --8<-- [start:measures]
def size(h: Tensor) -> Tensor:
    """Root mean square of all numbers in h."""
    return h.square().mean().sqrt()


def spread(h: Tensor) -> Tensor:
    """How much the inputs differ: each feature's standard deviation over the
    inputs, then the root mean square over features. h is (inputs, d)."""
    return h.std(dim=0).square().mean().sqrt()


# --8<-- [end:measures]
