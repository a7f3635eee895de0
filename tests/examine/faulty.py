"""A small decoder, and the same with one bug each: what `examine` must find."""

import torch
from torch import nn
from torch.nn import functional as F

D, HEADS, LAYERS, VOCABULARY = 32, 4, 3, 61


class RMSNorm(nn.Module):
    """RMSNorm with statistics in float32; subclasses plant one bug."""

    start = 1.0

    def __init__(self, d: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.full((d,), self.start))
        self.eps = eps

    def root(self, h):
        return torch.rsqrt(h.square().mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        h = x.float()
        return (h * self.root(h)).type_as(x) * self.weight


class Attention(nn.Module):
    later = 0  # how many later tokens the mask lets through
    normed = ("q", "k")

    def __init__(self, norm):
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D, bias=False)
        self.out = nn.Linear(D, D, bias=False)
        self.q_norm, self.k_norm = (norm(D // HEADS) for _ in range(2))
        if "k" not in self.normed:
            del self.k_norm

    def rotated(self, x):
        """x: (batch, heads, tokens, d). RoPE."""
        half = x.shape[-1] // 2
        angle = torch.outer(
            torch.arange(x.shape[-2]), 100.0 ** -(torch.arange(half) / half)
        )
        a, b = x.chunk(2, -1)
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def heads(self, x):
        q, k, v = (
            t.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for t in self.qkv(x).chunk(3, -1)
        )
        q = self.q_norm(q)
        return q, self.k_norm(k) if "k" in self.normed else k, v

    def forward(self, x):
        q, k, v = self.heads(x)
        q, k = self.rotated(q), self.rotated(k)
        mask = torch.ones(x.shape[1], x.shape[1]).tril(self.later).bool()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, norm=RMSNorm, attention=Attention):
        super().__init__()
        self.norm_1, self.norm_2 = norm(D), norm(D)
        self.attention = attention(norm)
        self.feed_forward = nn.Sequential(
            nn.Linear(D, 2 * D), nn.SiLU(), nn.Linear(2 * D, D)
        )

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


class Decoder(nn.Module):
    def __init__(self, norm=RMSNorm, attention=Attention, block=Block, odd=None):
        super().__init__()
        kinds = [block] * LAYERS
        if odd is not None:
            kinds[1] = odd
        self.embedding = nn.Embedding(VOCABULARY, D)
        self.layers = nn.ModuleList(kind(norm, attention) for kind in kinds)
        self.norm = norm(D)
        self.head = nn.Linear(D, VOCABULARY, bias=False)

    def stream(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return x

    def forward(self, tokens):
        return self.head(self.norm(self.stream(tokens)))


def clean():
    return Decoder()


# Norms ------------------------------------------------------------------------------


class OverTokens(RMSNorm):
    """One statistic for all tokens of a sample."""

    def root(self, h):
        axes = (1, 2) if h.ndim == 3 else -1
        return torch.rsqrt(h.square().mean(axes, keepdim=True) + self.eps)


class WrongAxis(RMSNorm):
    """The mean runs over the tokens, not over the features."""

    def root(self, h):
        return torch.rsqrt(h.square().mean(1, keepdim=True) + self.eps)


class OverBatch(RMSNorm):
    def root(self, h):
        return torch.rsqrt(h.square().mean(0, keepdim=True) + self.eps)


class EpsOutside(RMSNorm):
    def root(self, h):
        return 1 / (h.square().mean(-1, keepdim=True).sqrt() + self.eps)


class EpsTiny(RMSNorm):
    """1e-8 in float16, where it is zero: the root is taken in the input's dtype."""

    def __init__(self, d):
        super().__init__(d, 1e-8)

    def forward(self, x):
        small = x / 64  # the squares of large elements fit
        eps = torch.tensor(self.eps / 4096).to(x.dtype)
        root = torch.rsqrt(small.square().mean(-1, keepdim=True) + eps)
        return small * root * self.weight


class NoEps(RMSNorm):
    def root(self, h):
        return torch.rsqrt(h.square().mean(-1, keepdim=True))


class HalfSquares(RMSNorm):
    def forward(self, x):
        return x * self.root(x).to(x.dtype) * self.weight


class Zeros(RMSNorm):
    """Weights that start at zero, as where the gain is 1 + w, used as w."""

    start = 0.0


class Doubled(RMSNorm):
    """Gain 1 + w, with weights that start at one."""

    def forward(self, x):
        h = x.float()
        return (h * self.root(h)).type_as(x) * (1 + self.weight)


class Ignored(RMSNorm):
    def forward(self, x):
        h = x.float()
        return (h * self.root(h)).type_as(x)


class Detached(RMSNorm):
    def root(self, h):
        return super().root(h).detach()


class _Backward(torch.autograd.Function):
    """RMSNorm with a backward of its own; subclasses get one part wrong."""

    @staticmethod
    def forward(ctx, x, w, eps):
        r = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, w, r)
        return x * r * w

    @classmethod
    def backward(cls, ctx, g):
        x, w, r = ctx.saved_tensors
        n, u = x * r, g * w
        dw = (g * n).flatten(0, -2).sum(0)
        return r * (u - n * (u * n).mean(-1, keepdim=True)), dw, None


class _NormedTwice(_Backward):
    """The normalized tensor is taken for the input."""

    @classmethod
    def backward(cls, ctx, g):
        x, w, r = ctx.saved_tensors
        n = x * r
        r = torch.rsqrt(n.square().mean(-1, keepdim=True))
        u = g * w
        dx = r * (u - n * (u * n).mean(-1, keepdim=True))
        return dx, (g * n).flatten(0, -2).sum(0), None


class _MeanOfRows(_Backward):
    """A mean over rows where a sum belongs."""

    @classmethod
    def backward(cls, ctx, g):
        dx, dw, _ = super().backward(ctx, g)
        return dx, dw / g[..., 0].numel(), None


class OwnBackward(RMSNorm):
    function = _Backward

    def forward(self, x):
        return self.function.apply(x.float(), self.weight, self.eps).type_as(x)


class BackwardTwice(OwnBackward):
    function = _NormedTwice


class BackwardMean(OwnBackward):
    function = _MeanOfRows


class SpelledApply(Block):
    """The function is called in the forward of the block."""

    function = _Backward

    def normed(self, x, norm):
        return self.function.apply(x, norm.weight, norm.eps)

    def forward(self, x):
        x = x + self.attention(self.normed(x, self.norm_1))
        return x + self.feed_forward(self.normed(x, self.norm_2))


class SpelledTwice(SpelledApply):
    function = _NormedTwice


class SpelledMean(SpelledApply):
    function = _MeanOfRows


class BackwardNone(RMSNorm):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


class Cut(Decoder):
    """No gradient goes through the middle of the stream."""

    def stream(self, tokens):
        x = self.embedding(tokens)
        for i, layer in enumerate(self.layers):
            x = layer(x.detach() if i == 1 else x)
        return x


class Cancelling(nn.LayerNorm):
    """The variance as a difference of two large numbers."""

    def forward(self, x):
        h = x.float()
        mean = h.mean(-1, keepdim=True)
        var = (h.square().mean(-1, keepdim=True) - mean.square()).clamp_min(0)
        h = (h - mean) * torch.rsqrt(var + self.eps)
        return (h * self.weight + self.bias).type_as(x)


class Rounded(RMSNorm):
    """One is added in the dtype of the weight."""

    start = 0.0

    def forward(self, x):
        h = x.float()
        return (h * self.root(h) * (1 + self.weight).float()).type_as(x)


class Offset(RMSNorm):
    """Gain 1 + w, right."""

    start = 0.0

    def forward(self, x):
        h = x.float()
        return (h * self.root(h) * (1 + self.weight.float())).type_as(x)


def trained(model, around: float):
    """A model whose gains scatter around a number."""
    random = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, RMSNorm):
            noise = torch.randn(module.weight.shape, generator=random)
            module.weight.data = around + 0.1 * noise
    return model


