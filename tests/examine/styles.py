"""Right decoders in the styles that people write: each must be read, none alarmed."""

import copy
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from tests.examine import faulty
from tests.examine.faulty import HEADS, Attention, Block, D, Decoder, RMSNorm


def norm(x):
    return F.rms_norm(x, (x.shape[-1],))


class Functional(Block):
    """A function of torch, without a gain."""

    def __init__(self, _, attention):
        super().__init__(RMSNorm, attention)
        del self.norm_1, self.norm_2

    def forward(self, x):
        x = x + self.attention(norm(x))
        return x + self.feed_forward(norm(x))


class Vectors(Block):
    """Gains and biases that stand in the block itself."""

    def __init__(self, _, attention):
        super().__init__(RMSNorm, attention)
        del self.norm_1, self.norm_2
        self.w1, self.w2 = (nn.Parameter(torch.ones(D)) for _ in range(2))
        self.b1, self.b2 = (nn.Parameter(torch.zeros(D)) for _ in range(2))


class TorchLayerNorm(Vectors):
    def forward(self, x):
        x = x + self.attention(F.layer_norm(x, (D,), self.w1, self.b1))
        return x + self.feed_forward(F.layer_norm(x, (D,), self.w2, self.b2))


class ByHand(Vectors):
    """Root, gain and sum spelled out in forward."""

    def forward(self, x):
        h = x.float()
        root = torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        x = x + self.attention((h * root).to(x.dtype) * self.w1 + self.b1)
        h = x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6)
        return x + self.feed_forward(self.w2 * h + self.b2)


