"""What reaches what: later tokens, other samples, the switch between train and eval."""

from contextlib import contextmanager

from scripts.examine import state
from scripts.examine.tape import reals_in

NOISE = 1e-5  # of the largest element


@contextmanager
def watched(model, seen: list):
    """Note (path, inputs, first output) of every module, in order of its end."""

    def after(path):
        def hook(module, args, kwargs, output):
            given = [t.detach().clone() for t in reals_in((args, kwargs))]
            out = [t.detach().clone() for t in reals_in(output)[:1]]
            seen.append((path, given, out))

        return hook

    hooks = [
        m.register_forward_hook(after(path), with_kwargs=True)
        for path, m in model.named_modules()
        if path
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def ran(model, given: dict, seed: int = 0, fresh: bool = True):
    """(output, what every module gave) of one forward pass without a graph.

    It begins with the state that the model was loaded with, unless not ``fresh``.
    """
    import torch

    seen: list = []
    torch.manual_seed(seed)
    if fresh:
        state.reset(model)
    with torch.no_grad(), state.ordinary_tensors(), watched(model, seen):
        out = reals_in(model(**given))
    rows = [t for t in out if t.ndim > 1] or out  # a loss may come first
    return (rows[0].detach() if rows else None), seen


def differs(a, b) -> bool:
    """Whether two tensors differ by more than rounding; NaN differs."""
    if a.shape != b.shape:
        return True
    if not a.isfinite().all() or not b.isfinite().all():
        return not bool(((a == b) | (a.isnan() & b.isnan())).all())
    return bool((a - b).abs().max() > NOISE * max(a.abs().max(), 1e-30))


def moved(given: dict, sample: int, token: int | None = None, first=False) -> dict:
    """The input with one sample changed, or of its first tensor one token.

    ``first``: tokens stand on axis 0, samples on axis 1.
    """
    import torch

    fresh = dict(given)
    for name, value in given.items():
        if isinstance(value, torch.Tensor) and value.ndim > 1 and value.shape[0] > 1:
            kept, value = value, value.clone()
            at = (sample,) if token is None else (sample, token)
            if first:
                at = (slice(None) if token is None else token, sample)
            if value.is_floating_point():
                value[at] = value[at] + torch.cos(
                    torch.arange(value[at].numel()).float()
                ).reshape(value[at].shape)
            elif value.dtype != torch.bool:
                most = int(value.max())
                value[at] = (most - value[at]).clamp_min(0)
                same = value[at] == kept[at]
                value[at] = torch.where(same, (value[at] - 1).clamp_min(0), value[at])
            fresh[name] = value
            if token is not None:
                break
    return fresh


def tokens_of(given: dict, first: bool = False) -> int | None:
    """The number of tokens of the first input; None if it has no axis of tokens."""
    main = next((v for v in given.values() if hasattr(v, "shape")), None)
    if main is None or main.ndim not in (2, 3) or min(main.shape[:2]) < 2:
        return None
    if main.is_floating_point() and main.ndim == 2:
        return None
    return main.shape[0 if first else 1]


def tokens_first(model, given: dict) -> bool:
    """Whether axis 0 of input and output is felt along, and axis 1 is not."""
    main = next((v for v in given.values() if hasattr(v, "shape")), None)
    if tokens_of(given) is None:
        return False
    out, _ = ran(model, given)
    other, _ = ran(model, moved(given, 0, 0))
    if out is None or out.ndim != 3 or out.shape[:2] != main.shape[:2]:
        return False
    felt = (other - out).abs().amax(-1) > NOISE * out.abs().max()
    return bool(felt[1:, 0].any() and not felt[:, 1:].any())


def reach(model, given: dict, last: str = "", first: bool = False) -> str | None:
    """Which tokens an output reads: "past", "all", "some later"; None if unknown.

    Where the output is of one token, what the module ``last`` gives stands for it.
    """
    import torch

    count = tokens_of(given, first)

    def result(moved_input):
        out, seen = ran(model, moved_input)
        found = [out, *(o[0] for path, _, o in seen if path == last and o)]
        if first:
            found = [o.transpose(0, 1) for o in found if o is not None and o.ndim > 2]
        return next(
            (o for o in found if o is not None and o.ndim > 2 and o.shape[1] == count),
            None,
        )

    out = result(given)
    if count is None or out is None:
        return None
    felt = torch.zeros(count, count, dtype=torch.bool)  # (of, by)
    for t in range(count):
        other = result(moved(given, 0, t, first))
        change = (other[0] - out[0]).abs().reshape(count, -1).amax(1)
        felt[:, t] = change > NOISE * out.abs().max()
    above, below = felt.triu(1).sum(), felt.tril(-1).sum()
    if not above:
        return "past"
    return "some later" if 2 * above < below else "all"


def _same_stream(block) -> tuple[int, ...]:
    """Which inputs of a call are its stream: torch's attention is given it thrice."""
    import torch

    shape = block.out.shape
    same = [(i, s.value) for i, s in enumerate(block.inputs) if s.shape == shape]
    return tuple(i for i, value in same if torch.equal(value, same[0][1]))


def _like(out, shape):
    """The first tensor of a shape in a result."""
    return next((t for t in reals_in(out) if t.shape == shape), None)


def leaks(block, tokens: int | None = None) -> bool | None:
    """Whether a call reads later tokens, its module run again; None if unknown.

    It takes samples first: where axis 1 does not hold the tokens, nothing is known.
    """
    from scripts.experiments.atlas.branches import again

    which = _same_stream(block)
    shape = block.out.shape
    if not which or len(shape) != 3 or shape[0] < 2 or shape[1] < 4:
        return None
    if tokens and shape[1] < tokens <= shape[0]:
        return None
    try:
        state.reset(block.module)
        before = _like(again(block)[0], shape)
        state.reset(block.module)
        after = _like(again(block, which)[0], shape)  # token 2 of sample 0
    except Exception:  # it takes what is not here any more
        return None
    if before is None:  # its first result is another
        return None
    change = (after - before)[0].abs().amax(-1)
    return bool((change[:2] > NOISE * before.abs().max()).any())


def first_change(ours: list, theirs: list, index) -> str:
    """The innermost module whose output differs though its inputs do not."""
    for (path, given, out), (_, other, got) in zip(ours, theirs, strict=False):
        same = len(given) == len(other) and not any(
            differs(index(a), index(b)) for a, b in zip(given, other, strict=True)
        )
        if same and out and got and differs(index(out[0]), index(got[0])):
            return path
    return ""


def batch_leak(model, given: dict, tokens_lead: bool = False) -> str | None:
    """Where one sample feels another; "" if the place is not found, None if nowhere."""
    out, ours = ran(model, given)
    first = next((v for v in given.values() if hasattr(v, "shape")), None)
    axis = int(tokens_lead)
    if out is None or first is None or first.ndim < 2 or first.shape[axis] < 2:
        return None
    if out.ndim <= axis or out.shape[axis] != first.shape[axis]:
        return None
    other, theirs = ran(model, moved(given, 1, first=tokens_lead))
    if not differs(out.select(axis, 0), other.select(axis, 0)):
        return None

    def sample(t):
        same = t.ndim > 1 and t.shape[axis] == first.shape[axis]
        return t.select(axis, 0) if same else t

    return first_change(ours, theirs, sample)


@contextmanager
def no_dropout(model):
    """Every rate of dropout at zero, in modules and in numbers of their owners."""
    kept = []
    for module in model.modules():
        for name, value in list(vars(module).items()):
            rate = isinstance(value, float) and 0 < value < 1
            named = "drop" in name or (name == "p" and "Drop" in type(module).__name__)
            if rate and named:
                kept.append((module, name, value))
                setattr(module, name, 0.0)
    try:
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)


def train_differs(model, given: dict) -> str | None:
    """Where train and eval part, dropout off; None if they agree or it is random."""
    try:
        trained = state.copied(model)
    except Exception:  # some modules do not copy
        return None
    with no_dropout(trained):
        out, ours = ran(trained.eval(), given)
        try:
            other, theirs = ran(state.copied(trained).train(), given, seed=1)
            third, _ = ran(state.copied(trained).train(), given, seed=2)
        except Exception:  # its training forward wants more
            return None
    if out is None or other is None or other.shape != out.shape:
        return None
    if not differs(out, other) or differs(other, third):
        return None
    return first_change(ours, theirs, lambda t: t)


def unsteady(model, given: dict) -> str | None:
    """What makes a second pass differ: a statistic's name, or "" for chance.

    Where a model keeps tokens (a cache: three axes or more) it is not asked.
    """
    out, _ = ran(model, given)
    again, _ = ran(model, given, seed=1)
    if out is not None and differs(out, again):
        return ""
    ran(model, given)
    before = state.changing(model)
    ran(model, given, fresh=False)
    for name, value in state.changing(model).items():
        old = before.get(name)
        same = old is not None and old.shape == value.shape
        if same and value.ndim < 3 and differs(old, value):
            return name
    return None
