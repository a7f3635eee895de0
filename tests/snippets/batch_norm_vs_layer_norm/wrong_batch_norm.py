"""Wrong BatchNorms that readers meet in the wild; built like BatchNorm."""

import torch
from torch import nn

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm, normalize


def _moments(x, dims, correction=0):
    """Variance and mean over dims, kept; 0 for the variance of a single value."""
    mean = x.mean(dims, keepdim=True)
    square = (x - mean).square()
    count = x.numel() // mean.numel()
    return square.sum(dims, keepdim=True) / max(count - correction, 1), mean


class unbiased_variance_normalizes(BatchNorm):
    def forward(self, x):
        mean, var = self.statistics(x.flatten(end_dim=-2))
        if self.training:
            n = x.numel() // x.shape[-1]
            var = var * n / (n - 1)
        return normalize(x, mean, var, self)


class biased_variance_is_stored(BatchNorm):
    def statistics(self, tokens):
        if not self.training:
            return self.running_mean, self.running_var
        if len(tokens) < 2:
            raise ValueError
        wide = tokens.to(torch.promote_types(tokens.dtype, torch.float32))
        var, mean = torch.var_mean(wide, 0, correction=0)
        self.track(mean, var)
        return mean, var


class mean_added_to_the_numerator(BatchNorm):
    def forward(self, x):
        mean, var = self.statistics(x.flatten(end_dim=-2))
        return normalize(x, -mean, var, self)


class pools_the_first_dimension_only(BatchNorm):
    def forward(self, x):
        if not self.training or x.ndim == 2:
            return super().forward(x)
        var, mean = _moments(x, 0)
        d = x.shape[-1]
        self.track(mean.reshape(-1, d).mean(0), var.reshape(-1, d).mean(0))
        return normalize(x, mean, var, self)


class pools_each_sequence_alone(BatchNorm):
    def forward(self, x):
        if not self.training or x.ndim == 2:
            return super().forward(x)
        super().forward(x)
        var, mean = _moments(x, tuple(range(1, x.ndim - 1)))
        return normalize(x, mean, var, self)


class pools_the_features_too(BatchNorm):
    def forward(self, x):
        if not self.training:
            return super().forward(x)
        super().forward(x)
        var, mean = _moments(x, tuple(range(x.ndim)))
        return normalize(x, mean, var, self)


class momentum_weighs_the_old(BatchNorm):
    def track(self, mean, unbiased_var):
        keep, self.momentum = self.momentum, 1 - self.momentum
        super().track(mean, unbiased_var)
        self.momentum = keep


class cumulative_average(BatchNorm):
    seen = 0

    def track(self, mean, unbiased_var):
        self.seen += 1
        keep, self.momentum = self.momentum, 1 / self.seen
        super().track(mean, unbiased_var)
        self.momentum = keep


class variance_never_tracked(BatchNorm):
    def track(self, mean, unbiased_var):
        super().track(mean, self.running_var)


class standard_deviation_is_tracked(BatchNorm):
    def track(self, mean, unbiased_var):
        super().track(mean, unbiased_var.sqrt())


class running_statistics_in_training(BatchNorm):
    def statistics(self, tokens):
        super().statistics(tokens)
        return self.running_mean.clone(), self.running_var.clone()


class mode_is_ignored(BatchNorm):
    def statistics(self, tokens):
        mode, self.training = self.training, True
        found = super().statistics(tokens)
        self.training = mode
        return found


class eval_uses_the_batch(BatchNorm):
    def statistics(self, tokens):
        if self.training:
            return super().statistics(tokens)
        var, mean = _moments(tokens, 0)
        return mean[0], var[0]


class eval_goes_on_tracking(BatchNorm):
    def statistics(self, tokens):
        if not self.training:
            var, mean = _moments(tokens, 0)
            found = self.running_mean.clone(), self.running_var.clone()
            self.track(mean[0], var[0])
            return found
        return super().statistics(tokens)


class running_statistics_are_parameters(BatchNorm):
    def __init__(self, d, eps=1e-5, momentum=0.1):
        super().__init__(d, eps, momentum)
        for name in ("running_mean", "running_var"):
            value = getattr(self, name)
            del self._buffers[name]
            setattr(self, name, nn.Parameter(value))


