"""Wrong sandwich and reordered blocks. Same constructors as the snippets'."""

import torch

from snippets.rms_norm.reference import RMSNorm
from snippets.sandwich_norm.blocks import ReorderedNorm, SandwichNorm

# sandwich --------------------------------------------------------------------


class plain_pre_norm(SandwichNorm):
    def forward(self, x):
        return x + self.branch(self.pre(x))


class reordered_for_sandwich(SandwichNorm):
    def forward(self, x):
        return x + self.post(self.branch(x))


class post_norm_of_the_sum(SandwichNorm):
    def forward(self, x):
        return self.post(x + self.branch(self.pre(x)))


class residual_behind_the_pre_norm(SandwichNorm):
    def forward(self, x):
        h = self.pre(x)
        return h + self.post(self.branch(h))


class residual_dropped(SandwichNorm):
    def forward(self, x):
        return self.post(self.branch(self.pre(x)))


class norms_exchanged(SandwichNorm):
    def forward(self, x):
        return x + self.pre(self.branch(self.post(x)))


class both_norms_in_front(SandwichNorm):
    def forward(self, x):
        return x + self.branch(self.post(self.pre(x)))


class both_norms_behind(SandwichNorm):
    def forward(self, x):
        return x + self.post(self.pre(self.branch(x)))


class one_norm_for_both_places(SandwichNorm):
    def __init__(self, branch, d, norm=RMSNorm):
        super().__init__(branch, d, norm)
        self.post = self.pre


class post_norm_of_the_stream_added(SandwichNorm):
    def forward(self, x):
        return x + self.post(x + self.branch(self.pre(x)))


class norm_choice_ignored(SandwichNorm):
    def __init__(self, branch, d, norm=RMSNorm):
        super().__init__(branch, d)


class branch_detached(SandwichNorm):
    def forward(self, x):
        return x + self.post(self.branch(self.pre(x.detach())))


class stream_overwritten(SandwichNorm):
    def forward(self, x):
        x.add_(self.post(self.branch(self.pre(x))))
        return x


class arguments_dropped(SandwichNorm):
    def forward(self, x, *args, **options):
        return x + self.post(self.branch(self.pre(x)))


SANDWICH = [
    plain_pre_norm,
    reordered_for_sandwich,
    post_norm_of_the_sum,
    residual_behind_the_pre_norm,
    residual_dropped,
    norms_exchanged,
    both_norms_in_front,
    both_norms_behind,
    one_norm_for_both_places,
    post_norm_of_the_stream_added,
    norm_choice_ignored,
    branch_detached,
    stream_overwritten,
    arguments_dropped,
]

# reordered -------------------------------------------------------------------


class norm_in_front(ReorderedNorm):
    def forward(self, x):
        return x + self.branch(self.post(x))


class norm_of_the_sum(ReorderedNorm):
    def forward(self, x):
        return self.post(x + self.branch(x))


class norm_on_both_sides(ReorderedNorm):
    def forward(self, x):
        return x + self.post(self.branch(self.post(x)))


class norm_forgotten(ReorderedNorm):
    def forward(self, x):
        return x + self.branch(x)


class stream_normalized(ReorderedNorm):
    def forward(self, x):
        return self.post(x) + self.branch(x)


class stream_lost(ReorderedNorm):
    def forward(self, x):
        return self.post(self.branch(x))


class gain_forgotten(ReorderedNorm):
    def forward(self, x):
        y = self.branch(x)
        square = y.square().mean(-1, keepdim=True)
        return x + y * torch.rsqrt(square + 1e-6)


class gain_stored_as_an_offset(ReorderedNorm):
    def forward(self, x):
        y = self.branch(x)
        square = y.square().mean(-1, keepdim=True)
        gain = getattr(self.post, "gain", None)
        gain = self.post.weight if gain is None else gain
        return x + y * torch.rsqrt(square + 1e-6) * (1 + gain)


class gradient_stopped_at_the_norm(ReorderedNorm):
    def forward(self, x):
        return x + self.post(self.branch(x).detach())


class layer_norm_whatever_was_asked(ReorderedNorm):
    def __init__(self, branch, d, norm=RMSNorm):
        super().__init__(branch, d, torch.nn.LayerNorm)


class update_subtracted(ReorderedNorm):
    def forward(self, x):
        return x - self.post(self.branch(x))


REORDERED = [
    norm_in_front,
    norm_of_the_sum,
    norm_on_both_sides,
    norm_forgotten,
    stream_normalized,
    stream_lost,
    gain_forgotten,
    gain_stored_as_an_offset,
    gradient_stopped_at_the_norm,
    layer_norm_whatever_was_asked,
    update_subtracted,
]
