"""The same decoder twice: the pages' own in torch, and the browser's."""

import re
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snippets.deepnorm.block import DeepNorm
from snippets.deepnorm.coefficients import coefficients
from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
from snippets.pre_norm_vs_post_norm.decoder import Decoder
from snippets.rms_norm.reference import RMSNorm
from snippets.sandwich_norm.blocks import ReorderedNorm, SandwichNorm
from snippets.without_normalization.residual import ScaledResidual

PLACEMENTS = (
    "none",
    "pre",
    "post",
    "sandwich",
    "branch_output",
    "deepnorm",
    "rezero",
)
LAYER_NORM_ONLY = ("deepnorm",)  # as its snippet is
ENDS_IN_NORM = ("pre", "sandwich", "branch_output")


@dataclass(frozen=True)
class Settings:
    """What the engine's decoder() is given."""

    d: int = 8
    layers: int = 2
    heads: int = 2
    vocabulary: int = 11
    placement: str = "pre"
    norm: str = "layer"

    def given(self) -> dict:
        return asdict(self)


def model(s: Settings) -> nn.Module:
    """The pages' decoder; logits = model(tokens)."""
    norm = nn.LayerNorm if s.norm == "layer" else RMSNorm
    alpha = coefficients(decoder_layers=max(s.layers, 1))["decoder"].alpha
    blocks = {
        "none": lambda body, n: Residual(body),
        "pre": PreNormBlock,
        "post": PostNormBlock,
        "sandwich": lambda body, n: SandwichNorm(body, s.d, norm),
        "branch_output": lambda body, n: ReorderedNorm(body, s.d, norm),
        "deepnorm": lambda body, n: DeepNorm(body, s.d, alpha),
        "rezero": lambda body, n: ScaledResidual(body),
    }
    block, last = blocks[s.placement], s.placement in ENDS_IN_NORM
    return Decoder(s.d, s.layers, s.heads, s.vocabulary, block, norm, last)


class Residual(nn.Module):
    """x + branch(x)"""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


def engine_name(name: str, parameter: Tensor) -> str:
    """What the engine calls a parameter of the snippets."""
    name = re.sub(r"\.(?:sublayer|branch|body)\.", ".", name)
    is_norm = parameter.ndim == 1 and name.endswith(".weight")
    return name.removesuffix("weight") + "gain" if is_norm else name


def parameters(of: nn.Module) -> dict[str, Tensor]:
    """The parameters by the engine's names."""
    return {engine_name(name, p): p for name, p in of.named_parameters()}


@torch.no_grad()
def drawn(of: nn.Module, seed: int) -> nn.Module:
    """Every parameter at random: gains and factors too, about one."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in of.parameters():
        draw = torch.randn(parameter.shape, generator=generator)
        inputs = parameter.shape[-1] if parameter.ndim > 1 else 1
        middle = 0.8 if parameter.ndim < 2 else 0.0
        spread = 0.3 if parameter.ndim < 2 else inputs**-0.5
        parameter.copy_(middle + spread * draw)
    return of


def text(s: Settings, batch: int, time: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Tokens and the next ones, each (batch, time)."""
    generator = torch.Generator().manual_seed(seed)
    every = torch.randint(s.vocabulary, (batch, time + 1), generator=generator)
    return every[:, :-1], every[:, 1:]


def streams(of: nn.Module, tokens: Tensor) -> list[Tensor]:
    """The embedding, and the stream behind each layer."""
    x = of.embedding(tokens)
    found = [x]
    for i, block in enumerate(of.blocks):
        x = block(x)
        if i % 2:
            found.append(x)
    return found


def loss_of(of: nn.Module, stream: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy from the stream behind the last layer."""
    logits = of.head(of.norm(stream))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