class running_statistics_left_out_of_the_checkpoint(BatchNorm):
    def __init__(self, d, eps=1e-5, momentum=0.1):
        super().__init__(d, eps, momentum)
        for name in ("running_mean", "running_var"):
            value = self._buffers.pop(name)
            setattr(self, name, value)

    def double(self):
        self.running_mean = self.running_mean.double()
        self.running_var = self.running_var.double()
        return super().double()


class running_statistics_keep_the_graph(BatchNorm):
    def track(self, mean, unbiased_var):
        m = self.momentum
        self.running_mean = (1 - m) * self.running_mean + m * mean
        self.running_var = (1 - m) * self.running_var + m * unbiased_var


class eps_outside_the_root(BatchNorm):
    def forward(self, x):
        mean, var = self.statistics(x.flatten(end_dim=-2))
        y = (x - mean) / (var.sqrt() + self.eps)
        return (y * self.gain + self.bias).to(x.dtype)


class eps_hard_coded(BatchNorm):
    def __init__(self, d, eps=1e-5, momentum=0.1):
        super().__init__(d, 1e-5, momentum)


class eps_only_in_training(BatchNorm):
    def forward(self, x):
        mean, var = self.statistics(x.flatten(end_dim=-2))
        return normalize(x, mean, var - (0 if self.training else self.eps), self)


class root_missing(BatchNorm):
    def forward(self, x):
        mean, var = self.statistics(x.flatten(end_dim=-2))
        y = (x - mean) / (var + self.eps)
        return (y * self.gain + self.bias).to(x.dtype)


class gain_ignored(BatchNorm):
    def forward(self, x):
        mean, var = self.statistics(x.flatten(end_dim=-2))
        y = (x - mean) * torch.rsqrt(var + self.eps)
        return (y + self.bias + 0 * self.gain).to(x.dtype)


class gain_times_the_bias(BatchNorm):
    def forward(self, x):
        mean, var = self.statistics(x.flatten(end_dim=-2))
        y = (x - mean) * torch.rsqrt(var + self.eps)
        return ((y + self.bias) * self.gain).to(x.dtype)


class detached_statistics(BatchNorm):
    def statistics(self, tokens):
        return super().statistics(tokens.detach())


class detached_variance(BatchNorm):
    def statistics(self, tokens):
        mean, var = super().statistics(tokens)
        return mean, var.detach()


class mean_square_minus_squared_mean(BatchNorm):
    def statistics(self, tokens):
        if not self.training:
            return super().statistics(tokens)
        super().statistics(tokens)
        wide = tokens.to(torch.promote_types(tokens.dtype, torch.float32))
        mean = wide.mean(0)
        return mean, (wide.square().mean(0) - mean.square()).clamp_min(0)


class statistics_in_low_precision(BatchNorm):
    def statistics(self, tokens):
        if not self.training:
            return super().statistics(tokens)
        super().statistics(tokens)
        var, mean = _moments(tokens, 0)
        return mean[0], var[0]


class eval_in_low_precision(BatchNorm):
    def forward(self, x):
        if self.training:
            return super().forward(x)
        y = (x - self.running_mean) * torch.rsqrt(self.running_var + self.eps)
        return (y * self.gain + self.bias).to(x.dtype)


class train_forgets_the_statistics(BatchNorm):
    def train(self, mode=True):
        if mode:
            self.running_mean.zero_()
            self.running_var.fill_(1)
        return super().train(mode)


class eps_as_a_floor(BatchNorm):
    def forward(self, x):
        mean, var = self.statistics(x.flatten(end_dim=-2))
        y = (x - mean) * torch.rsqrt(var.clamp_min(self.eps))
        return (y * self.gain + self.bias).to(x.dtype)


class returns_the_wide_dtype(BatchNorm):
    def forward(self, x):
        return super().forward(x.to(torch.promote_types(x.dtype, torch.float32)))


class overwrites_its_input(BatchNorm):
    def forward(self, x):
        y = super().forward(x)
        x.data.copy_(y.detach())
        return y


class accepts_a_single_token(BatchNorm):
    def statistics(self, tokens):
        if self.training and len(tokens) == 1:
            return tokens[0], torch.zeros_like(tokens[0])
        return super().statistics(tokens)


VARIANTS = [
    value
    for name, value in list(globals().items())
    if isinstance(value, type)
    and issubclass(value, BatchNorm)
    and value is not BatchNorm
]