def not_loaded():
    model = trained(Decoder(), 1)
    model.layers[1].norm_2.weight.data.fill_(1)
    return model


class FinalTwice(Decoder):
    def forward(self, tokens):
        return self.head(self.norm(self.norm(self.stream(tokens))))


class Alpha(Block):
    """The factor of DeepNorm on the stream of a Pre-Norm layer."""

    def forward(self, x):
        x = 1.5 * x + self.attention(self.norm_1(x))
        return 1.5 * x + self.feed_forward(self.norm_2(x))


class CutAskew(Attention):
    """A view where a transpose belongs, on the way in and out."""

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (z.reshape(b, HEADS, t, -1) for z in self.qkv(x).chunk(3, -1))
        q, k = self.rotated(self.q_norm(q)), self.rotated(self.k_norm(k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.reshape(b, t, D))


class MergedAskew(Attention):
    def forward(self, x):
        q, k, v = self.heads(x)
        q, k = self.rotated(q), self.rotated(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.reshape(x.shape))


class AcrossHeads(Attention):
    """Each feature of q and k is normed over the heads."""

    def __init__(self, norm):
        super().__init__(norm)
        self.q_norm, self.k_norm = norm(HEADS), norm(HEADS)

    def heads(self, x):
        q, k, v = (
            t.unflatten(-1, (HEADS, -1)).transpose(2, 3)
            for t in self.qkv(x).chunk(3, -1)
        )
        q, k = self.q_norm(q), self.k_norm(k)
        return tuple(t.permute(0, 3, 1, 2) for t in (q, k, v))


class InPlace(RMSNorm):
    def forward(self, x):
        if x.ndim > 3:  # q and k are views, where torch refuses
            return super().forward(x)
        return x.mul_(self.root(x.float())) * self.weight


class Unbiased(RMSNorm):
    """LayerNorm without a bias; the variance divides by n - 1."""

    def forward(self, x):
        h = x.float()
        h = h - h.mean(-1, keepdim=True)
        return h * torch.rsqrt(h.var(-1, keepdim=True) + self.eps) * self.weight


class CentredRMSNorm(RMSNorm):
    def forward(self, x):
        return super().forward(x - x.mean(-1, keepdim=True))


class TrainOnly(RMSNorm):
    """Statistics over the batch while training, over the features after."""

    def root(self, h):
        axis = 0 if self.training else -1
        return torch.rsqrt(h.square().mean(axis, keepdim=True) + self.eps)


class Running(nn.BatchNorm1d):
    """BatchNorm over the features of every token."""

    def forward(self, x):
        return super().forward(x.flatten(0, -2)).view_as(x)


# Blocks -----------------------------------------------------------------------------


class NormOnStream(Block):
    """The norm stands behind the residual sum, in a Pre-Norm layer."""

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return self.norm_2(x + self.feed_forward(x))


class PostNorm(Block):
    def forward(self, x):
        x = self.norm_1(x + self.attention(x))
        return self.norm_2(x + self.feed_forward(x))


class Spelled(Block):
    """The norms are lines of forward; their statistics get no gradient."""

    def forward(self, x):
        square = x.square().mean(-1, keepdim=True)
        n = x * torch.rsqrt(square.detach() + 1e-6) * self.norm_1.weight
        x = x + self.attention(n)
        square = x.square().mean(-1).data
        n = x / torch.sqrt(square + 1e-6)[..., None] * self.norm_2.weight
        return x + self.feed_forward(n)


@torch.no_grad()
def root(x):
    return torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


class SpelledNoGrad(Block):
    """A statistic of one norm under no_grad, the whole of the other one."""

    def forward(self, x):
        x = x + self.attention(x * root(x) * self.norm_1.weight)
        with torch.no_grad():
            n = x * root(x) * self.norm_2.weight
        return x + self.feed_forward(n)


class NormForgotten(Block):
    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_1(x))


