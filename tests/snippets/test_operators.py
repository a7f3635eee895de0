"""What all norms and operators promise alike, each held against float64.

The default epsilon; one rounding of results and gradients, in the dtype of what they
belong to; inputs that lie apart in memory; nothing else in eval mode. The formulas
that a CPU takes in place of Triton's kernels are among them.
"""

from dataclasses import dataclass
from importlib import import_module

import pytest
import torch
from torch import Tensor

BATCH, TIME, HEADS, WIDTH = 3, 5, 2, 48
CAP = 5.0


def rms(x, gain, eps):
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain,)


def layer(x, gain, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return (rms(centred, gain, eps)[0] + bias,)


def add_rms(x, branch, gain, eps):
    stream = x + branch
    stored = stream.bfloat16() if (x == x.bfloat16()).all() else stream
    stream = stream + (stored.double() - stream).detach()
    return stream, *rms(stream, gain, eps)


def add_rms_last(x, branch, gain, eps):
    return add_rms(x, branch, gain, eps)[::-1]


def rope(x, gain, cos, sin, eps):
    a, b = rms(x, gain, eps)[0].chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]
    return (torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1),)


def cap(x, most):
    return (most * torch.tanh(x / most),)


def tanh(x, alpha, gain, bias):
    return (torch.tanh(alpha * x) * gain + bias,)