class ByHandCentred(Vectors):
    def forward(self, x):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        h = (x - mean) * (var + 1e-5) ** -0.5
        x = x + self.attention(h * self.w1 + self.b1)
        c = x - x.mean(-1, keepdim=True)
        h = c / (c.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return x + self.feed_forward(h * self.w2 + self.b2)


class Lent(Block):
    """Modules hold the gains, and a function is given them."""

    def forward(self, x):
        x = x + self.attention(F.rms_norm(x, (D,), self.norm_1.weight, 1e-6))
        return x + self.feed_forward(F.rms_norm(x, (D,), self.norm_2.weight, 1e-6))


class LostAxis(Vectors):
    """The mean is taken without keepdim, and its axis comes back later."""

    def forward(self, x):
        root = torch.sqrt(x.square().mean(-1) + 1e-6)
        x = x + self.attention(x / root[..., None] * self.w1)
        root = torch.rsqrt(x.square().mean(-1) + 1e-6)
        return x + self.feed_forward(x * root.unsqueeze(-1) * self.w2)


class ByEinsum(Vectors):
    def forward(self, x):
        w = x.to(torch.float32)
        square = torch.einsum("btd,btd->bt", w, w) / D
        n = w / torch.sqrt(square + 1e-6)[:, :, None] * self.w1
        x = x + self.attention(n.to(x.dtype))
        square = (x.unsqueeze(-2) @ x.unsqueeze(-1)).squeeze(-1) / D
        n = torch.einsum("btd,bte->btd", x, torch.rsqrt(square + 1e-6))
        return x + self.feed_forward(n * self.w2)


class ByLength(Vectors):
    def forward(self, x):
        length = torch.linalg.vector_norm(x, dim=-1)[..., None] * D**-0.5
        n = x / torch.hypot(length, length.new_tensor(1e-3))
        x = x + self.attention(n * self.w1)
        root = (x.square().mean(-1) + 1e-6).sqrt()
        return x + self.feed_forward((x.mT / root[:, None]).mT * self.w2)


def gained(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1 + weight)


class Helper(Vectors):
    """A function with the gain, 1 + w, for an argument."""

    def __init__(self, _, attention):
        super().__init__(_, attention)
        del self.b1, self.b2
        for w in (self.w1, self.w2):
            w.data.zero_()

    def forward(self, x):
        x = x + self.attention(gained(x, self.w1))
        return x + self.feed_forward(gained(x, self.w2))


class Watched(Vectors):
    """A copy of the statistic is looked at, and a length of the stream."""

    def forward(self, x):
        root = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        self.seen = root.detach().mean().item()
        x = x + self.attention(x * root * self.w1)
        with torch.no_grad():
            self.seen += x.square().mean().sqrt().item()
        with torch.enable_grad():
            root = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return x + self.feed_forward(x * root * self.w2)


def by_logarithm(x):
    return x * torch.exp(-0.5 * torch.log(x.square().mean(-1, keepdim=True) + 1e-6))


def by_magnitude(x):
    return x / (x.abs().mean(-1, keepdim=True) + 1e-6)


def by_iteration(x):
    """Newton's iteration for the root."""
    square = x.square().mean(-1, keepdim=True)
    root = square + 1
    for _ in range(12):
        root = (root + square / root) / 2
    return x / root


class Unknown(Functional):
    """What removes the scale is no norm that a probe knows."""

    def forward(self, x):
        x = x + self.attention(by_logarithm(x))
        return x + self.feed_forward(by_iteration(x))


class HalfUnknown(Block):
    """Of one branch alone."""

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(by_magnitude(x) * self.norm_2.weight)


class OnOutputs(Functional):
    def forward(self, x):
        x = x + by_magnitude(self.attention(x))
        return x + by_magnitude(self.feed_forward(x))


class LastUnknown(Decoder):
    def __init__(self):
        super().__init__()
        del self.norm

    def forward(self, tokens):
        return self.head(by_magnitude(self.stream(tokens)))


class Bare(Functional):
    """No norm at all but those of q and k."""

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.feed_forward(x)


class Float32LayerNorm(nn.LayerNorm):
    """As in CLIP and Whisper."""

    def forward(self, x):
        return super().forward(x.float()).type(x.dtype)


class Float32Parts(nn.LayerNorm):
    """As in fairseq: everything in float32."""

    def forward(self, x):
        shape, eps = self.normalized_shape, self.eps
        w, b = self.weight.float(), self.bias.float()
        return F.layer_norm(x.float(), shape, w, b, eps).type_as(x)


class Pair(Block):
    """Returns weights that are None, then the stream."""

    def forward(self, x):
        return None, super().forward(x)


class Pairs(Decoder):
    def stream(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            _, x = layer(x)
        return x


class Words(Block):
    def forward(self, x):
        return {"weights": None, "hidden": super().forward(x)}


class OfWords(Decoder):
    def stream(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)["hidden"]
        return x


@dataclass
class Out:
    weights: torch.Tensor
    hidden: torch.Tensor
    cache: object = None


class Named(NamedTuple):
    cache: object
    weights: torch.Tensor
    hidden: torch.Tensor


class Opaque:
    def __init__(self, hidden):
        self.hidden = hidden


def returning(wrapped):
    """A decoder whose blocks wrap what they return."""

    class Wrapping(Block):
        def forward(self, x):
            return wrapped(super().forward(x))

    class Unwrapping(Decoder):
        def stream(self, tokens):
            x = self.embedding(tokens)
            for layer in self.layers:
                x = layer(x).hidden
            return x

    return lambda: Unwrapping(block=Wrapping)


def shares(x):
    return x.detach().mT.softmax(-1)


class NoGrad(Decoder):
    @torch.no_grad()
    def forward(self, tokens):
        return super().forward(tokens)


class Inference(Decoder):
    @torch.inference_mode()
    def forward(self, tokens):
        return super().forward(tokens)


class Frozen(Decoder):
    def forward(self, tokens):
        torch.set_grad_enabled(False)
        try:
            return super().forward(tokens)
        finally:
            torch.set_grad_enabled(True)


class Cached(Attention):
    """Writes what it is given into a buffer, and reads it from there."""

    def __init__(self, norm):
        super().__init__(norm)
        self.register_buffer("cache", torch.zeros(8, 64, D), persistent=False)

    def forward(self, x):
        b, t, _ = x.shape
        self.cache[:b, :t] = x
        return super().forward(self.cache[:b, :t])


class Growing(Attention):
    """Keeps keys and values of earlier passes in plain attributes."""

    def __init__(self, norm):
        super().__init__(norm)
        self.past, self.calls = None, 0

    def forward(self, x):
        q, k, v = self.heads(x)
        old = 0
        if self.past is not None:
            old = self.past[0].shape[2]
            k, v = (torch.cat(both, 2) for both in zip(self.past, (k, v), strict=True))
        self.past, self.calls = (k.detach(), v.detach()), self.calls + 1
        t = x.shape[1]
        mask = torch.ones(t, t + old).tril(old).bool()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).flatten(2))