class BareBranch(Block):
    """The feed-forward network reads the stream as it is."""

    def __init__(self, norm, attention):
        super().__init__(norm, attention)
        del self.norm_2

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(x)


class NormedTwice(Block):
    def forward(self, x):
        x = x + self.attention(self.norm_1(self.norm_2(x)))
        return x + self.feed_forward(self.norm_2(x))


class Seeing(Block):
    """A feed-forward network that reads the mean of all tokens."""

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        h = self.norm_2(x)
        return x + self.feed_forward(h - h.mean(1, keepdim=True))


class OffByOne(Attention):
    later = 1


class Bidirectional(Attention):
    later = 100


class Unmasked(Block):
    """One layer whose attention has no mask."""

    def __init__(self, norm, _):
        super().__init__(norm, Bidirectional)


class OnlyQ(Attention):
    normed = ("q",)


class NoFinal(Decoder):
    def __init__(self):
        super().__init__()
        del self.norm

    def forward(self, tokens):
        return self.head(self.stream(tokens))


class Loaded(Decoder):
    """A checkpoint of 1 + w, its weights around zero, in norms that use w."""

    def __init__(self):
        super().__init__()
        random = torch.Generator().manual_seed(1)
        for module in self.modules():
            if isinstance(module, RMSNorm):
                noise = torch.randn(module.weight.shape, generator=random)
                module.weight.data = 0.1 * noise