@dataclass(frozen=True)
class Case:
    """``given`` names the inputs, ``eps`` is the documented default.

    Parameters are float32; ``alike``: of x's dtype, as some tasks say.
    """

    path: str
    formula: object
    given: tuple[str, ...]
    eps: float | None = None
    alike: bool = False

    def __str__(self):
        return self.path

    @property
    def function(self):
        module, name = self.path.split(":")
        return getattr(import_module(f"snippets.{module}"), name)

    def inputs(self, dtype=torch.float32, scale=1.0) -> list:
        """x and what has its shape are of ``dtype``."""
        four = (HEADS,) if "cos" in self.given else ()
        made = torch.Generator().manual_seed(1)

        def draw(*shape, of=torch.float32, offset=0.0):
            return (torch.randn(*shape, generator=made) + offset).to(of)

        makers = {
            "x": lambda: draw(BATCH, TIME, *four, WIDTH, of=dtype) * scale,
            "branch": lambda: draw(BATCH, TIME, WIDTH, of=dtype) * scale,
            "gain": lambda: 40 * draw(WIDTH, offset=2.0),  # outputs of hundreds
            "bias": lambda: 40 * draw(WIDTH),
            "alpha": lambda: torch.tensor(0.7123456),
            "cos": lambda: draw(TIME, WIDTH // 2).cos(),
            "sin": lambda: draw(TIME, WIDTH // 2).sin(),
            "most": lambda: CAP,
        }
        made_now = [makers[name]() for name in self.given]
        return [i.to(dtype) for i in made_now] if self.alike else made_now

    def exact(self, inputs):
        """Outputs and inputs of the formula in float64."""
        wide = [leaf(i.double()) if isinstance(i, Tensor) else i for i in inputs]
        return self.formula(*wide, *([self.eps] if self.eps else [])), wide

    def learned(self, inputs) -> list[Tensor]:
        """Those that get a gradient."""
        names = {"x", "branch", "gain", "bias", "alpha"}
        return [i for n, i in zip(self.given, inputs, strict=True) if n in names]


def leaf(tensor):
    return tensor.detach().requires_grad_()


NORM, AFFINE = ("x", "gain"), ("x", "gain", "bias")
FORWARD = [
    Case("rms_norm.reference:rms_norm", rms, NORM, 1e-6),
    Case("layer_norm.reference:layer_norm", layer, AFFINE, 1e-5),
    Case("triton_rms_norm.operator:rms_norm", rms, NORM, 1e-6),
    Case("triton_layer_norm.operator:layer_norm", layer, AFFINE, 1e-5),
    Case(
        "fused_residual.operator:add_rms_norm", add_rms, ("x", "branch", "gain"), 1e-6
    ),
    Case("qk_norm_rope.operator:qk_norm_rope", rope, (*NORM, "cos", "sin"), 1e-6),
    Case("memory_bound.soft_cap:soft_cap", cap, ("x", "most")),
    Case("soft_capping.reference:soft_cap", cap, ("x", "most")),
    Case("coding.rms_norm:rms_norm", rms, NORM, 1e-6),
    Case("coding.layer_norm:layer_norm", layer, AFFINE, 1e-5),
    Case("without_normalization.reference:dynamic_tanh", tanh,
         ("x", "alpha", "gain", "bias")),
    Case("coding.add_rms_norm:add_rms_norm", add_rms_last, ("x", "branch", "gain"),
         1e-6),
]  # fmt: skip
BACKWARD = [
    Case("rms_norm.backward:rms_norm_backward", rms, NORM, 1e-6),
    Case("layer_norm.backward:layer_norm_backward", layer, AFFINE, 1e-5),
    Case("coding.rms_norm_backward:rms_norm_backward", rms, NORM, 1e-6, True),
    Case("coding.layer_norm_backward:layer_norm_backward", layer, AFFINE, 1e-5, True),
    Case("soft_capping.reference:soft_cap_backward", cap, ("x", "most")),
    Case("memory_bound.soft_cap:soft_cap_backward", cap, ("x", "most")),
    Case("without_normalization.backward:dynamic_tanh_backward", tanh,
         ("x", "alpha", "gain", "bias")),
]  # fmt: skip
KERNELS = ("triton_rms_norm", "triton_layer_norm", "fused_residual", "qk_norm_rope",
           "memory_bound")  # fmt: skip
DTYPES = (torch.float32, torch.bfloat16)
each_forward = pytest.mark.parametrize("case", FORWARD, ids=str)
each_backward = pytest.mark.parametrize("case", BACKWARD, ids=str)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@pytest.fixture(autouse=True)
def formulas_on_a_cpu(monkeypatch):
    import triton

    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)


def outputs(found) -> tuple[Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


def near(found: Tensor, wanted: Tensor, dtype) -> None:
    """As float32 can, or rounded once: all but a few elements are the nearest."""
    assert found.dtype == dtype, f"is {found.dtype}"
    assert found.shape == wanted.shape
    gap = (found.double() - wanted).norm() / wanted.norm()
    assert gap < {torch.float32: 1e-6, torch.bfloat16: 2e-3}[dtype], gap
    if dtype is torch.bfloat16:
        others = (found != wanted.to(dtype)).double().mean()
        assert others < 0.01, f"{others:.1%} are rounded twice"


def gradients(case, function, inputs, slopes) -> list[Tensor]:
    inputs = [leaf(i) if isinstance(i, Tensor) else i for i in inputs]
    found = outputs(function(*inputs))
    return list(torch.autograd.grad(found, case.learned(inputs), slopes))


def slopes_of(found) -> list[Tensor]:
    made = torch.Generator().manual_seed(2)
    return [torch.randn(f.shape, generator=made).to(f.dtype) for f in found]


def exact_gradients(case, inputs, slopes):
    wanted, wide = case.exact(inputs)
    slopes = [slope.double() for slope in slopes]
    return torch.autograd.grad(wanted, case.learned(wide), slopes)


@each_dtype
@each_forward
def test_result_is_rounded_once(case, dtype):
    inputs = case.inputs(dtype)
    found, (wanted, _) = outputs(case.function(*inputs)), case.exact(inputs)
    for one, exact in zip(found, wanted, strict=True):
        near(one, exact.detach(), dtype)


@each_dtype
@pytest.mark.parametrize("case", FORWARD[:-1], ids=str)  # the last adds two rounded
def test_gradients_of_autograd(case, dtype):
    inputs = case.inputs(dtype)
    slopes = slopes_of(outputs(case.function(*inputs)))
    found = gradients(case, case.function, inputs, slopes)
    exact = exact_gradients(case, inputs, slopes)
    for one, wanted, like in zip(found, exact, case.learned(inputs), strict=True):
        near(one, wanted, like.dtype)


@each_dtype
@pytest.mark.parametrize("slope", DTYPES, ids=lambda d: f"grad {d}")
@each_backward
def test_gradients_written_by_hand(case, slope, dtype):
    """Also for a gradient that is wider, or narrower, than x."""
    inputs = case.inputs(dtype)
    x, wanted = inputs[0], case.exact(inputs)[0]
    slopes = [each.to(slope) for each in slopes_of(wanted)]
    given = [i for n, i in zip(case.given, inputs, strict=True) if n != "bias"]
    found = outputs(case.function(slopes[0], *given))
    exact = exact_gradients(case, inputs, slopes)
    for one, want, like in zip(found, exact, case.learned(inputs), strict=True):
        near(one, want, like.dtype)
    assert found[0].shape == x.shape


@pytest.mark.parametrize("case", [c for c in FORWARD + BACKWARD if c.eps], ids=str)
def test_default_epsilon(case):
    inputs = case.inputs(scale=1e-3)
    x, (wanted, _) = inputs[0], case.exact(inputs)
    if case in FORWARD:
        found = outputs(case.function(*inputs))
    else:
        wanted = exact_gradients(case, inputs, slopes_of(wanted))[:1]
        given = [i for n, i in zip(case.given, inputs, strict=True) if n != "bias"]
        found = outputs(case.function(slopes_of([x])[0], *given))[:1]
    for one, exact in zip(found, wanted, strict=True):
        near(one, exact.detach(), torch.float32)


def apart(tensor: Tensor, rows: bool) -> Tensor:
    """The same numbers with gaps between the rows, or with the first axes swapped."""
    if tensor.ndim < 3:
        return tensor
    if rows:
        return torch.cat((tensor, tensor), dim=-1)[..., : tensor.shape[-1]]
    return tensor.transpose(0, 1).contiguous().transpose(0, 1)


def placed(case, values, rows: bool) -> list:
    """soft_cap of the kernels takes what is contiguous, as it says."""
    if case.path.startswith("memory_bound"):
        return values
    return [apart(v, rows) if isinstance(v, Tensor) else v for v in values]


@each_forward
def test_inputs_apart_in_memory(case):
    inputs = case.inputs()
    rows = case.path.startswith(KERNELS)  # what row_layout takes
    found = outputs(case.function(*placed(case, inputs, rows)))
    for one, wanted in zip(found, outputs(case.function(*inputs)), strict=True):
        torch.testing.assert_close(one, wanted)
    slopes = slopes_of(found)
    wanted = gradients(case, case.function, inputs, slopes)
    for gaps in (True,) if rows else (True, False):
        given = [apart(slope, gaps) for slope in slopes]
        found = gradients(case, case.function, placed(case, inputs, rows), given)
        for one, exact in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, exact, rtol=1e-5, atol=1e-3)


@each_backward
def test_gradients_apart_in_memory(case):
    inputs = case.inputs()
    given = [i for n, i in zip(case.given, inputs, strict=True) if n != "bias"]
    slope = slopes_of(inputs[:1])[0]
    wanted = outputs(case.function(slope, *given))
    for rows in (True, False):
        found = case.function(apart(slope, rows), *placed(case, given, rows))
        for one, exact in zip(outputs(found), wanted, strict=True):
            torch.testing.assert_close(one, exact, rtol=1e-5, atol=1e-3)


MODULES = [
    ("rms_norm.reference:RMSNorm", 1e-6),
    ("triton_rms_norm.module:RMSNorm", 1e-6),
    ("fused_residual.module:AddNorm", 1e-6),
    ("layer_norm.reference:LayerNorm", 1e-5),
]


@pytest.mark.parametrize(("path", "eps"), MODULES)
def test_modules(path, eps):
    """Default and given epsilon count; training and eval are the same."""
    module, name = path.split(":")
    kind = getattr(import_module(f"snippets.{module}"), name)
    x = 1e-3 * torch.randn(4, WIDTH, generator=torch.Generator().manual_seed(3))
    formula = layer if name == "LayerNorm" else rms
    for given, made in ((eps, kind(WIDTH)), (0.1, kind(WIDTH, eps=0.1))):
        extra = [torch.zeros(WIDTH).double()] if formula is layer else []
        wanted = formula(x.double(), torch.ones(WIDTH).double(), *extra, given)[0]
        for training in (True, False):
            made.train(training)
            found = outputs(made(x))[-1]
            near(found.detach(), wanted, torch.float32)
            found.square().sum().backward()
            assert made.gain.grad is not None
            made.gain.grad = None