class Sines(Attention):
    """Angles that the first pass computes."""

    def __init__(self, norm):
        super().__init__(norm)
        self.register_buffer("cos", torch.empty(0), persistent=False)

    def rotated(self, x):
        if len(self.cos) < x.shape[-2]:
            self.cos = torch.arange(x.shape[-2])[:, None].float().cos()
        return x * self.cos[: x.shape[-2]]


class Experts(nn.Module):
    """A router and a list of networks."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(D, 4, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(D, D), nn.SiLU(), nn.Linear(D, D)) for _ in range(4)
        )

    def forward(self, x):
        share, chosen = self.gate(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            weight = (share * (chosen == i)).sum(-1, keepdim=True)
            at = weight[..., 0] > 0
            out[at] += weight[at] * expert(x[at])
        return out


class Mixture(Block):
    def __init__(self, norm, attention):
        super().__init__(norm, attention)
        self.feed_forward = Experts()


class OneModule(nn.Module):
    """Norm, weights and addition in one module, as in gpt-oss."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm(D)
        self.up = nn.Parameter(torch.randn(D, 2 * D) / D**0.5)
        self.down = nn.Parameter(torch.randn(2 * D, D) / D**0.5)

    def forward(self, x):
        h = self.norm(x)
        h = torch.einsum("btd,df->btf", h, self.up)
        h = torch.einsum("btf,fd->btd", F.silu(h), self.down)
        return x + h


class Whole(nn.Module):
    def __init__(self, norm, attention):
        super().__init__()
        self.norm_1, self.attention = norm(D), attention(norm)
        self.mlp = OneModule(norm)

    def forward(self, x):
        return self.mlp(x + self.attention(self.norm_1(x)))


class TwoStreams(Block):
    """The residual is handed on beside the last branch, as in Mamba and vLLM."""

    def forward(self, hidden, residual=None):
        residual = hidden if residual is None else hidden + residual
        hidden = self.attention(self.norm_1(residual))
        residual = hidden + residual
        return self.feed_forward(self.norm_2(residual)), residual


class OfTwoStreams(Decoder):
    def stream(self, tokens):
        x, residual = self.embedding(tokens), None
        for layer in self.layers:
            x, residual = layer(x, residual)
        return x + residual


class AddNorm(RMSNorm):
    """Adds and norms, and returns both."""

    def forward(self, x, residual):
        x = x + residual
        return super().forward(x), x


class Fused(Block):
    def __init__(self, norm, attention):
        super().__init__(norm, attention)
        self.norm_2 = AddNorm(D)

    def forward(self, x):
        h, x = self.norm_2(self.attention(self.norm_1(x)), x)
        return x + self.feed_forward(h)


class Adaptive(nn.Module):
    """LayerNorm whose scale and shift come from a condition."""

    def __init__(self):
        super().__init__()
        self.modulation = nn.Linear(D, 2 * D)

    def forward(self, x, c):
        scale, shift = self.modulation(c).chunk(2, -1)
        return F.layer_norm(x, (D,)) * (1 + scale) + shift


class Conditioned(Block):
    def __init__(self, norm, attention):
        super().__init__(norm, attention)
        self.norm_1, self.norm_2 = Adaptive(), Adaptive()

    def forward(self, x, c):
        x = x + self.attention(self.norm_1(x, c))
        return x + self.feed_forward(self.norm_2(x, c))


class OfConditions(Decoder):
    def __init__(self):
        super().__init__(block=Conditioned)
        self.condition = nn.Parameter(torch.randn(1, 1, D))

    def stream(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.condition)
        return x


class Zero(Block):
    """Scale, shift and gate from a condition, in the block: DiT."""

    def __init__(self, norm, attention):
        super().__init__(norm, attention)
        self.norm_1, self.norm_2 = (
            nn.LayerNorm(D, elementwise_affine=False) for _ in range(2)
        )
        self.modulation = nn.Linear(D, 6 * D)

    def forward(self, x, c):
        a, b, g, d, e, h = self.modulation(c).chunk(6, -1)
        x = x + g * self.attention(self.norm_1(x) * (1 + a) + b)
        return x + h * self.feed_forward(self.norm_2(x) * (1 + d) + e)


class OfZero(OfConditions):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Zero(RMSNorm, Attention) for _ in range(3))


