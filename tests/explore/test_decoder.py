"""The browser's decoder is the pages': loss, streams, every gradient, twenty steps."""

import copy
from functools import partial

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
from tests.explore.float_error import FACTOR, Run, excess

STEPS = 20
SHAPES = [(2, 5), (3, 7), (1, 1)]  # sequences, tokens
CASES = {p: Settings(placement=p) for p in PLACEMENTS}
CASES |= {
    f"{p}, rms": Settings(
        placement=p, norm="rms", layers=1, d=6, heads=3, activation="silu"
    )
    for p in PLACEMENTS
    if p not in LAYER_NORM_ONLY
}
CASES |= {
    "narrow": Settings(d=3, heads=1, layers=3, vocabulary=3, placement="post"),
    "wide": Settings(d=12, heads=3, layers=1, vocabulary=30),
    "no layers": Settings(d=7, heads=1, layers=0),
    "rotary": Settings(rope=True, norm="rms", d=12),
    "capped": Settings(cap=1.5, placement="sandwich", norm="rms"),
    "qk head": Settings(qk="head", rope=True, d=12, heads=3, activation="silu"),
    "qk projection": Settings(qk="projection", placement="branch_output", cap=3.0),
    "batch": Settings(norm="batch", placement="post", d=6),
}
HELD = """(settings, given, tokens, targets, time, plan) => {
  const model = decoder(settings, new Random(0));
  const tape = new Tape();
  model.run(tape, [0], [0], 1, false);
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
    """const { steps, optimizer, most, rate } = plan;
  const move = OPTIMIZERS[optimizer.name](held, optimizer);
  const losses = [];
  for (let step = 0; step < steps; step++) {
    losses.push(model.run(tape, tokens, targets, time).loss);
    tape.backward();
    tape.clear();
    if (most) clip(held, most);
    move(rate * share(step, steps, 5));
    forget(held);
  }
  const ends = Object.keys(given).map((name) => held[name].value);
  return [losses, ...ends].map(bitsOf);""",
)


def fresh(s: Settings, seed: int = 0) -> torch.nn.Module:
    return drawn(model(s), seed)


def values(of) -> dict[str, list[int]]:
    return {name: bits(p) for name, p in parameters(of).items()}


def once(engine, s: Settings, shape: tuple[int, int], seed: int = 0) -> Run | None:
    """Loss, each stream with its gradient, gradients of the parameters."""
    torchs, of = [], fresh(s, seed)
    tokens, targets = text(s, *shape, seed)
    for dtype in (torch.float64, torch.float32):
        each = copy.deepcopy(of).to(dtype)
        seen = streams(each, s.layers, tokens)
        loss = loss_of(each, seen[-1], targets)
        gradients = torch.autograd.grad(loss, [*seen, *each.parameters()])
        inside = [t for pair in zip(seen, gradients, strict=False) for t in pair]
        torchs.append([loss, *inside, *gradients[len(seen) :]])
    flat = [t.flatten().tolist() for t in (tokens, targets)]
    found = engine.run(ONCE, s.given(), values(of), *flat, shape[1])
    return found and (list(map(floats, found)), *torchs)


def every(engine, s: Settings, seed: int = 0) -> list[Run | None]:
    """once() at each shape that the norm can take."""
    shapes = SHAPES[:2] if s.norm == "batch" else SHAPES
    return [once(engine, s, shape, seed) for shape in shapes]


def agrees(engine, s: Settings) -> bool:
    runs = every(engine, s)
    return all(runs) and excess(*runs) <= FACTOR


@pytest.mark.parametrize("case", CASES)
def test_gradients(engine, case):
    assert agrees(engine, CASES[case])


def share(step: int) -> float:
    """Of the peak rate: up over five steps, then down to zero."""
    return min((step + 1) / 5, (STEPS - step) / (STEPS - 5))


def moved(s: Settings, name: str, value: torch.Tensor) -> torch.Tensor:
    """A parameter after training, but for the biases of keys.

    Softmax does not see those: their gradient is zero, and Adam divides what rounding
    leaves of it by its own size, in torch as well.
    """
    value = value.detach().clone()
    if name.endswith("reader.bias") and len(value) == 3 * s.d:
        value[s.d : 2 * s.d] = 0
    return value


OPTIMIZERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


def trained(
    engine, s: Settings, seed: int = 0, name: str = "adam", most=None, **options
) -> Run | None:
    """Losses and parameters of twenty steps."""
    torchs, of = [], fresh(s, seed)
    tokens, targets = text(s, *SHAPES[0], seed)
    rate = 0.01 if name == "adam" else 0.1
    for dtype in (torch.float64, torch.float32):
        each = copy.deepcopy(of).to(dtype)
        optimizer, losses = OPTIMIZERS[name](each.parameters(), rate, **options), []
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = rate * share(step)
            optimizer.zero_grad()
            loss = loss_of(each, streams(each, s.layers, tokens)[-1], targets)
            loss.backward()
            if most:
                torch.nn.utils.clip_grad_norm_(each.parameters(), most)
            optimizer.step()
            losses.append(loss.detach())
        ends = [moved(s, *p) for p in parameters(each).items()]
        torchs.append([torch.stack(losses), *ends])
    flat = [t.flatten().tolist() for t in (tokens, targets)]
    plan = {"steps": STEPS, "most": most, "rate": rate}
    plan["optimizer"] = {"name": name} | options
    found = engine.run(TRAIN, s.given(), values(of), *flat, SHAPES[0][1], plan)
    if not found:
        return None
    ends = zip(parameters(of), map(floats, found[1:]), strict=True)
    return [floats(found[0]), *(moved(s, *end) for end in ends)], *torchs


@pytest.mark.parametrize("case", CASES)
def test_twenty_steps(engine, case):
    runs = [trained(engine, CASES[case], seed) for seed in range(2)]
    assert excess(*runs) <= FACTOR


PLANS = {  # name, most, options
    "betas": ("adam", None, {"betas": (0.5, 0.9), "eps": 1e-3}),
    "clipped": ("adam", 0.5, {"eps": 1e-3}),
    "not clipped": ("sgd", 1e9, {}),
    "momentum": ("sgd", 0.5, {"momentum": 0.9}),
}


def optimizes(engine, plan: str) -> bool:
    name, most, options = PLANS[plan]
    run = trained(engine, CASES["sandwich"], 0, name, most, **options)
    return excess(run) <= FACTOR


@pytest.mark.parametrize("plan", PLANS)
def test_optimizers(engine, plan):
    assert optimizes(engine, plan)


SCORED = HELD.replace(
    "REST",
    """model.run(tape, tokens, targets, time);
  return [[model.run(tape, tokens, targets, time, false).loss]].map(bitsOf);""",
)


def scores(engine) -> bool:
    """BatchNorm in use takes the statistics that it followed, not the batch's."""
    s, torchs = CASES["batch"], []
    of = fresh(s)
    tokens, targets = text(s, *SHAPES[1])
    for dtype in (torch.float64, torch.float32):
        each = copy.deepcopy(of).to(dtype)
        streams(each, s.layers, tokens)
        each.eval()
        torchs.append([loss_of(each, streams(each, s.layers, tokens)[-1], targets)])
    flat = [t.flatten().tolist() for t in (tokens, targets)]
    found = engine.run(SCORED, s.given(), values(of), *flat, SHAPES[1][1])
    return excess((list(map(floats, found)), *torchs)) <= FACTOR


