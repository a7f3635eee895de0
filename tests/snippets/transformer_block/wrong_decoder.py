"""Wrong decoders that readers meet in the wild. Same signature as Decoder."""

from types import MethodType

import torch
from torch import nn
from torch.nn import functional as F

from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.transformer_block.decoder import Decoder, rotate


def _blocks(sizes, forward):
    """A Decoder whose blocks run another forward(block, x)."""
    model = Decoder(sizes)
    for block in model.blocks:
        block.forward = MethodType(forward, block)
    return model


def _norms(sizes, forward):
    """A Decoder whose norms run another forward(norm, x)."""
    model = Decoder(sizes)
    for module in model.modules():
        if isinstance(module, RMSNorm):
            module.forward = MethodType(forward, module)
    return model


def _attention(
    sizes,
    *,
    turn=rotate,
    norm_first=True,
    across_heads=False,
    normed="qk",
    turned="qk",
    repeat="interleave",
    causal=True,
    scale=None,
):
    """A Decoder whose attention differs in one of these ways."""

    def forward(self, x):
        heads = {
            name: getattr(self, name)(x).unflatten(-1, (-1, self.width))
            for name in "qkv"
        }

        def norm(name):
            module = self.q_norm if name == "q" else self.k_norm
            if isinstance(module, nn.Identity) or name not in normed:
                return
            value = heads[name]
            if across_heads:
                square = value.square().mean((-2, -1), keepdim=True)
                heads[name] = value * torch.rsqrt(square + module.eps) * module.gain
            else:
                heads[name] = module(value)

        if norm_first:
            [norm(name) for name in "qkv"]
        for name in heads:
            value = heads[name].transpose(1, 2)
            value = turn(value, self.base) if name in turned else value
            heads[name] = value.transpose(1, 2)
        if not norm_first:
            [norm(name) for name in "qkv"]
        q, k, v = (heads[name].transpose(1, 2) for name in "qkv")
        times = q.shape[1] // k.shape[1]
        if repeat == "interleave":
            k, v = (each.repeat_interleave(times, dim=1) for each in (k, v))
        else:
            k, v = (each.repeat(1, times, 1, 1) for each in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
        return self.out(y.transpose(1, 2).flatten(start_dim=2))

    model = Decoder(sizes)
    for block in model.blocks:
        block.attention.forward = MethodType(forward, block.attention)
    return model


def final_norm_missing(sizes):
    model = Decoder(sizes)
    model.norm = nn.Identity()
    return model


def residual_taken_after_the_norm(sizes):
    def forward(self, x):
        x = self.attention_norm(x)
        x = x + self.attention(x)
        x = self.ffn_norm(x)
        return x + self.ffn(x)

    return _blocks(sizes, forward)


def post_norm(sizes):
    def forward(self, x):
        x = self.attention_norm(x + self.attention(x))
        return self.ffn_norm(x + self.ffn(x))

    return _blocks(sizes, forward)


def branch_outputs_normalized(sizes):
    def forward(self, x):
        x = x + self.attention_norm(self.attention(x))
        return x + self.ffn_norm(self.ffn(x))

    return _blocks(sizes, forward)


def one_norm_for_both_branches(sizes):
    model = Decoder(sizes)
    for block in model.blocks:
        block.ffn_norm = block.attention_norm
    return model


def one_norm_for_queries_and_keys(sizes):
    model = Decoder(sizes)
    for block in model.blocks:
        block.attention.k_norm = block.attention.q_norm
    return model


def one_norm_for_all_blocks(sizes):
    model = Decoder(sizes)
    for block in model.blocks:
        block.attention_norm = model.blocks[0].attention_norm
    return model


def norms_of_the_branches_swapped(sizes):
    def forward(self, x):
        x = x + self.attention(self.ffn_norm(x))
        return x + self.ffn(self.attention_norm(x))

    return _blocks(sizes, forward)


def ffn_reads_the_bare_stream(sizes):
    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.ffn(x)

    return _blocks(sizes, forward)


def ffn_reads_the_stream_before_attention(sizes):
    def forward(self, x):
        y = x + self.attention(self.attention_norm(x))
        return y + self.ffn(self.ffn_norm(x))

    return _blocks(sizes, forward)


def ffn_reads_the_attention_branch_only(sizes):
    def forward(self, x):
        y = self.attention(self.attention_norm(x))
        return x + y + self.ffn(self.ffn_norm(y))

    return _blocks(sizes, forward)


def attention_not_added_to_the_stream(sizes):
    def forward(self, x):
        y = self.attention(self.attention_norm(x))
        return y + self.ffn(self.ffn_norm(y))

    return _blocks(sizes, forward)


def eps_of_another_model(sizes):
    return _norms(sizes, lambda self, x: rms_norm(x, self.gain, 1e-6))


def eps_outside_the_root(sizes):
    def forward(self, x):
        root = x.square().mean(-1, keepdim=True).sqrt()
        return self.gain * x / (root + self.eps)

    return _norms(sizes, forward)


def gain_read_as_distance_from_one(sizes):
    return _norms(sizes, lambda self, x: rms_norm(x, 1 + self.gain, self.eps))


def gain_ignored(sizes):
    return _norms(sizes, lambda self, x: rms_norm(x, None, self.eps))


def mean_subtracted(sizes):
    def forward(self, x):
        return rms_norm(x - x.mean(-1, keepdim=True), self.gain, self.eps)

    return _norms(sizes, forward)


def statistics_over_time_too(sizes):
    def forward(self, x):
        square = x.square().mean((1, -1) if x.ndim == 3 else -1, keepdim=True)
        return self.gain * x * torch.rsqrt(square + self.eps)

    return _norms(sizes, forward)


def statistics_detached(sizes):
    def forward(self, x):
        square = x.detach().square().mean(-1, keepdim=True)
        return self.gain * x * torch.rsqrt(square + self.eps)

    return _norms(sizes, forward)


def norm_returns_float32(sizes):
    """Everything behind a norm is wide; right in float64 and float32."""

    def norm(self, x):
        wide = torch.promote_types(x.dtype, torch.float32)
        return rms_norm(x.to(wide), self.gain, self.eps)

    def linear(self, x):
        return F.linear(x, self.weight.to(x.dtype))

    model = _norms(sizes, norm)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.forward = MethodType(linear, module)

    def forward(tokens):
        x = model.embedding(tokens)
        for block in model.blocks:
            x = block(x)
        x = model.norm(x)
        return F.linear(x, model.embedding.weight.to(x.dtype))

    model.forward = forward
    return model


def rotary_pairs_adjacent(sizes):
    def turn(x, base):
        order = x.unflatten(-1, (-1, 2)).transpose(-2, -1).flatten(-2)
        y = rotate(order, base)
        return y.unflatten(-1, (2, -1)).transpose(-2, -1).flatten(-2)

    return _attention(sizes, turn=turn)


def rotary_missing(sizes):
    return _attention(sizes, turned="")


def rotary_on_the_values_too(sizes):
    return _attention(sizes, turned="qkv")


def rotary_in_the_other_direction(sizes):
    return _attention(sizes, turn=lambda x, base: rotate(x.flip(-2), base).flip(-2))


def rotary_angles_in_low_precision(sizes):
    """Positions above 256 have no bfloat16 of their own."""

    def turn(x, base):
        half = x.shape[-1] // 2
        exponent = torch.arange(half, dtype=torch.float64) / half
        frequency = (base**-exponent).to(x.dtype)
        angle = torch.arange(x.shape[-2]).to(x.dtype)[:, None] * frequency
        first, second = x.chunk(2, dim=-1)
        cos, sin = angle.cos(), angle.sin()
        turned = (first * cos - second * sin, second * cos + first * sin)
        return torch.cat(turned, dim=-1)

    return _attention(sizes, turn=turn)


def rotary_with_another_base(sizes):
    return _attention(sizes, turn=lambda x, base: rotate(x, 10000.0))


def qk_norm_after_rotation(sizes):
    return _attention(sizes, norm_first=False)


def qk_norm_across_all_heads(sizes):
    return _attention(sizes, across_heads=True)


def qk_norm_forgotten(sizes):
    return _attention(sizes, normed="")


def qk_norm_on_the_queries_only(sizes):
    return _attention(sizes, normed="q")


def values_normalized_too(sizes):
    return _attention(sizes, normed="qkv")


def key_heads_tiled(sizes):
    return _attention(sizes, repeat="tile")


def sees_the_future(sizes):
    return _attention(sizes, causal=False)


def scores_not_scaled(sizes):
    return _attention(sizes, scale=1.0)


def gate_and_up_swapped(sizes):
    model = Decoder(sizes)
    for block in model.blocks:
        block.ffn.forward = MethodType(
            lambda self, x: self.down(self.gate(x) * F.silu(self.up(x))), block.ffn
        )
    return model


def _ends(sizes, start, head):
    model = Decoder(sizes)

    def forward(tokens):
        x = start(model, tokens)
        for block in model.blocks:
            x = block(x)
        return head(model, model.norm(x))

    model.forward = forward
    return model


def _embed(model, tokens):
    return model.embedding(tokens)


def _head(model, x):
    return F.linear(x, model.embedding.weight)


def embedding_scaled(sizes):
    return _ends(sizes, lambda m, t: m.embedding(t) * sizes.d**0.5, _head)


def embedding_normalized(sizes):
    return _ends(
        sizes, lambda m, t: rms_norm(m.embedding(t), m.norm.gain, sizes.eps), _head
    )


def head_is_a_copy(sizes):
    return _ends(sizes, _embed, lambda m, x: F.linear(x, m.embedding.weight.detach()))


def logits_capped(sizes):
    return _ends(sizes, _embed, lambda m, x: 30 * torch.tanh(_head(m, x) / 30))


WRONG = [
    value
    for name, value in list(globals().items())
    if callable(value)
    and not name.startswith("_")
    and getattr(value, "__module__", "") == __name__
]