class InlineHeads(Attention):
    """q and k normed by lines of the forward."""

    def __init__(self, norm):
        super().__init__(norm)
        del self.q_norm, self.k_norm
        self.gain = nn.Parameter(torch.ones(D // 4))

    def heads(self, x):
        q, k, v = (
            t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1)
        )
        q = q * torch.rsqrt(q.square().mean(-1, keepdim=True) + 1e-6) * self.gain
        k = k * torch.rsqrt(k.square().mean(-1, keepdim=True) + 1e-6) * self.gain
        return q, k, v


PRE = ["a = x + Attention(N(x))", "y = a + FFN(N(a))"]


def of(block):
    return lambda: Decoder(block=block)


def with_attention(attention):
    return lambda: Decoder(attention=attention)


class Biased(faulty.RMSNorm):
    """RMSNorm with a bias and a backward of its own, both right."""

    def __init__(self, d):
        super().__init__(d)
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        function = faulty.OwnBackward.function
        return function.apply(x.float(), self.weight, 1e-6).type_as(x) + self.bias


# Beside the cheap rules: right models that a rule must leave alone.


class Grouped(Attention):
    """Two heads of keys and values for four of queries."""

    def __init__(self, norm):
        super().__init__(norm)
        self.qkv = nn.Linear(D, 2 * D, bias=False)

    def heads(self, x):
        q, k, v = self.qkv(x).split([D, D // 2, D // 2], -1)
        q, k, v = (t.unflatten(-1, (-1, 8)).transpose(1, 2) for t in (q, k, v))
        k, v = self.k_norm(k), v
        return self.q_norm(q), *(t.repeat_interleave(2, 1) for t in (k, v))


class Projection(Attention):
    """q and k normed over the whole projection, as in OLMo 2."""

    def __init__(self, norm):
        super().__init__(norm)
        self.q_norm, self.k_norm = norm(D), norm(D)

    def heads(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = self.q_norm(q), self.k_norm(k)
        return tuple(t.unflatten(-1, (4, -1)).transpose(1, 2) for t in (q, k, v))


class Windowed(Attention):
    """Each token reads three."""

    def forward(self, x):
        q, k, v = self.heads(x)
        q, k = self.rotated(q), self.rotated(k)
        mask = torch.ones(x.shape[1], x.shape[1]).tril().triu(-2).bool()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).flatten(2))


class Shifted(Attention):
    """q, k and v also see the token before."""

    def heads(self, x):
        return super().heads(x + F.pad(x, (0, 0, 1, 0))[:, :-1])


class Learned(Block):
    """A learned factor on the stream, as in modded-nanogpt."""

    def __init__(self, norm, attention):
        super().__init__(norm, attention)
        self.keep = nn.Parameter(torch.tensor([1.5]))

    def forward(self, x):
        x = self.keep * x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


class DeepNorm(Block):
    def forward(self, x):
        x = self.norm_1(1.5 * x + self.attention(x))
        return self.norm_2(1.5 * x + self.feed_forward(x))


def folded():
    """The second gain of every layer is folded into the matrix behind it."""
    model = faulty.trained(Decoder(), 1)
    for layer in model.layers:
        layer.feed_forward[0].weight.data *= layer.norm_2.weight.data
        layer.norm_2.weight.data.fill_(1)
    return model


class Routed(Mixture):
    """A bias that only chooses, as in DeepSeek-V3: no gradient by design."""

    def __init__(self, norm, attention):
        super().__init__(norm, attention)
        self.feed_forward = Biased4()


class Biased4(Experts):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        scores = self.gate(x).sigmoid()
        chosen = (scores + self.bias).topk(2).indices
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            weight = (scores * (chosen == i).any(-1, keepdim=True))[..., i : i + 1]
            out = out + weight * expert(x)
        return out


class Joint(nn.Module):
    """Two streams of two lengths that attend together, as in SD3."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(4))
        self.qkv, self.out = (
            nn.ModuleList(nn.Linear(D, n * D) for _ in range(2)) for n in (3, 1)
        )
        self.up, self.down = (
            nn.ModuleList(nn.Linear(D, D) for _ in range(2)) for _ in range(2)
        )

    def forward(self, c, x):
        n, t = self.norms, c.shape[1]
        h = torch.cat([self.qkv[0](n[0](c)), self.qkv[1](n[1](x))], 1)
        q, k, v = (z.unflatten(-1, (4, -1)).transpose(1, 2) for z in h.chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        c, x = c + self.out[0](y[:, :t]), x + self.out[1](y[:, t:])
        c = c + self.down[0](F.gelu(self.up[0](n[2](c))))
        return c, x + self.down[1](F.gelu(self.up[1](n[3](x))))


class OfJoint(Decoder):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Joint() for _ in range(2))
        self.picture = nn.Parameter(torch.randn(1, 5, D))

    def stream(self, tokens):
        c, x = self.embedding(tokens), self.picture.expand(len(tokens), -1, -1)
        for layer in self.layers:
            c, x = layer(c, x)
        return c + x.mean(1, keepdim=True)


class Turned(Attention):
    """RoPE with angles in bfloat16, then a norm as a function, then a factor."""

    def __init__(self, normed):
        super().__init__(normed)
        del self.q_norm, self.k_norm, self.qkv
        self.q, self.k, self.v = (nn.Linear(D, D, bias=False) for _ in range(3))

    def rotated(self, x):
        half = x.shape[-1] // 2
        speed = 100.0 ** -(torch.arange(half) / half)
        angle = torch.outer(torch.arange(x.shape[-2]), speed)
        a, b = x.chunk(2, -1)
        cos, sin = angle.cos().bfloat16(), angle.sin().bfloat16()
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1).type_as(x)

    def forward(self, x):
        q, k, v = (m(x).unflatten(-1, (HEADS, -1)) for m in (self.q, self.k, self.v))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        q, k = norm(self.rotated(q)), norm(self.rotated(k))
        q = q * 1.2
        k = k * 1.2
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Absorbed(Attention):
    """One normed latent is key and value of every head, as in DeepSeek's inference."""

    def __init__(self, normed):
        super().__init__(normed)
        del self.q_norm, self.k_norm, self.qkv
        self.q, self.down = nn.Linear(D, HEADS * 8), nn.Linear(D, 8)
        self.latent_norm, self.out = normed(8), nn.Linear(HEADS * 8, D)

    def forward(self, x):
        q = self.q(x).unflatten(-1, (HEADS, 8))
        c = self.latent_norm(self.down(x))
        scores = torch.einsum("bshc,btc->bsht", q, c)
        later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()[:, None]
        shares = scores.masked_fill(later, -torch.inf).softmax(-1)
        return self.out(torch.einsum("bsht,btc->bshc", shares, c).flatten(2))


class Unit(nn.Module):
    """The rows of a matrix at length one."""

    def forward(self, w):
        return F.normalize(w, dim=-1)


class Sphere(Decoder):
    """No module holds a layer, norms stand between its parts, weights too: nGPT."""

    def __init__(self):
        super().__init__()
        parts = [(Attention(RMSNorm), self.layers[0].feed_forward) for _ in range(3)]
        parts = [nn.ModuleList(copy.deepcopy(pair)) for pair in parts]
        for attention, _ in parts:
            nn.utils.parametrize.register_parametrization(
                attention.out, "weight", Unit()
            )
        self.layers = nn.ModuleList(parts)
        self.step = nn.Parameter(torch.full((D,), 0.2))
        self.norm = nn.Identity()

    def stream(self, tokens):
        x = unit(self.embedding(tokens))
        for parts in self.layers:
            for part in parts:
                x = unit(x.lerp(unit(part(x)), self.step))
        return x


def unit(x):
    return F.normalize(x, dim=-1)


class LossFirst(Decoder):
    """Hands out a loss before the logits, another one in training."""

    def forward(self, tokens):
        logits = super().forward(tokens)
        return logits.square().mean() * self.training, logits


class Reading(Decoder):
    """Reads pictures by cross-attention, and no later token."""

    def forward(self, tokens, pictures):
        x = self.stream(tokens)
        shares = (x @ pictures.mT).softmax(-1)
        return self.head(self.norm(x + shares @ pictures))


class Mixed(nn.Module):
    """The stream is weighed by a matrix on its way: hyper-connections."""

    def __init__(self):
        super().__init__()
        self.norm, self.branch = RMSNorm(D), nn.Linear(D, D)
        self.mix = nn.Parameter(torch.eye(D))

    def forward(self, x):
        return x @ self.mix + self.branch(self.norm(x))


NO_ALARM = {
    "gains trained around one": lambda: faulty.trained(Decoder(), 1),
    "1 + w trained around zero": lambda: faulty.trained(Decoder(faulty.Offset), 0),
    "a gain folded in every layer": folded,
    "Post-Norm with a final norm": lambda: Decoder(block=faulty.PostNorm),
    "DeepNorm": lambda: Decoder(block=DeepNorm),
    "a learned factor on the stream": lambda: Decoder(block=Learned),
    "grouped queries": lambda: Decoder(attention=Grouped),
    "q and k over the projection": lambda: Decoder(attention=Projection),
    "a window": lambda: Decoder(attention=Windowed),
    "the token before": lambda: Decoder(attention=Shifted),
    "torch's LayerNorm": lambda: Decoder(nn.LayerNorm),
    "torch's RMSNorm": lambda: Decoder(lambda d: nn.RMSNorm(d, eps=1e-6)),
    "a bias that only chooses experts": lambda: Decoder(block=Routed),
    "a loss before the logits": LossFirst,
}

# What is written, the model, its norms' kind and gain, its equations.
RIGHT = {
    "a function of torch without a gain": (of(Functional), "RMSNorm", "none", PRE),
    "torch's layer_norm as a function": (of(TorchLayerNorm), "LayerNorm", "w", PRE),
    "root and gain in forward": (of(ByHand), "RMSNorm", "w", PRE),
    "mean, variance and gain in forward": (of(ByHandCentred), "LayerNorm", "w", PRE),
    "a mean without keepdim": (of(LostAxis), "RMSNorm", "w", PRE),
    "squares by products": (of(ByEinsum), "RMSNorm", "w", PRE),
    "a length, and rows turned": (of(ByLength), "RMSNorm", "w", PRE),
    "a function with a module's gain": (of(Lent), "RMSNorm", "w", PRE),
    "statistics that are looked at": (of(Watched), "RMSNorm", "w", PRE),
    "a function with 1 + w": (of(Helper), "RMSNorm", "1+w", PRE),
    "LayerNorm in float32": (lambda: Decoder(Float32LayerNorm), "LayerNorm", "w", PRE),
    "all of it in float32": (lambda: Decoder(Float32Parts), "LayerNorm", "w", PRE),
    "a block that returns None first": (
        lambda: Pairs(block=Pair),
        "RMSNorm",
        "w",
        PRE,
    ),
    "a block that returns a dictionary": (
        lambda: OfWords(block=Words),
        "RMSNorm",
        "w",
        PRE,
    ),
    "a block that returns a dataclass": (
        returning(lambda x: Out(shares(x), x)),
        "RMSNorm",
        "w",
        PRE,
    ),
    "a block that returns a named tuple": (
        returning(lambda x: Named(None, shares(x), x)),
        "RMSNorm",
        "w",
        PRE,
    ),
    "forward under no_grad": (NoGrad, "RMSNorm", "w", PRE),
    "forward in inference mode": (Inference, "RMSNorm", "w", PRE),
    "gradients switched off inside": (Frozen, "RMSNorm", "w", PRE),
    "a cache in a buffer": (with_attention(Cached), "RMSNorm", "w", PRE),
    "a cache that grows": (with_attention(Growing), "RMSNorm", "w", PRE),
    "angles made by the first pass": (with_attention(Sines), "RMSNorm", "w", PRE),
    "a list of experts": (of(Mixture), "RMSNorm", "w", PRE),
    "norm, weights and sum in one module": (of(Whole), "RMSNorm", "w", PRE),
    "a residual handed on beside": (
        lambda: OfTwoStreams(block=TwoStreams),
        "RMSNorm",
        "w",
        PRE,
    ),
    "addition and norm in one module": (of(Fused), "RMSNorm", "w", PRE),
    "adaptive norms": (OfConditions, "LayerNorm", "none", PRE),
    "adaptive norms with gates": (OfZero, "LayerNorm", "none", None),
    "a backward of its own": (lambda: Decoder(Biased), "RMSNorm", "w", PRE),
    "a backward of its own, called in forward": (
        of(faulty.SpelledApply),
        "RMSNorm",
        "w",
        PRE,
    ),
    "q and k normed in forward": (with_attention(InlineHeads), "RMSNorm", "w", PRE),
}