def test_batch_norm_scores_by_running_statistics(engine):
    assert scores(engine)


WRONG = {  # a mistake: who sees it, what the engine says, what it would say
    "residual after the norm": (
        "pre",
        'block: (x, { branch, add, normed }) => add(x, branch(normed("norm", x))),',
        'block: (x, { branch, add, normed }) => branch(add(x, normed("norm", x))),',
    ),
    "norm before the sum": (
        "post",
        'normed("norm", add(x, branch(x))) }',
        'add(x, normed("norm", branch(x))) }',
    ),
    "no final norm": ("pre", "if (last) x =", "if (false) x ="),
    "a final norm too many": ("post", "if (last) x =", "if (true) x ="),
    "sandwich without its exit": (
        "sandwich",
        'normed("post", branch(normed("pre", x)))',
        'branch(normed("post", normed("pre", x)))',
    ),
    "branch output on the stream": (
        "branch_output",
        'add(x, normed("post", branch(x)))',
        'normed("post", add(x, branch(x)))',
    ),
    "alpha of sublayers": (
        "deepnorm",
        "Math.sqrt(2 * layers)",
        "Math.sqrt(4 * layers)",
    ),
    "alpha on the branch": (
        "deepnorm",
        "Math.fround(alpha * x.value[i]) + Math.fround(by * z.value[i])",
        "Math.fround(x.value[i]) + Math.fround(alpha * z.value[i])",
    ),
    "alpha only in the forward pass": (
        "deepnorm",
        "x.gradient[i] += alpha * d;",
        "x.gradient[i] += d;",
    ),
    "NormFormer normalizes both exits": (
        "normformer",
        'attends ? normed("post", made) : made',
        'normed("post", made)',
    ),
    "heads interleaved": (
        "normformer",
        "Math.floor((i % x.width) / size)",
        "i % factors.width",
    ),
    "head's factor without a gradient": (
        "normformer",
        "total[factor(i)] += x.value[i] * y.gradient[i];",
        "",
    ),
    "inner norm before the activation": (
        "normformer",
        "if (inner) wide = normed(`${name}.inner`, wide);",
        "if (inner) normed(`${name}.inner`, wide);",
    ),
    "ReZero's number without a gradient": (
        "rezero",
        "if (factor) factor.gradient[0] += along;",
        "",
    ),
    "LayerNorm for RMSNorm": ("pre, rms", 'options.norm !== "rms"', "true"),
    "eps of RMSNorm": ("sandwich, rms", "centred ? 1e-5 : 1e-6", "1e-3"),
    "GELU for SiLU": ("pre, rms", "ACTIVATIONS[name](", "ACTIVATIONS.gelu("),
    "skip without a gradient": ("pre", "x.gradient[i] += alpha * d;", ""),
    "backward in the order of forward": (
        "pre",
        "this.backs.pop()()",
        "this.backs.shift()()",
    ),
    "buffers not emptied": ("trained", "this.room(size).fill(0)", "this.room(size)"),
    "rows without a bias not emptied": ("trained", "else y.value.fill(0);", ""),
    "turned rows not emptied": ("rotary twice", "y.value.fill(0); // turn adds", ""),
    "last column dropped": ("wide", "if (wide > 3) out[at + 3] += s3;", ""),
    "last row dropped": ("narrow", "r + 1 === rows", "r + 2 >= rows"),
    "weight not transposed": (
        "pre",
        "addProduct(x.gradient, dy, transposed(w),",
        "addProduct(x.gradient, dy, w,",
    ),
    "weight's gradient of one row": (
        "pre",
        "[outputs, inputs, x.rows]",
        "[outputs, inputs, 1]",
    ),
    "bias's gradient forgotten": ("pre", "if (!bias) return;", "return;"),
    "a token's gradient overwritten": (
        "pre",
        "total[token * d + c] += y",
        "total[token * d + c] = y",
    ),
    "keys for queries": (
        "pre",
        "= x.value[from + c]",
        "= x.value[r * x.width + c]",
    ),
    "logits not scaled": ("pre", "1 / Math.sqrt(width)", "1"),
    "scaled by the model's width": ("wide", "1 / Math.sqrt(width)", "1 / Math.sqrt(d)"),
    "own token hidden": (
        "pre",
        "for (let j = 0; j <= position; j++) total += weights[at + j] =",
        "for (let j = 0; j < position || j < 1; j++) total += weights[at + j] =",
    ),
    "sequences share a past": ("pre", "(row - position) * d + h", "h"),
    "not turned": ("rotary", "Math.floor(first / x.width) % time", "0"),
    "softmax's gradient without its mean": ("pre", "(ahead[j] - mean)", "ahead[j]"),
    "scale missing in the backward pass": (
        "pre",
        "(ahead[j] - mean) * scale",
        "(ahead[j] - mean)",
    ),
    "keys' gradient from keys": (
        "pre",
        "slope * queries[query + c]",
        "slope * keys[key + c]",
    ),
    "values without a gradient": (
        "pre",
        "dv[key + c] += weight * coming;",
        "",
    ),
    "cap without its slope": ("capped", "if (cap) slope *= slopes[at + j];", ""),
    "cap is a clip": (
        "capped",
        "(Math.sign(dot) * cap * (1 - outside)) / (1 + outside)",
        "Math.max(-cap, Math.min(cap, dot * scale))",
    ),
    "cap before the scale": (
        "capped",
        "exp((-2 * Math.abs(dot * scale)) / cap)",
        "exp((-2 * Math.abs(dot)) / cap)",
    ),
    "adjacent pairs turned": (
        "rotary",
        "to[i] += from[i] * cosine - way * from[i + half]",
        "to[i] += from[i] * cosine - way * from[i + 1]",
    ),
    "rotary not turned back": (
        "rotary",
        "turn(y.gradient, x.gradient, -1)",
        "turn(y.gradient, x.gradient, 1)",
    ),
    "angle per width, not per half": ("rotary", "(-2 * (i % half)", "(-1 * (i % half)"),
    "rotation before QK-Norm": (
        "qk head",
        "return norm(tape, x, { gain, eps: 1e-6",
        "return norm(tape, rotary(tape, x, { heads, time }), { gain, eps: 1e-6",
    ),
    "QK-Norm centred": ("qk head", "eps: 1e-6, centred: false", "eps: 1e-6"),
    "QK-Norm on queries alone": (
        "qk projection",
        'own("key", k)',
        '(own("key", k), k)',
    ),
    "BatchNorm by tokens": (
        "batch",
        "gain, bias, eps, across, fixed }",
        "gain, bias, eps, fixed }",
    ),
    "bias correction missing": ("trained", "rate / (1 - power1)", "rate"),
    "bias correction of the square missing": ("trained", "Math.sqrt(1 - power2)", "1"),
    "eps inside the root": (
        "betas",
        "(Math.sqrt(v[i]) / root + eps)",
        "Math.sqrt(v[i] / root / root + eps)",
    ),
    "momentum forgotten": (
        "momentum",
        "momentum * speed[i] + gradient[i]",
        "gradient[i]",
    ),
    "clipped by the sum": ("clipped", "Math.sqrt(squares)", "squares"),
    "small gradients scaled up": (
        "not clipped",
        "Math.min(1, most / (size + 1e-6))",
        "most / (size + 1e-6)",
    ),
    "BatchNorm scores by the batch": (
        "scores",
        "trains ? null : running[name]",
        "null",
    ),
    "statistics followed too fast": ("scores", "momentum = 0.1", "momentum = 0.2"),
}
SEEN_BY = {
    "trained": lambda engine: excess(trained(engine, CASES["pre"])) <= FACTOR,
    "rotary twice": lambda engine: excess(trained(engine, CASES["rotary"])) <= FACTOR,
    "scores": scores,
} | {plan: partial(optimizes, plan=plan) for plan in PLANS}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_rejected(mistake):
    seen, old, new = WRONG[mistake]
    check = SEEN_BY.get(seen) or partial(agrees, s=CASES[seen])
    with loaded(old, new) as wrong:
        assert not check(wrong)
