"""Gradients of norms against finite differences, and parameters that none reaches."""

from scripts.examine import state, unusual_norms
from scripts.examine.tape import reals_in

STEP = 1e-3  # of the root mean square of what is moved
ROUNDS = 3  # directions for each gradient
WRONG = 2e-2  # of a directional derivative: rounding in float32 gives 1e-3


def wrong(norm, x) -> list[tuple[str, float | None]]:
    """(what, the gradient's size over the right one; None: no number) of wrong ones.

    ``norm`` is a module of one tensor; what is "input", "gain" or "bias".
    """
    import torch
    from torch.func import functional_call

    from snippets.norm_probe.behaviour import split_parameters

    with torch.no_grad():
        _, bias = split_parameters(norm, unusual_norms._numbers(x.shape))
    random = torch.Generator().manual_seed(0)
    h = torch.randn(x.shape, generator=random, dtype=torch.float64)
    sizes = 1 + torch.arange(h[..., :1].numel()) % 4  # rows of several lengths
    h = h * sizes.reshape(h[..., :1].shape)
    named = {n: p.detach().double() for n, p in norm.named_parameters()}
    for dtype in (torch.float64, torch.float32):
        given = {n: p.to(dtype) for n, p in named.items()}
        try:
            with torch.no_grad():
                y = functional_call(norm, given, (h.to(dtype),))
            break
        except RuntimeError:
            continue
    else:
        return []
    weigh = torch.randn(y.shape, generator=random, dtype=torch.float64)

    def loss(values: dict):
        values = {n: v.to(dtype) for n, v in values.items()}
        rest = {n: v for n, v in values.items() if n}
        return (functional_call(norm, rest, (values[""],)).double() * weigh).sum()

    values = {"": h} | named
    leaves = {n: v.to(dtype).requires_grad_(True) for n, v in values.items()}
    with torch.enable_grad():
        total = loss(leaves)
        if not total.requires_grad:
            return [("input", 0.0)]
        got = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    found = []
    for (name, value), gradient in zip(values.items(), got, strict=True):
        size = STEP * value.square().mean().sqrt().clamp_min(0.1)
        right, ours = [], []
        for _ in range(ROUNDS):
            way = torch.randn(value.shape, generator=random, dtype=torch.float64)
            with torch.no_grad():
                ahead, back = (
                    loss(values | {name: value + sign * size * way}) for sign in (1, -1)
                )
            right.append((ahead - back) / (2 * size))
            ours.append((way * gradient).sum() if gradient is not None else 0 * ahead)
        right, ours = torch.stack(right), torch.stack(ours)
        if (right - ours).norm() > WRONG * right.norm() and right.norm() > 1e-6:
            factor = (right @ ours / (right @ right)).item()
            even = (ours - factor * right).norm() <= WRONG / 4 * ours.norm()
            what = "input" if not name else "bias" if name in bias else "gain"
            found.append((what, factor if even else None))
    return found


def unreached(model, given: dict) -> tuple[bool, list[str]]:
    """(whether a gradient reaches any parameter, names of those that none reaches).

    Of modules that ran, and of parameters that are to be trained.
    """
    import torch

    ran: set[str] = set()
    hooks = [
        m.register_forward_pre_hook(lambda _m, _a, path=path: ran.add(path))
        for path, m in model.named_modules()
    ]
    state.reset(model)
    named = {n: p for n, p in model.named_parameters() if p.requires_grad}
    random = torch.Generator().manual_seed(0)
    try:
        with torch.enable_grad():
            real = [t for t in reals_in(model(**given)) if t.requires_grad]
            if not real or not named:
                return not named, []
            total = sum(
                (t * torch.randn(t.shape, generator=random).to(t.dtype)).sum()
                for t in real
            )
            got = torch.autograd.grad(total, list(named.values()), allow_unused=True)
    finally:
        for hook in hooks:
            hook.remove()
        state.reset(model)
    missed = [
        name
        for name, gradient in zip(named, got, strict=True)
        if (gradient is None or not gradient.any()) and name.rpartition(".")[0] in ran
    ]
    return True, missed
