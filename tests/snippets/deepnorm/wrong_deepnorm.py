"""Wrong DeepNorm blocks. Same constructor and call as DeepNorm."""

import torch
from torch import nn

from snippets.deepnorm.block import DeepNorm


class alpha_on_the_branch(DeepNorm):
    def forward(self, x):
        return self.norm(x + self.alpha * self.branch(x))


class alpha_missing(DeepNorm):
    def forward(self, x):
        return self.norm(x + self.branch(x))


class alpha_on_both_terms(DeepNorm):
    def forward(self, x):
        return self.norm(self.alpha * (x + self.branch(x)))


class alpha_after_the_norm(DeepNorm):
    def forward(self, x):
        return self.alpha * self.norm(x + self.branch(x))


class alpha_divides_the_stream(DeepNorm):
    def forward(self, x):
        return self.norm(x / self.alpha + self.branch(x))


class alpha_reaches_the_branch(DeepNorm):
    def forward(self, x):
        return self.norm(self.alpha * x + self.branch(self.alpha * x))


class norm_missing(DeepNorm):
    def forward(self, x):
        return self.alpha * x + self.branch(x)


class pre_norm_with_alpha(DeepNorm):
    def forward(self, x):
        return self.alpha * x + self.branch(self.norm(x))


class norm_of_the_branch(DeepNorm):
    def forward(self, x):
        return self.alpha * x + self.norm(self.branch(x))


class stream_outside_the_norm(DeepNorm):
    def forward(self, x):
        return x + self.norm(self.alpha * x + self.branch(x))


class stream_detached(DeepNorm):
    def forward(self, x):
        return self.norm(self.alpha * x.detach() + self.branch(x))


class branch_detached(DeepNorm):
    def forward(self, x):
        return self.norm(self.alpha * x + self.branch(x.detach()))


class alpha_only_in_training(DeepNorm):
    def forward(self, x):
        alpha = self.alpha if self.training else 1.0
        return self.norm(alpha * x + self.branch(x))


class rms_norm_for_layer_norm(DeepNorm):
    def __init__(self, branch, d, alpha, eps=1e-5):
        super().__init__(branch, d, alpha, eps)
        self.norm = nn.RMSNorm(d, eps)


class alpha_learned(DeepNorm):
    def __init__(self, branch, d, alpha, eps=1e-5):
        super().__init__(branch, d, alpha, eps)
        self.alpha = nn.Parameter(torch.tensor(float(alpha)))


class eps_ignored(DeepNorm):
    def __init__(self, branch, d, alpha, eps=1e-5):
        super().__init__(branch, d, alpha)


class stream_scaled_in_place(DeepNorm):
    def forward(self, x):
        update = self.branch(x)
        with torch.no_grad():
            x.mul_(self.alpha)
        return self.norm(x + update)


WRONG = [
    alpha_on_the_branch,
    alpha_missing,
    alpha_on_both_terms,
    alpha_after_the_norm,
    alpha_divides_the_stream,
    alpha_reaches_the_branch,
    norm_missing,
    pre_norm_with_alpha,
    norm_of_the_branch,
    stream_outside_the_norm,
    stream_detached,
    branch_detached,
    alpha_only_in_training,
    rms_norm_for_layer_norm,
    alpha_learned,
    eps_ignored,
    stream_scaled_in_place,
]
