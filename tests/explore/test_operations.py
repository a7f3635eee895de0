"""Operations of the tape where a decoder rarely goes: far out, or all alike."""

import math
from functools import partial

import pytest
import torch
from torch.nn import functional as F

from snippets.qk_norm.rope import rotate
from snippets.rms_norm.reference import rms_norm
from snippets.soft_capping.attention import capped_attention
from tests.explore.conftest import bits, floats, loaded
from tests.explore.float_error import FACTOR, Run, excess

D = 6
ROWS = 7
APPLY = """(operation, rows, x, dy, given) => {
  const held = given.map(([values, width]) => {
    const made = tensor(values.length / width, width);
    made.value.set(floats(values));
    return made;
  });
  const input = tensor(rows, x.length / rows);
  input.value.set(floats(x));
  const tape = new Tape();
  const y = ({ OPERATIONS })[operation](tape, input, ...held);
  y.gradient.set(floats(dy));
  tape.backward();
  return [y.value, ...[input, ...held].map((each) => each.gradient)].map(bitsOf);
}"""


def attended(q, k, v, cap=None):
    """Causal attention of two heads over one sequence."""
    heads = (x.view(1, ROWS, 2, D // 2).transpose(1, 2) for x in (q, k, v))
    y = capped_attention(*heads, cap, (D // 2) ** -0.5)
    return y.transpose(1, 2).reshape(q.shape)


OPERATIONS = {  # name: the engine's call, torch's, shapes of what else it takes
    "lookup": (
        "(tape, table) => lookup(tape, table, [0, 3, 3, 6])",
        lambda table: table[[0, 3, 3, 6]],
        (),
    ),
    "linear": ("linear", F.linear, ((5, D), (5,))),
    "sum": (
        "(tape, x, z, factor) => sum(tape, x, z, 1.7, factor)",
        lambda x, z, factor: 1.7 * x + factor * z,
        ((ROWS, D), (1,)),
    ),
    "scaled": (
        "scaled",
        lambda x, factors: (x.view(ROWS, 3, 2) * factors[:, None]).view(x.shape),
        (3,),
    ),
    "rotary": (
        f"(tape, x) => rotary(tape, x, {{ heads: 1, time: {ROWS} }})",
        rotate,
        (),
    ),
    "attention": (
        f"(tape, q, k, v) => attention(tape, q, k, v, {{ heads: 2, time: {ROWS} }})",
        attended,
        ((ROWS, D), (ROWS, D)),
    ),
    "capped": (
        f"""(tape, q, k, v) =>
          attention(tape, q, k, v, {{ heads: 2, time: {ROWS}, cap: 1.5 }})""",
        partial(attended, cap=1.5),
        ((ROWS, D), (ROWS, D)),
    ),
    "layer": (
        "(tape, x, gain, bias) => norm(tape, x, { gain, bias, eps: 1e-5 })",
        lambda x, gain, bias: F.layer_norm(x, (D,), gain, bias, 1e-5),
        (D, D),
    ),
    "rms": (
        "(tape, x, gain) => norm(tape, x, { gain, eps: 1e-6, centred: false })",
        lambda x, gain: rms_norm(x, gain, 1e-6),
        (D,),
    ),
    "batch": (
        """(tape, x, gain, bias) =>
          norm(tape, x, { gain, bias, eps: 1e-5, across: true })""",
        lambda x, gain, bias: F.batch_norm(
            x.flatten(0, -2), None, None, gain, bias, True, 0.1, 1e-5
        ).view(x.shape),
        (D, D),
    ),
    "fixed": (
        """(tape, x, gain, bias) => norm(tape, x, { gain, bias, eps: 1e-5, across: true,
          fixed: { mean: [0, 1, 2, 3, 4, 5], variance: [1, 2, 3, 4, 5, 6] } })""",
        lambda x, gain, bias: F.batch_norm(
            x.flatten(0, -2),
            torch.arange(0, 6, dtype=x.dtype),
            torch.arange(1, 7, dtype=x.dtype),
            gain,
            bias,
            False,
            0.1,
            1e-5,
        ).view(x.shape),
        (D, D),
    ),
    "gelu": ('(tape, x) => activated(tape, x, "gelu")', F.gelu, ()),
    "silu": ('(tape, x) => activated(tape, x, "silu")', F.silu, ()),
}


def inputs() -> dict[str, torch.Tensor]:
    """Ordinary, odd and extreme rows by name."""
    draw = torch.randn(ROWS, D, generator=torch.Generator().manual_seed(0))
    spike = draw.clone()
    spike.view(-1)[0] = 300.0
    return {
        "random": draw,
        "shifted": draw + 3,
        "faint": draw * 1e-3,
        "large": draw * 30,
        "spike": spike,
        "equal": torch.full((ROWS, D), 0.75),
        "zeros": torch.zeros(ROWS, D),
        "vanishing": draw * 1e-30,
    }


def applied(engine, name: str, x: torch.Tensor) -> Run:
    """Output and gradients."""
    call, function, shapes = OPERATIONS[name]
    generator = torch.Generator().manual_seed(1)
    given = [torch.randn(shape, generator=generator) for shape in shapes]
    dy = torch.randn(function(x, *given).shape, generator=generator)
    apply = APPLY.replace("OPERATIONS", f"called: {call}")
    held = [[bits(each), each.shape[-1]] for each in given]
    found = engine.run(apply, "called", len(x), bits(x), bits(dy), held)
    torchs = []
    for dtype in (torch.float64, torch.float32):
        leaves = [each.to(dtype).requires_grad_() for each in (x, *given)]
        y = function(*leaves)
        torchs.append([y, *torch.autograd.grad(y, leaves, dy.to(dtype))])
    return list(map(floats, found)), *torchs


def furthest(engine, name: str) -> float:
    return max(excess(applied(engine, name, x)) for x in inputs().values())


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(engine, name):
    assert furthest(engine, name) <= FACTOR


@pytest.mark.parametrize("name", ["rms", "batch"])
def test_squares_overflow_as_in_float32(engine, name):
    x = inputs()["random"] * 1e25
    found, _, rounded = applied(engine, name, x)
    assert torch.equal(found[0], rounded[0].detach().flatten())


def activations(engine) -> float:
    """Largest relative deviation of values and slopes, one by one, tails included."""
    x = torch.cat([torch.linspace(-9, 9, 2001), torch.tensor([0.0, 1e-20, 40, -40])])
    worst = 0.0
    for name in ("gelu", "silu"):
        exact = x.double().requires_grad_()
        y = F.silu(exact)
        if name == "gelu":  # torch's own loses the tail, also in float64
            y = exact * torch.special.erfc(-exact / 2**0.5) / 2
        (slope,) = torch.autograd.grad(y.sum(), exact)
        apply = APPLY.replace("OPERATIONS", f"called: {OPERATIONS[name][0]}")
        one = bits(torch.ones_like(x))
        found = engine.run(apply, "called", 1, bits(x), one, [])
        for got, wanted in zip(map(floats, found), (y, slope), strict=True):
            wanted = wanted.detach()
            off = (got - wanted).abs() / wanted.abs().clamp(min=1e-12)
            worst = max(worst, off.max().item())
    return worst


def test_activations_value_by_value(engine):
    assert activations(engine) <= 1e-6


LOSS = """(logits, targets) => {
  const x = tensor(targets.length, logits.length / targets.length);
  x.value.set(floats(logits));
  const tape = new Tape();
  const loss = crossEntropy(tape, x, targets);
  tape.backward();
  return [[loss], x.gradient].map(bitsOf);
}"""


def losses(engine) -> list[Run]:
    """The cross-entropy and its gradient, up to sure mistakes."""
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(11, (7,), generator=generator)
    draw = torch.randn(7, 11, generator=generator)
    runs = []
    for size in (1.0, 40.0, 1e4):
        torchs = []
        for dtype in (torch.float64, torch.float32):
            logits = (draw * size).to(dtype).requires_grad_()
            loss = F.cross_entropy(logits, targets)
            torchs.append([loss, *torch.autograd.grad(loss, logits)])
        found = engine.run(LOSS, bits(draw * size), targets.tolist())
        runs.append((list(map(floats, found)), *torchs))
    return runs


def test_loss(engine):
    assert excess(*losses(engine)) <= FACTOR


ELEMENTARY = {  # name: the engine's call, Python's, arguments
    "exp": ("exp", math.exp, [x / 7 for x in range(-4900, 4900)]),
    "tiny": ("exp", math.exp, [x / 100 for x in range(-75000, -74000)]),
    "log": ("log", math.log, [x / 1000 for x in range(1, 3000)] + [1e-16, 1e10]),
    "cosine": ("(x) => turned(x)[0]", math.cos, [x / 100 for x in range(-900, 3000)]),
    "sine": ("(x) => turned(x)[1]", math.sin, [x / 100 for x in range(-900, 3000)]),
}


def elementary(engine, name: str) -> bool:
    call, function, x = ELEMENTARY[name]
    found = engine.run(f"(x) => x.map((each) => ({call})(each))", x)
    return found == pytest.approx(list(map(function, x)), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary(engine, name):
    assert elementary(engine, name)


def test_elementary_ends_as_floats_do(engine):
    ends = engine.run("""() => [
      exp(NaN), exp(Infinity), exp(-Infinity), exp(800), exp(-800), exp(0),
      log(NaN), log(Infinity), log(0), log(-1), log(1),
    ].map(String)""")
    assert ends[:6] == ["NaN", "Infinity", "0", "Infinity", "0", "1"]
    assert ends[6:] == ["NaN", "Infinity", "-Infinity", "NaN", "0"]


WRONG = {  # a mistake: who sees it, what the engine says, what it would say
    "GELU by tanh": (
        lambda engine: activations(engine) > 1e-6,
        "const below = v < 0 ? outside : 1 - outside;",
        "const below = (1 + Math.tanh(0.7978845608 * (v + 0.044715 * v ** 3))) / 2;",
    ),
    "GELU's slope without the density": (
        "gelu",
        "below + (v * density) / Math.sqrt(2 * Math.PI)",
        "below",
    ),
    "SiLU's slope is the sigmoid": (
        "silu",
        "below * (1 + x[i] * (1 - below))",
        "below",
    ),
    "slope forgotten": ("silu", "y.gradient[i] * slope[i]", "y.gradient[i]"),
    "statistics detached": ("rms", " - alike - hat[i] * along", ""),
    "mean detached": (
        "layer",
        "alike = centred && !fixed ? alike / size : 0",
        "alike = 0",
    ),
    "RMSNorm's backward pass centred": (
        "rms",
        "alike = centred && !fixed ? alike / size : 0",
        "alike /= size",
    ),
    "RMSNorm centred": ("rms", "if (centred) for (let j", "for (let j"),
    "unbiased variance": (
        "batch",
        "Math.fround(squares) / size",
        "Math.fround(squares) / (size - 1)",
    ),
    "eps outside the root": (
        "layer",
        "1 / Math.sqrt(variance[line] + eps)",
        "1 / (Math.sqrt(variance[line]) + eps)",
    ),
    "row's gradient without the gain": (
        "rms",
        "const dhat = dy * gain.value[c];",
        "const dhat = dy;",
    ),
    "gain's gradient without x": ("rms", "dgain[c] += dy * hat[i]", "dgain[c] += dy"),
    "bias without a gradient": (
        "batch",
        "if (bias) addTo(bias.gradient, dbias);",
        "",
    ),
    "fixed statistics with a gradient": (
        "fixed",
        "along = fixed ? 0 : along / size",
        "along /= size",
    ),
    "fixed statistics not used": ("fixed", "if (!fixed) {", "if (true) {"),
    "loss summed": (
        lambda engine: excess(*losses(engine)) > FACTOR,
        "tape.record(loss / rows,",
        "tape.record(loss,",
    ),
    "loss's gradient summed": (
        lambda engine: excess(*losses(engine)) > FACTOR,
        "(c === target ? 1 : 0)) / rows",
        "(c === target ? 1 : 0))",
    ),
    "target not subtracted": (
        lambda engine: excess(*losses(engine)) > FACTOR,
        " - (c === target ? 1 : 0)",
        "",
    ),
    "softmax without the maximum": (
        lambda engine: excess(*losses(engine)) > FACTOR,
        "most = Math.max(most, logits.value[at + c])",
        "most = 0",
    ),
    "exp of too few terms": (
        lambda engine: not elementary(engine, "exp"),
        "1 / 6 + r * (1 / 24 + r * (1 / 120 + r / 720))",
        "1 / 6",
    ),
    "exp of no number just above zero": (
        lambda engine: not elementary(engine, "tiny"),
        "x < LEAST * Math.LN2",
        "x < -745",
    ),
    "log of too few terms": (
        lambda engine: not elementary(engine, "log"),
        "let n = 21",
        "let n = 11",
    ),
    "sine for cosine": (
        lambda engine: not elementary(engine, "cosine"),
        "[-sine, cosine]",
        "[sine, cosine]",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_rejected(mistake):
    seen, old, new = WRONG[mistake]
    with loaded(old, new) as wrong:
        assert seen(wrong) if callable(seen) else furthest(wrong, seen) > FACTOR
