"""The browser's norms and their gradients are torch's, in float32."""

import pytest
import torch
from torch.nn import functional as F

from tests.explore.conftest import bits, floats, loaded

RELATIVE = 1e-5
SHAPES = [(2, 3, 4), (1, 1, 8), (3, 5, 6), (4, 1, 2), (2, 7, 12)]
NORMS = ("layer", "rms", "batch", "masked", "eval", "instance", "group")
CALL = """(norm, shape, given, options) => {
  const [x, gain, bias, dy, mean, variance] = given.map(floats);
  const name = { masked: "batch", eval: "batch" }[norm] ?? norm;
  const spec = { cells: shared(name, shape), gain, bias, eps: options.eps };
  if (norm === "rms") Object.assign(spec, { centred: false, bias: null });
  if (norm === "masked") spec.counted = options.counted;
  if (norm === "eval") spec.fixed = { mean, variance };
  const saved = forward(x, spec);
  const { dx, dgain, dbias } = backward(dy, spec, saved);
  return [saved.y, dx, dgain, dbias].map(bitsOf);
}"""


def inputs(shape) -> dict[str, torch.Tensor]:
    """Ordinary, odd and extreme tensors by name."""
    draw = torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
    spike = draw.clone()
    spike.view(-1)[0] = 300.0
    square = draw.clone()
    square.view(-1)[-1] = 2.5e19  # its square is infinite, the mean would not be
    return {
        "random": draw,
        "shifted": draw + 4,
        "faint": draw * 1e-3,
        "large": draw * 1e4,
        "spike": spike,
        "zeros": torch.zeros(shape),
        "constant": torch.full(shape, 0.75),
        "vanishing": draw * 1e-30,
        "overflowing": draw.sign() * 1e25 + draw,
        "overflowing once": square,
    }


def right(norm, x, gain, bias, counted, mean, variance, eps):
    """The norm of x (N, L, C) by torch, in x.dtype."""
    channels = x.movedim(-1, 1)  # (N, C, L)
    if norm == "layer":
        return F.layer_norm(x, x.shape[-1:], gain, bias, eps)
    if norm == "rms":
        return F.rms_norm(x, x.shape[-1:], gain, eps)
    if norm == "masked":
        rows = x[counted]
        centred = x - rows.mean(0)
        return centred * (rows.var(0, correction=0) + eps).rsqrt() * gain + bias
    if norm in ("batch", "eval"):
        train = norm == "batch"
        running = (None, None) if train else (mean, variance)
        y = F.batch_norm(channels, *running, gain, bias, train, 0.1, eps)
    elif norm == "instance":
        y = F.instance_norm(channels, weight=gain, bias=bias, eps=eps)
    else:
        y = F.group_norm(channels, 2, gain, bias, eps)
    return y.movedim(1, -1)


def cases():
    for shape in SHAPES:
        generator = torch.Generator().manual_seed(shape[1])
        C = shape[-1]
        gain, bias = torch.rand(2, C, generator=generator) * 2 - 0.5
        mean, variance = torch.rand(2, C, generator=generator) + 0.1
        dy = torch.randn(shape, generator=generator)
        counted = torch.rand(shape[:2], generator=generator) < 0.7
        counted[0, 0] = counted[-1, -1] = True
        for name, x in inputs(shape).items():
            for eps in (1e-5, 0.1):
                yield name, eps, x, dy, gain, bias, counted, mean, variance


def defined(norm, name, shape) -> bool:
    """Whether torch has an answer to compare with."""
    n, places, _ = shape
    if norm in ("batch", "masked") and n * places == 1:
        return False  # refused: one value a statistic
    if norm == "instance" and places == 1:
        return False
    # Where a variance overflows, torch's kernels give NaN in one place, 0 in another.
    return not name.startswith("overflowing") or norm in ("rms", "eval")


