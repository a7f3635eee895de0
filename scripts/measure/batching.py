"""What training many runs as one stack is worth, against one after the other."""

from collections.abc import Callable, Sequence

ROUNDS = 9


def race(
    models: Sequence, loss: Callable, data: Sequence, rounds: int = ROUNDS
) -> tuple[list[float], list[float]]:
    """Seconds for one training step of all models: (one by one, together).

    A step is the gradient and the AdamW update. `models` are plain modules of
    equal shapes; each of `data` is stacked, (runs, ...), as `loss(model, *data)`
    takes it. One number for each round; in every round both take their turn.
    """
    import torch

    from scripts.measure.timing import time_together
    from scripts.measure.together import AdamW, Together

    together = Together(models)
    stacked = AdamW(together.parameters, 1e-4)
    single = [torch.optim.AdamW(model.parameters(), 1e-4) for model in models]

    def finished():
        if data[0].is_cuda:
            torch.cuda.synchronize()

    def one_by_one():
        for model, optimizer, *own in zip(models, single, *data, strict=True):
            optimizer.zero_grad()
            loss(model, *own).backward()
            optimizer.step()
        finished()

    def at_once():
        stacked.step(together.gradients(loss, *data)[1])
        finished()

    samples = time_together(
        {"one_by_one": one_by_one, "together": at_once}, rounds=rounds
    )
    return samples["one_by_one"].seconds, samples["together"].seconds
