"""The browser's decoder is the pages': loss, streams, every gradient, twenty steps."""

import copy

import pytest
import torch

from tests.explore.conftest import bits, floats, loaded
from tests.explore.decoders import (
    LAYER_NORM_ONLY,
    PLACEMENTS,
    Settings,
    drawn,
    loss_of,
    model,
    parameters,
    streams,
    text,
)
from tests.explore.judge import Run, excess

STEPS = 20
FACTOR = 2  # two ways to round the same sums differ that much by chance
SHAPES = [(2, 5), (3, 7), (1, 1)]  # sequences, tokens
CASES = {p: Settings(placement=p) for p in PLACEMENTS}
CASES |= {
    f"{p}, rms": Settings(placement=p, norm="rms", layers=1, d=6, heads=3)
    for p in PLACEMENTS
    if p not in LAYER_NORM_ONLY
}
CASES |= {
    "narrow": Settings(d=3, heads=1, layers=3, vocabulary=3, placement="post"),
    "wide": Settings(d=12, heads=3, layers=1, vocabulary=30),
    "no layers": Settings(d=7, heads=1, layers=0),
}
HELD = """(settings, given, tokens, targets, time, steps) => {
  const model = decoder(settings, new Random(0));
  const tape = new Tape();
  model.run(tape, [0], [0], 1);
  tape.clear();
  const held = model.parameters;
  const names = [held, given].map((each) => Object.keys(each).sort().join());
  if (names[0] !== names[1]) return null;  // not the parameters that torch has
  for (const name of Object.keys(given)) held[name].value.set(floats(given[name]));
  REST
}"""
ONCE = HELD.replace(
    "REST",
    """const { loss, streams } = model.run(tape, tokens, targets, time);
  tape.backward();
  const gradients = Object.keys(given).map((name) => held[name].gradient);
  const seen = streams.flatMap(({ value, gradient }) => [value, gradient]);
  return [[loss], ...seen, ...gradients].map(bitsOf);""",
)
TRAIN = HELD.replace(
    "REST",
    """const move = adam(held);
  const losses = [];
  for (let step = 0; step < steps; step++) {
    losses.push(model.run(tape, tokens, targets, time).loss);
    tape.backward();
    tape.clear();
    move(0.01 * share(step, steps, 5));
    forget(held);
  }
  const ends = Object.keys(given).map((name) => held[name].value);
  return [losses, ...ends].map(bitsOf);""",
)


def fresh(s: Settings, seed: int = 0) -> torch.nn.Module:
    return drawn(model(s), seed)


def values(of) -> dict[str, list[int]]:
    return {name: bits(p) for name, p in parameters(of).items()}


def once(engine, s: Settings, shape: tuple[int, int]) -> Run | None:
    """Loss, streams, their gradients and those of the parameters."""
    torchs, of = [], fresh(s)
    tokens, targets = text(s, *shape)
    for dtype in (torch.float64, torch.float32):
        each = copy.deepcopy(of).to(dtype)
        seen = streams(each, tokens)
        loss = loss_of(each, seen[-1], targets)
        gradients = torch.autograd.grad(loss, [*seen, *each.parameters()])
        inside = [t for pair in zip(seen, gradients, strict=False) for t in pair]
        torchs.append([loss, *inside, *gradients[len(seen) :]])
    flat = [t.flatten().tolist() for t in (tokens, targets)]
    found = engine.run(ONCE, s.given(), values(of), *flat, shape[1])
    return found and (list(map(floats, found)), *torchs)


def agrees(engine, s: Settings) -> bool:
    runs = [once(engine, s, shape) for shape in SHAPES]
    return all(runs) and excess(*runs) <= FACTOR


@pytest.mark.parametrize("case", CASES)
def test_gradients(engine, case):
    assert agrees(engine, CASES[case])


def rate_at(step: int) -> float:
    """Up over five steps, then down to zero."""
    return 0.01 * min((step + 1) / 5, (STEPS - step) / (STEPS - 5))


def moved(s: Settings, name: str, value: torch.Tensor) -> torch.Tensor:
    """A parameter after training, but for the biases of keys.

    Softmax does not see those: their gradient is zero, and Adam divides what rounding
    leaves of it by its own size, in torch as well.
    """
    value = value.detach().clone()
    if name.endswith("reader.bias") and len(value) == 3 * s.d:
        value[s.d : 2 * s.d] = 0
    return value


def trained(engine, s: Settings, seed: int) -> Run | None:
    """Losses and parameters of twenty steps of Adam."""
    torchs, of = [], fresh(s, seed)
    tokens, targets = text(s, *SHAPES[0], seed)
    for dtype in (torch.float64, torch.float32):
        each = copy.deepcopy(of).to(dtype)
        adam, losses = torch.optim.Adam(each.parameters()), []
        for step in range(STEPS):
            adam.param_groups[0]["lr"] = rate_at(step)
            adam.zero_grad()
            loss = loss_of(each, streams(each, tokens)[-1], targets)
            loss.backward()
            adam.step()
            losses.append(loss.detach())
        ends = [moved(s, *p) for p in parameters(each).items()]
        torchs.append([torch.stack(losses), *ends])
    flat = [t.flatten().tolist() for t in (tokens, targets)]
    found = engine.run(TRAIN, s.given(), values(of), *flat, SHAPES[0][1], STEPS)
    if not found:
        return None
    ends = zip(parameters(of), map(floats, found[1:]), strict=True)
    return [floats(found[0]), *(moved(s, *end) for end in ends)], *torchs


def trains(engine, s: Settings) -> bool:
    runs = [trained(engine, s, seed) for seed in range(2)]
    return all(runs) and excess(*runs) <= FACTOR


@pytest.mark.parametrize("case", CASES)
def test_twenty_steps(engine, case):
    assert trains(engine, CASES[case])


WRONG = {  # a mistake: the case, what the engine says, what it would say
    "norm before the sum": (
        "post",
        'normed("norm", add(x, branch(x))) }',
        'add(x, normed("norm", branch(x))) }',
    ),
    "last column dropped": ("wide", "wide > 3 ? 3 * b.row : 0", "0"),
    "statistics without a gradient": ("pre", " - alike - hat[at + c] * along", ""),
    "softmax's gradient without its mean": ("pre", "(slopes[j] - mean)", "slopes[j]"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_rejected(mistake):
    case, old, new = WRONG[mistake]
    with loaded(old, new) as wrong:
        assert not agrees(wrong, CASES[case])
