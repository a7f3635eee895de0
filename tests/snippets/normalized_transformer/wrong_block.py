"""Wrong nGPT layers that readers meet in the wild."""

import torch
from torch.nn import functional as F

from snippets.normalized_transformer.block import NormalizedBlock, rotate
from snippets.normalized_transformer.sphere import step_towards, unit


class _Block(NormalizedBlock):
    def scores(self, h):
        q, k, v = (self.split(each(h)) for each in (self.query, self.key, self.value))
        return q, k, v, self.s_qk().unflatten(0, (self.heads, 1, -1))

    def attend(self, q, k, v, scale=None, causal=True):
        scale = (self.d // self.heads) ** 0.5 if scale is None else scale
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
        return self.attention_out(y.transpose(-3, -2).flatten(-2))

    def branches(self):
        yield self.attention, self.alpha_attention()
        yield self.feed_forward, self.alpha_feed_forward()


class divides_by_the_root(_Block):
    def attention(self, h):
        q, k, v, s = self.scores(h)
        q, k = (s * unit(rotate(each)) for each in (q, k))
        return self.attend(q, k, v, (self.d // self.heads) ** -0.5)


class root_of_d_for_that_of_the_head(_Block):
    def attention(self, h):
        q, k, v, s = self.scores(h)
        q, k = (s * unit(rotate(each)) for each in (q, k))
        return self.attend(q, k, v, self.d**0.5)


class queries_not_normalized(_Block):
    def attention(self, h):
        q, k, v, s = self.scores(h)
        return self.attend(s * rotate(q), s * unit(rotate(k)), v)


class normalized_across_heads(_Block):
    def attention(self, h):
        q, k = (self.split(unit(each(h))) for each in (self.query, self.key))
        _, _, v, s = self.scores(h)
        return self.attend(s * rotate(q), s * rotate(k), v)


class values_normalized_too(_Block):
    def attention(self, h):
        q, k, v, s = self.scores(h)
        q, k = (s * unit(rotate(each)) for each in (q, k))
        return self.attend(q, k, unit(v))


class scale_before_the_norm(_Block):
    def attention(self, h):
        q, k, v, s = self.scores(h)
        q, k = (unit(s * rotate(each)) for each in (q, k))
        return self.attend(q, k, v)


class scale_before_the_rotation(_Block):
    def attention(self, h):
        q, k, v, s = self.scores(h)
        q, k = (rotate(s * unit(each)) for each in (q, k))
        return self.attend(q, k, v)


class scale_on_queries_only(_Block):
    def attention(self, h):
        q, k, v, s = self.scores(h)
        return self.attend(s * unit(rotate(q)), unit(rotate(k)), v)


class sees_the_future(_Block):
    def attention(self, h):
        q, k, v, s = self.scores(h)
        q, k = (s * unit(rotate(each)) for each in (q, k))
        return self.attend(q, k, v, causal=False)


class positions_forgotten(_Block):
    def attention(self, h):
        q, k, v, s = self.scores(h)
        return self.attend(s * unit(q), s * unit(k), v)


class half_a_rotation(_Block):
    """The rotary function of the published code: (-b cos, a sin)."""

    def attention(self, h):
        q, k, v, s = self.scores(h)
        q, k = (s * unit(self.half(each)) for each in (q, k))
        return self.attend(q, k, v)

    def half(self, x):
        ones = torch.ones_like(x)
        ones[..., 1::2] = 0
        turned = rotate(ones)  # (cos, sin) of each pair
        cos, sin = turned[..., ::2], turned[..., 1::2]
        return torch.stack((-x[..., 1::2] * cos, x[..., ::2] * sin), -1).flatten(-2)


class gate_not_scaled_up(_Block):
    def feed_forward(self, h):
        u, v = self.s_u() * self.up(h), self.s_v() * self.gate(h)
        return self.feed_forward_out(u * F.silu(v))


class up_and_gate_exchanged(_Block):
    def feed_forward(self, h):
        u = self.s_u() * self.d**0.5 * self.up(h)
        return self.feed_forward_out(self.s_v() * self.gate(h) * F.silu(u))


class branch_not_normalized(_Block):
    def forward(self, h):
        for branch, alpha in self.branches():
            h = step_towards(h, branch(h), alpha.abs())
        return h


class not_back_on_the_sphere(_Block):
    def forward(self, h):
        for branch, alpha in self.branches():
            h = h + alpha.abs() * (unit(branch(h)) - h)
        return h


class state_not_taken_away(_Block):
    def forward(self, h):
        for branch, alpha in self.branches():
            h = unit(h + alpha.abs() * unit(branch(h)))
        return h


class plain_sum(_Block):
    def forward(self, h):
        for branch, _ in self.branches():
            h = unit(h + branch(h))
        return h


class alpha_may_be_negative(_Block):
    def forward(self, h):
        for branch, alpha in self.branches():
            h = step_towards(h, unit(branch(h)), alpha)
        return h


class stored_alpha_used(_Block):
    def forward(self, h):
        alphas = self.alpha_attention.stored, self.alpha_feed_forward.stored
        for (branch, _), alpha in zip(self.branches(), alphas, strict=True):
            h = step_towards(h, unit(branch(h)), alpha.abs())
        return h


class branches_in_parallel(_Block):
    def forward(self, h):
        start = h
        for branch, alpha in self.branches():
            h = step_towards(h, unit(branch(start)), alpha.abs())
        return h


class rms_for_length(_Block):
    def forward(self, h):
        for branch, alpha in self.branches():
            b = branch(h)
            b = b * torch.rsqrt(b.square().mean(-1, keepdim=True))
            h = step_towards(h, b, alpha.abs())
        return h


VARIANTS = [
    value
    for value in list(globals().values())
    if isinstance(value, type)
    and issubclass(value, _Block)
    and not value.__name__.startswith("_")
]
