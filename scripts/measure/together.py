"""Many models of equal shapes as one: loss, gradients and training of all runs.

A run is one model with its own seed, data or learning rate. The parameters of
all runs are stacked, with a leading axis of runs, and one call of torch.func
works on all of them. The runs share nothing else: one that diverges leaves the
others as they are, bit for bit.

It is meant for a GPU, which one small model leaves mostly idle. On a CPU very narrow
models gain as well, since calls cost more than their work; wider ones hardly do.
"""

from collections.abc import Callable, Mapping, Sequence


class Together:
    """Models of equal shapes; `parameters` and `buffers`: name -> (runs, ...).

    Whatever is no parameter or buffer (sizes, switches, a factor such as
    DeepNorm's alpha) must be the same in all models: the first one's counts.
    A loss is a function loss(model, *data) of one run, a scalar tensor; it
    calls `model` as it would call the model itself. Data are stacked too.
    """

    def __init__(self, models: Sequence) -> None:
        import copy

        import torch

        models = list(models)
        parameters, buffers = torch.func.stack_module_state(models)
        self.runs = len(models)
        self.parameters = {name: each.detach() for name, each in parameters.items()}
        self.buffers = {name: each.detach() for name, each in buffers.items()}
        self._skeleton = copy.deepcopy(models[0])  # to("meta") would break ties

    def state(self, run: int) -> dict:
        """One run's parameters and buffers by name; a tied one stands once."""
        stacked = self.parameters | self.buffers
        return {name: each[run] for name, each in stacked.items()}

    def losses(self, loss: Callable, *data, chunk: int | None = None):
        """The loss of every run: (runs,). Each of data is (runs, ...)."""
        import torch

        with torch.no_grad():
            return self._map(self._of(loss), data, chunk)

    def gradients(self, loss: Callable, *data, chunk: int | None = None):
        """(losses, gradients): (runs,) and name -> (runs, ...).

        Each of data is (runs, ...). At most `chunk` runs are computed at a
        time, which takes less memory.
        """
        import torch

        each = torch.func.grad_and_value(self._of(loss))
        gradients, losses = self._map(each, data, chunk)
        return losses, gradients

    def _of(self, loss: Callable) -> Callable:
        """The loss as a function of one run's parameters, buffers and data."""
        import torch

        def value(parameters, buffers, *data):
            def model(*inputs, **options):
                state = (parameters, buffers)
                return torch.func.functional_call(
                    self._skeleton, state, inputs, options, strict=True
                )

            return loss(model, *data)

        return value

    def _map(self, each: Callable, data: Sequence, chunk: int | None):
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        # The fused attention of a CPU has no batching rule: vmap would loop.
        with sdpa_kernel(SDPBackend.MATH):
            mapped = torch.func.vmap(each, chunk_size=chunk)
            return mapped(self.parameters, self.buffers, *data)


def alone(models: Together, run: int):
    """One run as a plain module of its own, for hooks and for surgery."""
    import copy

    model = copy.deepcopy(models._skeleton)
    # Gradients may be wanted; the stacked weights are not to change with these.
    state = {name: each.clone() for name, each in models.state(run).items()}
    model.load_state_dict(state, strict=False)
    return model


def _along(values, stacked):
    """(runs,) values as (runs, 1, ..., 1), to go with a stacked tensor."""
    return values.reshape(-1, *[1] * (stacked.ndim - 1))


def norms(tensors: Mapping):
    """Per run, the norm of all stacked tensors taken as one vector: (runs,)."""
    import torch

    sizes = [
        torch.linalg.vector_norm(each.flatten(1), dim=1) for each in tensors.values()
    ]
    return torch.linalg.vector_norm(torch.stack(sizes), dim=0)


def clip(gradients: Mapping, most: float):
    """Shorten, in place, every run whose gradient is longer than `most`.

    Returns the norms before. As torch.nn.utils.clip_grad_norm_, run by run.
    """
    found = norms(gradients)
    factors = (most / (found + 1e-6)).clamp(max=1.0)
    for each in gradients.values():
        each.mul_(_along(factors, each))
    return found


class AdamW:
    """torch.optim.AdamW on stacked parameters, with a learning rate a run.

    `learning_rates` is one number or one for each run. `decays(name)` says
    which parameters the weight decay is for; all by default, as in torch.
    """

    def __init__(
        self,
        parameters: Mapping,
        learning_rates: float | Sequence[float],
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        decays: Callable[[str], bool] = lambda name: True,
    ) -> None:
        import torch

        first = next(iter(parameters.values()))
        rates = torch.as_tensor(learning_rates, dtype=first.dtype, device=first.device)
        self.parameters, self.learning_rates = parameters, rates.expand(len(first))
        self.betas, self.eps = betas, eps
        self.weight_decay, self.decays = weight_decay, decays
        self.steps = 0
        self.means = {k: torch.zeros_like(v) for k, v in parameters.items()}
        self.squares = {k: torch.zeros_like(v) for k, v in parameters.items()}

    def step(self, gradients: Mapping, factor: float = 1.0) -> None:
        """One update, with the learning rates times `factor`."""
        import torch

        self.steps += 1
        first, second = self.betas
        rates = self.learning_rates * factor
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                slope, rate = gradients[name], _along(rates, parameter)
                mean, square = self.means[name], self.squares[name]
                if self.decays(name):
                    parameter.mul_(1 - rate * self.weight_decay)
                mean.lerp_(slope, 1 - first)
                square.mul_(second).addcmul_(slope, slope, value=1 - second)
                root = (square / (1 - second**self.steps)).sqrt_().add_(self.eps)
                parameter.sub_(rate / (1 - first**self.steps) * mean / root)


def warm_up(steps: int, warm: int, last: float = 0.0) -> Callable[[int], float]:
    """Factors for steps 0, 1, ...: linear up to 1, then linear towards `last`."""

    def factor(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        return last + (1 - last) * (steps - step) / max(1, steps - warm)

    return factor


def train(
    models: Together,
    loss: Callable,
    data: Callable[[int], Sequence],
    steps: int,
    learning_rates: float | Sequence[float],
    *,
    schedule: Callable[[int], float] = lambda step: 1.0,
    most: float | None = None,
    chunk: int | None = None,
    seen: Callable[[int, dict], None] | None = None,
    **adam: object,
):
    """Train all runs with AdamW, in place; losses before each step, (steps, runs).

    `data(step)` gives the stacked tensors of a step, `schedule(step)` a factor
    for all learning rates, `most` the norm at which each run's gradient is
    clipped. `seen(step, gradients)` may look at the gradients, unclipped. A run
    that diverges goes on with infinities or NaN, in its own slice alone.
    """
    import torch

    optimizer = AdamW(models.parameters, learning_rates, **adam)
    history = []
    for step in range(steps):
        losses, gradients = models.gradients(loss, *data(step), chunk=chunk)
        history.append(losses)
        if seen is not None:
            seen(step, gradients)
        if most is not None:
            clip(gradients, most)
        optimizer.step(gradients, schedule(step))
    return torch.stack(history)