def inverse_root(norm, x, counted, variance, eps) -> torch.Tensor:
    """1 / sqrt(variance + eps), broadcast against x (N, L, C)."""
    N, _, C = x.shape
    if norm == "rms":
        variance = x.square().mean(-1, keepdim=True)
    elif norm == "group":
        grouped = x.view(N, -1, 2, C // 2).var((1, 3), correction=0)  # (N, 2)
        variance = grouped.repeat_interleave(C // 2, 1)[:, None]
    elif norm == "masked":
        variance = x[counted].var(0, correction=0)
    elif norm != "eval":
        over = {"layer": 2, "batch": (0, 1), "instance": 1}[norm]
        variance = x.var(over, correction=0, keepdim=True)
    return (variance + eps).rsqrt()


def units(norm, x, dy, gain, bias, counted, mean, variance, eps) -> list[torch.Tensor]:
    """The largest terms that y, dx, dgain and dbias are sums of.

    Rounding is measured against them: where they cancel, torch keeps no more digits.
    """
    r = inverse_root(norm, x, counted, variance, eps)
    size = x.abs() + (mean.abs() if norm == "eval" else 0)
    y = (gain * size * r).abs() + bias.abs()
    over_rows = ((dy * size * r).abs().sum((0, 1)), dy.abs().sum((0, 1)))
    return [t.max() for t in (y, (dy * gain * r).abs(), *over_rows)]


def deviation(found, wanted, unit) -> float:
    """Largest distance in this unit; infinite where only one of the two is finite."""
    if not torch.equal(found.isfinite(), wanted.isfinite()):
        return float("inf")
    kept = wanted.isfinite()
    if not kept.any():
        return 0.0
    return ((found - wanted)[kept].abs().max() / unit.clamp(min=1e-30)).item()


def found(engine, norm, eps, x, dy, gain, bias, counted, mean, variance):
    """Output and gradients of the engine."""
    shape = tuple(x.shape)
    mask = counted[..., None].expand(shape).flatten().int().tolist()
    given = [bits(t) for t in (x, gain, bias, dy, mean, variance)]
    options = {"eps": eps, "counted": mask}
    return list(map(floats, engine.run(CALL, norm, shape, given, options)))


def wanted(norm, eps, x, dy, gain, bias, counted, mean, variance, dtype=torch.float32):
    """Output and gradients of torch in a dtype."""
    leaves = [t.detach().to(dtype).requires_grad_() for t in (x, gain, bias)]
    y = right(norm, *leaves, counted, mean.to(dtype), variance.to(dtype), eps)
    used = leaves[: 2 if norm == "rms" else 3]
    return [y, *torch.autograd.grad(y, used, dy.to(dtype))]


def deviations(engine, norm) -> dict[str, float]:
    """The largest deviation of output and gradients for each kind of input."""
    worst: dict[str, float] = {}
    for name, eps, x, *rest in cases():
        if defined(norm, name, tuple(x.shape)):
            both = found(engine, norm, eps, x, *rest), wanted(norm, eps, x, *rest)
            far = max(
                deviation(got, right.detach().flatten(), unit)
                for got, right, unit in zip(
                    *both, units(norm, x, *rest, eps), strict=False
                )
            )
            worst[name] = max(worst.get(name, 0.0), far)
    return worst


def disagree(engine, norms=NORMS) -> bool:
    return any(max(deviations(engine, norm).values()) > RELATIVE for norm in norms)


@pytest.mark.parametrize("norm", NORMS)
def test_agrees_with_torch(engine, norm):
    found = deviations(engine, norm)
    assert len(found) >= 8
    assert max(found.values()) <= RELATIVE, found


def tracked(engine) -> bool:
    """Whether three batches move the running statistics as nn.BatchNorm1d does."""
    module = torch.nn.BatchNorm1d(4, momentum=0.3)
    state = [bits(module.running_mean), bits(module.running_var)]
    for seed in range(3):
        x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(seed)) * 2 + 1
        module(x.view(6, 4))
        state = engine.run(
            """(x, mean, variance) => {
              const now = statistics(floats(x), { cells: shared("batch", [2, 3, 4]) });
              const old = { mean: floats(mean), variance: floats(variance) };
              const running = track(old, now, 0.3);
              return [running.mean, running.variance].map(bitsOf);
            }""",
            bits(x),
            *state,
        )
    wanted = (module.running_mean, module.running_var)
    pairs = zip(map(floats, state), wanted, strict=True)
    return all(torch.allclose(a, b, rtol=RELATIVE) for a, b in pairs)


def test_running_statistics(engine):
    assert tracked(engine)


WRONG = {  # a mistake: the norms that show it, what the engine says, what it would say
    "eps outside the root": ("rms", "Math.sqrt(f32(v + eps))", "(Math.sqrt(v) + eps)"),
    "no eps": ("layer", "f32(v + eps)", "v"),
    "unbiased variance": ("layer", "f32(sum / size[g])", "f32(sum / (size[g] - 1))"),
    "sum for mean": ("rms", "f32(sum / size[g])", "f32(sum)"),
    "squares do not overflow": (
        "rms",
        "f32((x[i] - mean[cells.of[i]]) ** 2)",
        "(x[i] - mean[cells.of[i]]) ** 2",
    ),
    "mean not subtracted": ("layer", "(v - mean[cells.of[i]]) * r", "v * r"),
    "RMSNorm centred": ("rms", "centred ? sum / size[g] : 0", "sum / size[g]"),
    "LayerNorm over a position": (
        "layer",
        "layer: ([N, L]) => [N * L, (n, l) => n * L + l]",
        "layer: ([N, L]) => [L, (n, l) => l]",
    ),
    "LayerNorm over a sequence": (
        "layer",
        "layer: ([N, L]) => [N * L, (n, l) => n * L + l]",
        "layer: ([N, L]) => [N, (n, l) => n]",
    ),
    "BatchNorm per position": (
        "batch",
        "batch: ([, , C]) => [C, (n, l, c) => c]",
        "batch: ([, L, C]) => [L * C, (n, l, c) => l * C + c]",
    ),
    "BatchNorm over features": (
        "batch",
        "batch: ([, , C]) => [C, (n, l, c) => c]",
        "batch: ([, L]) => [L, (n, l) => l]",
    ),
    "InstanceNorm over the batch": (
        "instance",
        "(n, l, c) => n * C + c",
        "(n, l, c) => c",
    ),
    "interleaved groups": ("group", "Math.floor((c * parts) / C)", "(c % parts)"),
    "first gain for all": ("layer", "v * gain[i % C]", "v * gain[0]"),
    "bias before gain": (
        "layer",
        "v * gain[i % C] + (bias ? bias[i % C] : 0)",
        "(v + (bias ? bias[i % C] : 0)) * gain[i % C]",
    ),
    "one plus the gain": ("rms", "v * gain[i % C]", "v * (1 + gain[i % C])"),
    "mean forgotten in the gradient": ("layer", "(centred ? alike[g] : 0)", "0"),
    "RMSNorm's gradient centred": ("rms", "(centred ? alike[g] : 0)", "alike[g]"),
    "variance detached": ("rms", " + along[g] * hat[i]", ""),
    "gradient without the gain": ("layer", "dy[i] * gain[i % C]", "dy[i]"),
    "gradient without r": ("layer", "return r[g] * (dhat(i)", "return (dhat(i)"),
    "gain's gradient without x": ("layer", "+= d * hat[i]", "+= d"),
    "padding counted": ("masked", "if (!counted || counted[i]) ", ""),
    "padding takes part in the gradient": (
        "masked",
        "fixed || (counted && !counted[i])",
        "fixed",
    ),
    "eval mode looks at the batch": ("eval", "fixed ?? statistics", "statistics"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_rejected(mistake):
    norm, old, new = WRONG[mistake]
    with loaded(old, new) as wrong:
        assert disagree(wrong, [norm])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(variance[g] * size[g]) / (size[g] - 1)", "variance[g]"),
        (
            "(1 - momentum) * old + momentum * now",
            "momentum * old + (1 - momentum) * now",
        ),
    ],
)
def test_wrong_running_statistics_are_rejected(old, new):
    with loaded(old, new) as wrong:
        assert not tracked(wrong)
