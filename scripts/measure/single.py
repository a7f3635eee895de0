"""One model trained in a plain loop, at widths where stacking runs gains nothing."""

from collections.abc import Callable, Collection

LOOKS = (0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1)


def moments(steps: int) -> list[int]:
    """Numbers of steps after which a run is looked at; 0 is before the first."""
    return sorted({round(share * steps) for share in LOOKS})


def freeze(module) -> None:
    """Leave every parameter of a module as it is: training passes it by."""
    for parameter in module.parameters():
        parameter.requires_grad_(False)


def train(
    model,
    loss: Callable,
    draw: Callable,
    steps: int,
    rate: float,
    *,
    warm: float = 0.1,
    betas: tuple[float, float] = (0.9, 0.95),
    weight_decay: float = 0.0,
    decays: Callable[[object], bool] = lambda parameter: parameter.ndim > 1,
    most: float = 1.0,
    looks: Collection[int] = (),
    seen: Callable[[int], None] = lambda step: None,
    after: Callable[[], None] = lambda: None,
) -> int:
    """AdamW with warm-up over a share of the steps, then linear decay to zero.

    `draw()` gives the text of a step, `loss(model, text)` a scalar. Parameters that
    are frozen stay as they are; of the others, weight decay is for those that
    `decays`. `seen(step)` is called after the steps in `looks`, 0 before the first;
    `after()` after every optimizer step. A loss that is not finite ends the run:
    returns how many steps were taken.
    """
    import torch

    from scripts.measure.together import warm_up

    free = [each for each in model.parameters() if each.requires_grad]
    groups = [
        {"params": [p for p in free if decays(p)], "weight_decay": weight_decay},
        {"params": [p for p in free if not decays(p)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        [group for group in groups if group["params"]], lr=rate, betas=betas
    )
    factor = warm_up(steps, max(1, round(warm * steps)))
    for step in range(steps + 1):
        if step in looks:
            seen(step)
        if step == steps:
            break
        value = loss(model, draw())
        if not value.isfinite():
            return step
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(free, most)
        for group in optimizer.param_groups:
            group["lr"] = rate * factor(step)
        optimizer.step()
        after()
    return steps