class Swapped(Decoder):
    """A checkpoint whose two norms of a layer were exchanged."""

    def __init__(self):
        super().__init__()
        self.layers[0].norm_1.weight.data.fill_(0.5)
        self.layers[0].norm_2.weight.data.fill_(2.0)


class OtherEps(RMSNorm):
    """The checkpoint was trained with 1e-6."""

    def __init__(self, d):
        super().__init__(d, 1e-5)


def norm(kind):
    return lambda: Decoder(kind)


def block(kind):
    return lambda: Decoder(block=kind)


# What is planted, the model, and the rule that must find it.
FOUND = {
    "statistics over the sequence": (norm(OverTokens), "over-tokens"),
    "mean over the wrong axis": (norm(WrongAxis), "wrong-axis"),
    "statistics over the batch": (norm(OverBatch), "over-batch"),
    "epsilon outside the root": (norm(EpsOutside), "eps-outside"),
    "epsilon too small for float16": (norm(EpsTiny), "eps-half"),
    "no epsilon": (norm(NoEps), "eps-none"),
    "squares in half precision": (norm(HalfSquares), "half"),
    "gain w that starts at zero": (norm(Zeros), "gain-zero"),
    "gain 1 + w that starts at one": (norm(Doubled), "gain-two"),
    "a checkpoint of 1 + w in norms of w": (Loaded, "gain-centred"),
    "the gain is ignored": (norm(Ignored), "dead"),
    "statistics are detached": (norm(Detached), "detached"),
    "backward norms twice": (norm(BackwardTwice), "gradient-input"),
    "the gain's gradient is a mean": (norm(BackwardMean), "gradient-gain-scaled"),
    "backward norms twice, called in forward": (block(SpelledTwice), "gradient-input"),
    "a mean, called in forward": (block(SpelledMean), "gradient-gain-scaled"),
    "a norm under no_grad": (norm(BackwardNone), "gradient-input-none"),
    "a statistic is detached in forward": (block(Spelled), "detached"),
    "a norm in forward under no_grad": (block(SpelledNoGrad), "gradient-input-none"),
    "the stream is detached": (Cut, "unreached"),
    "a variance that cancels": (norm(Cancelling), "cancels"),
    "one added in bfloat16": (norm(Rounded), "one-rounds"),
    "a file of 1 + w in norms that add one": (
        lambda: trained(Decoder(Offset), 1),
        "gain-near-one",
    ),
    "one gain that was not loaded": (not_loaded, "gain-constant"),
    "the final norm runs twice": (FinalTwice, "twice"),
    "a factor on a Pre-Norm stream": (block(Alpha), "stream-scaled"),
    "heads cut without a transpose": (
        lambda: Decoder(attention=CutAskew),
        "heads",
    ),
    "heads merged without a transpose": (
        lambda: Decoder(attention=MergedAskew),
        "heads",
    ),
    "q and k normed over the heads": (
        lambda: Decoder(attention=AcrossHeads),
        "over-heads",
    ),
    "the norm changes its input": (norm(InPlace), "in-place"),
    "the variance is unbiased": (norm(Unbiased), "unbiased"),
    "an RMSNorm that centres": (norm(CentredRMSNorm), "named-rms"),
    "another axis while training": (norm(TrainOnly), "train"),
    "BatchNorm over tokens": (norm(Running), "train"),
    "a norm on the stream": (block(NormOnStream), "stream-normed"),
    "a branch without a norm": (block(BareBranch), "branches-differ"),
    "one Post-Norm layer": (lambda: Decoder(odd=PostNorm), "layers-differ"),
    "a norm that is never called": (block(NormForgotten), "idle"),
    "a norm of a norm": (block(NormedTwice), "twice"),
    "the final norm is missing": (NoFinal, "no-final"),
    "q is normed and k is not": (lambda: Decoder(attention=OnlyQ), "one-side"),
    "a mask off by one": (lambda: Decoder(attention=OffByOne), "later-some"),
    "one layer without a mask": (lambda: Decoder(odd=Unmasked), "later-layer"),
    "a mean over all tokens in the FFN": (block(Seeing), "later-outside"),
}
# What no probe of one model tells, and why.
NOT_FOUND = {
    "no causal mask in any layer": (
        lambda: Decoder(attention=Bidirectional),
        "an encoder acts so; --causal makes it a fault",
    ),
    "gains of two norms exchanged": (Swapped, "any positive gains could be meant"),
    "another epsilon than in training": (
        norm(OtherEps),
        "both are in use; --against the original tells",
    ),
}
