"""The same decoder twice: the pages' own in torch, and the browser's."""

import re
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm
from snippets.deepnorm.block import DeepNorm
from snippets.deepnorm.coefficients import coefficients
from snippets.normformer.stack import Stack
from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
from snippets.pre_norm_vs_post_norm.decoder import Decoder
from snippets.qk_norm.rope import rotate
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.sandwich_norm.blocks import ReorderedNorm, SandwichNorm
from snippets.soft_capping.attention import capped_attention
from snippets.without_normalization.residual import ScaledResidual

NORMS = {"layer": nn.LayerNorm, "rms": RMSNorm, "batch": BatchNorm}
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
    activation: str = "gelu"
    rope: bool = False
    cap: float = 0.0
    qk: str = ""

    def given(self) -> dict:
        return asdict(self)


class Attention(nn.Module):
    """The pages' parts of attention between a reader and a writer with biases."""

    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.s = s
        self.reader, self.writer = nn.Linear(s.d, 3 * s.d), nn.Linear(s.d, s.d)
        size = {"head": s.d // s.heads, "projection": s.d}.get(s.qk, 0)
        self.query, self.key = nn.ParameterDict(), nn.ParameterDict()
        if size:
            self.query["gain"] = nn.Parameter(torch.ones(size))
            self.key["gain"] = nn.Parameter(torch.ones(size))

    def side(self, x: Tensor, held: nn.ParameterDict) -> Tensor:
        if self.s.qk == "projection":
            x = rms_norm(x, held["gain"])
        x = x.unflatten(-1, (self.s.heads, -1)).transpose(1, 2)
        if self.s.qk == "head":
            x = rms_norm(x, held["gain"])
        return rotate(x) if self.s.rope else x

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.reader(x).chunk(3, dim=-1)
        v = v.unflatten(-1, (self.s.heads, -1)).transpose(1, 2)
        q, k = self.side(q, self.query), self.side(k, self.key)
        scale = (self.s.d // self.s.heads) ** -0.5
        y = capped_attention(q, k, v, self.s.cap or None, scale)
        return self.writer(y.transpose(1, 2).flatten(start_dim=2))


class Residual(nn.Module):
    """x + branch(x)"""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


def blocks(s: Settings) -> dict:
    """By placement: a block from its sublayer and a norm that it may take."""
    norm = NORMS[s.norm]
    alpha = coefficients(decoder_layers=max(s.layers, 1))["decoder"].alpha
    return {
        "none": lambda body, _: Residual(body),
        "pre": PreNormBlock,
        "post": PostNormBlock,
        "sandwich": lambda body, _: SandwichNorm(body, s.d, norm),
        "branch_output": lambda body, _: ReorderedNorm(body, s.d, norm),
        "deepnorm": lambda body, _: DeepNorm(body, s.d, alpha),
        "rezero": lambda body, _: ScaledResidual(body),
    }


PLACEMENTS = (*blocks(Settings()), "normformer")
LAYER_NORM_ONLY = ("deepnorm", "normformer")  # as their snippets are


def model(s: Settings) -> nn.Module:
    """The pages' decoder; logits = model(tokens)."""
    if s.placement == "normformer":
        stack = Stack(s.layers, s.d, s.heads)
        stack.embedding = nn.Embedding(s.vocabulary, s.d)
        stack.head = nn.Linear(s.d, s.vocabulary, bias=False)
        return stack

    def block(body, norm):
        if hasattr(body, "activation") and s.activation == "silu":
            body.activation = nn.SiLU()
        elif hasattr(body, "heads") and (s.rope or s.cap or s.qk):
            body = Attention(s)
        return blocks(s)[s.placement](body, norm)

    last = s.placement in ENDS_IN_NORM
    return Decoder(s.d, s.layers, s.heads, s.vocabulary, block, NORMS[s.norm], last)


NORMFORMER = {
    "attention_norm": (0, "pre"),
    "attention.qkv": (0, "reader"),
    "attention.out": (0, "writer"),
    "attention.head_scale": (0, "head_scale"),
    "output_norm": (0, "post"),
    "ffn_norm": (1, "pre"),
    "ffn.fc1": (1, "reader"),
    "ffn.norm": (1, "inner"),
    "ffn.fc2": (1, "writer"),
}


def engine_name(name: str, parameter: Tensor) -> str:
    """What the engine calls a parameter of the snippets."""
    found = re.match(r"blocks\.(\d+)\.(\w+(?:\.(?!weight|bias)\w+)?)", name)
    if found and found[2] in NORMFORMER:
        block, role = NORMFORMER[found[2]]
        kept = name.removeprefix(found[0])
        name = f"blocks.{2 * int(found[1]) + block}.{role}{kept}"
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


def streams(of: nn.Module, layers: int, tokens: Tensor) -> list[Tensor]:
    """The embedding, and the stream behind each layer."""
    x = of.embedding(tokens)
    found = [x]
    for i, block in enumerate(of.blocks):
        x = block(x)
        if (i + 1) % (len(of.blocks) // layers) == 0:
            found.append(x)
    return found


def loss_of(of: nn.Module, stream: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy from the stream behind the last layer."""
    logits = of.head(of.norm(stream))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
