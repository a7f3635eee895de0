"""The file that judges readers' code: alone with torch, as strict as the suites."""

import importlib
import re
import subprocess
import sys
import types

import pytest

from scripts.site.notebooks import judge
from scripts.site.reading.source import SNIPPETS, SourceError
from tests.wrong import variants

URL = "https://norms.example/en/"
SUITES = {
    name: importlib.import_module(f"tests.snippets.coding.test_{name}")
    for name in judge.tasks()
}
RMS_NORM = """
import torch
from torch import nn

class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        mean = length**2 / x.shape[-1]
        return (wide / torch.sqrt(mean + self.eps) * self.weight).type_as(x)
"""
LAYER_NORM = """
import torch
from torch import nn

class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.dim, self.eps = dim, eps
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        kind = torch.float64 if x.dtype == torch.float64 else torch.float32
        var, mean = torch.var_mean(x.to(kind), -1, correction=0, keepdim=True)
        y = (x - mean) * torch.rsqrt(var + self.eps)
        return (y * self.weight + self.bias).to(x.dtype)
"""
GROUP_NORM = """
import torch

class GroupNorm(torch.nn.Module):
    def __init__(self, groups, channels, eps=1e-5):
        super().__init__()
        self.groups, self.eps = groups, eps
        self.weight = torch.nn.Parameter(torch.ones(channels))
        self.bias = torch.nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        kind = torch.promote_types(x.dtype, torch.float32)
        parts = x.to(kind).chunk(self.groups, dim=1)
        done = []
        for part in parts:
            dims = tuple(range(1, x.ndim))
            c = part - part.mean(dims, keepdim=True)
            done.append(c / (c.pow(2).mean(dims, keepdim=True) + self.eps).sqrt())
        shape = (1, -1) + (1,) * (x.ndim - 2)
        y = torch.cat(done, dim=1)
        return (y * self.weight.view(shape) + self.bias.view(shape)).to(x.dtype)
"""
SOFT_CAP = """
import torch

def soft_cap(z, cap):
    wide = z.to(torch.promote_types(z.dtype, torch.float32))
    e = torch.exp(-2 * wide.abs() / cap)
    value = -cap * torch.sign(wide) * torch.expm1(-2 * wide.abs() / cap) / (1 + e)
    slope = 4 * e / (1 + e) ** 2
    return value.to(z.dtype), slope.to(z.dtype)
"""
PRE_NORM = """
def pre_norm_stack(x, branches, norms):
    for index, branch in enumerate(branches):
        x = x + branch(norms[index](x))
    return norms[len(branches)](x)
"""
BACKWARD = """
import torch

def rms_norm_backward(grad_y, x, gain, eps=1e-6):
    kind = torch.promote_types(x.dtype, torch.float32)
    h, u = x.to(kind), grad_y.to(kind) * gain.to(kind)
    r = (torch.einsum("...i,...i->...", h, h) / x.shape[-1] + eps).rsqrt()[..., None]
    along = (u * h).sum(-1, keepdim=True) / x.shape[-1]
    grad_gain = (grad_y.to(kind) * h * r).reshape(-1, x.shape[-1]).sum(0)
    return (r * u - r**3 * along * h).to(x.dtype), grad_gain.to(gain.dtype)
"""
AUTOGRAD = """
import torch

def rms_norm_backward(grad_y, x, gain, eps=1e-6):
    a, b = x.detach().requires_grad_(), gain.detach().requires_grad_()
    y = a * (a.square().mean(-1, keepdim=True) + eps).rsqrt() * b
    return torch.autograd.grad(y, (a, b), grad_y)

def layer_norm_backward(grad_y, x, gain, eps=1e-5):
    mean, rstd = x.mean(-1), (x.var(-1, correction=0) + eps).rsqrt()
    call, sides = torch.ops.aten.native_layer_norm_backward, [True] * 3
    return call(grad_y, x, gain.shape, mean, rstd, gain, gain, sides)
"""
BY_TORCH = """
import torch

def numpy_rms_norm(x, gain, eps=1e-6):
    x = torch.from_numpy(x)
    return (x * (x * x).mean(-1, keepdim=True).rsqrt()).numpy() * gain
"""
MADE = """
import functools
import torch

def named(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide * (wide.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    return (y * gain).to(x.dtype)

rms_norm = functools.partial(named)
"""
BY_MATRIX = """
import torch

def layer_norm(x, gain, bias, eps=1e-5):
    kind = torch.promote_types(x.dtype, torch.float32)
    d = x.shape[-1]
    centring = torch.eye(d, dtype=kind) - torch.full((d, d), 1 / d, dtype=kind)
    h = x.to(kind)
    c = h - h.mean(-1, keepdim=True)
    c = c @ centring
    scale = (torch.einsum("...i,...i->...", c, c) / d + eps).rsqrt().unsqueeze(-1)
    return torch.addcmul(bias.to(kind), c * scale, gain.to(kind)).to(x.dtype)
"""
BY_SUM = """
import torch

def rms_norm(x, gain, eps=1e-6):
    kind = torch.promote_types(x.dtype, torch.float32)
    rows = x.to(kind).reshape(-1, x.shape[-1])
    done = [row * (row.dot(row) / row.numel() + eps) ** -0.5 * gain for row in rows]
    return torch.stack(done).reshape(x.shape).to(x.dtype)
"""
BATCH_NORM = """
import torch

class BatchNorm(torch.nn.Module):
    def __init__(self, features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        if self.training and len(x) < 2:
            raise ValueError("one sample")
        wide, m = x.to(self.weight.dtype), self.momentum
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = wide.mean(0), wide.var(0, correction=0)
            new = wide.detach().mean(0), wide.detach().var(0)
            self.running_mean = (1 - m) * self.running_mean + m * new[0]
            self.running_var = (1 - m) * self.running_var + m * new[1]
        scale = self.weight / torch.sqrt(var + self.eps)
        return ((wide - mean) * scale + self.bias).to(x.dtype)
"""
MASKED = """
import torch

class MaskedBatchNorm(torch.nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))

    def forward(self, x, mask):
        wide = torch.promote_types(x.dtype, torch.float32)
        real = mask[..., None]
        h = torch.where(real, x, 0).to(wide)
        n = mask.sum()
        c = torch.where(real, h - h.sum((0, 1)) / n, 0)
        r = (torch.einsum("btd,btd->d", c, c) / n + self.eps).rsqrt()
        return torch.where(real, c * r * self.weight + self.bias, 0).to(x.dtype)
"""
ADD = """
import torch

class AddRMSNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, torch.nn.Parameter(torch.ones(dim))

    def forward(self, x, residual):
        stream = residual + x
        wide = stream.to(torch.promote_types(x.dtype, torch.float32))
        gain = self.weight.to(wide.dtype)
        r = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * r * gain).to(x.dtype), stream
"""
ATTENTION = """
import torch

class QKNormAttention(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.q_norm = torch.nn.RMSNorm(width, eps=1e-6)
        self.k_norm = torch.nn.RMSNorm(width, eps=1e-6)

    def turned(self, x):
        half = self.width // 2
        kind = torch.promote_types(x.dtype, torch.float32)
        power = torch.arange(half, dtype=kind) / half
        angle = torch.arange(x.shape[1], dtype=kind)[:, None] * 10000.0**-power
        a, b = x.to(kind).split(half, dim=-1)
        cos, sin = angle.cos()[:, None], angle.sin()[:, None]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)

    def forward(self, q, k, v):
        heads = [each.unflatten(-1, (-1, self.width)) for each in (q, k, v)]
        q, k, v = self.q_norm(heads[0]), self.k_norm(heads[1]), heads[2]
        q, k = self.turned(q), self.turned(k)
        q = q.unflatten(2, (k.shape[2], -1))
        scores = torch.einsum("btkgw,bskw->bkgts", q, k) / self.width**0.5
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        share = scores.masked_fill(future, -torch.inf).softmax(-1)
        return torch.einsum("bkgts,bskw->btkgw", share, v).flatten(2)
"""
BY_NUMPY = """
import numpy as np

def numpy_layer_norm(x, gain, bias, eps=1e-5):
    kind = np.promote_types(x.dtype, "f4")
    c = x - x.mean(-1, keepdims=True, dtype=kind)
    r = 1 / np.sqrt(np.einsum("...i,...i->...", c, c) / x.shape[-1] + eps)
    return (c * r[..., None] * gain + bias).astype(x.dtype)

def numpy_rms_norm(x, gain, eps=1e-6):
    wide = np.asarray(x, np.promote_types(x.dtype, "f4"))
    length = np.linalg.norm(wide, axis=-1, keepdims=True)
    root = np.hypot(length / np.sqrt(x.shape[-1]), np.sqrt(eps))
    return (wide * gain / root).astype(x.dtype)
"""
BY_MOMENTS = """
import torch

def batch_norm_backward(grad_y, x, gain, eps=1e-5):
    h, g = x.to(gain.dtype), grad_y.to(gain.dtype)
    var, mean = torch.var_mean(h, 0, correction=0)
    slope = gain / (var + eps).sqrt()
    n = (h - mean) / (var + eps).sqrt()
    projected = g - g.mean(0) - n * torch.einsum("nd,nd->d", g, n) / len(x)
    return (slope * projected).to(x.dtype), (g * n).sum(0), g.sum(0)
"""
KERNELS = """
import triton
import triton.language as tl

@triton.jit
def rms_norm_kernel(
    x, gain, y, stride, eps, WIDTH: tl.constexpr, COLUMNS: tl.constexpr
):
    at = tl.arange(0, COLUMNS)
    x += tl.program_id(0) * stride
    y += tl.program_id(0) * WIDTH
    h = tl.load(x + at, at < WIDTH, 0.0).to(tl.float32)
    root = tl.sqrt(tl.sum(h * h) / WIDTH + eps)
    g = tl.load(gain + at, at < WIDTH, 0.0).to(tl.float32)
    tl.store(y + at, (h / root * g).to(y.dtype.element_ty), at < WIDTH)

@triton.jit
def layer_norm_kernel(
    x, gain, bias, y, stride, eps, WIDTH: tl.constexpr, COLUMNS: tl.constexpr
):
    # The pieces' means and squares are merged on the way: two walks.
    at = tl.arange(0, COLUMNS)
    x += tl.program_id(0) * stride
    y += tl.program_id(0) * WIDTH
    mean = 0.0
    squares = 0.0
    for first in range(0, WIDTH, COLUMNS):
        inside = first + at < WIDTH
        n = tl.minimum(COLUMNS, WIDTH - first)
        h = tl.load(x + first + at, inside, 0.0).to(tl.float32)
        here = tl.sum(h) / n
        c = tl.where(inside, h - here, 0.0)
        step = here - mean
        squares += tl.sum(c * c) + step * step * first * n / (first + n)
        mean += step * n / (first + n)
    r = 1 / tl.sqrt(squares / WIDTH + eps)
    for first in range(0, WIDTH, COLUMNS):
        inside = first + at < WIDTH
        h = tl.load(x + first + at, inside, 0.0).to(tl.float32)
        g = tl.load(gain + first + at, inside, 0.0).to(tl.float32)
        b = tl.load(bias + first + at, inside, 0.0).to(tl.float32)
        z = (h - mean) * r * g + b
        tl.store(y + first + at, z.to(y.dtype.element_ty), inside)
"""
RIGHT = [
    BATCH_NORM,
    MASKED,
    ADD,
    ATTENTION,
    BY_NUMPY,
    BY_MOMENTS,
    KERNELS,
    BY_MATRIX,
    BY_SUM,
    RMS_NORM,
    LAYER_NORM,
    GROUP_NORM,
    SOFT_CAP,
    PRE_NORM,
    BACKWARD,
]


READY = """
import torch
from torch.nn import functional as F

def wide(x):
    return x if x.dtype == torch.float64 else x.float()

def rms_norm(x, gain, eps=1e-6):
    return F.rms_norm(wide(x), gain.shape, gain.to(wide(x).dtype), eps).to(x.dtype)

def batch_norm(x, gain, bias, mean, var, training, momentum=0.1, eps=1e-5):
    y = F.batch_norm(x.to(gain.dtype), mean, var, gain, bias, training, momentum, eps)
    return y.to(x.dtype)

class GroupNorm(torch.nn.GroupNorm):
    def forward(self, x):
        gain, bias = wide(self.weight), wide(self.bias)
        y = F.group_norm(wide(x), self.num_groups, gain, bias, self.eps)
        return y.to(x.dtype)
"""
NARROW = """
def rms_norm(x, gain, eps=1e-6):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain
"""
LLAMA = """
def rms_norm(x, gain, eps=1e-6):
    h = x.float()
    h = h * (h.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    return gain * h.to(x.dtype)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("reader")
    (path / "judge.py").write_text(judge.text("en", URL), encoding="utf-8")
    return path


def run(folder, *arguments) -> subprocess.CompletedProcess:
    """In a folder of its own, where neither the repository nor a runner is found."""
    command = [sys.executable, "-I", "judge.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture
def say(folder, module, monkeypatch, capsys):
    """The judge on the folder's files, in this process."""
    monkeypatch.chdir(folder)

    def say(*arguments):
        status = module.main([*arguments], module.TASKS)
        out, err = capsys.readouterr()
        return types.SimpleNamespace(returncode=status, stdout=out, stderr=err)

    return say


@pytest.fixture(scope="module")
def module(folder):
    spec = importlib.util.spec_from_file_location(
        "judge_of_readers", folder / "judge.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["judge_of_readers"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["judge_of_readers"]


def test_a_first_attempt(folder, say):
    done = say("rms_norm", "mine.py")
    assert done.stdout.startswith("wrote the stub to mine.py"), done.stderr
    stub = (SNIPPETS / "coding" / "rms_norm_stub.py").read_text(encoding="utf-8")
    assert (folder / "mine.py").read_text(encoding="utf-8") == stub
    done = say("rms_norm", "mine.py")
    assert (done.returncode, done.stdout) == (1, "rms_norm is not written yet\n")
    assert (folder / "mine.py").read_text(encoding="utf-8") == stub
    body = "return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain"
    (folder / "mine.py").write_text(stub.replace("raise NotImplementedError", body))
    done = run(folder, "mine.py")
    assert done.returncode == 1
    assert "float16" in done.stdout and "Traceback" not in done.stderr


def test_right_ways_written_differently_pass(folder):
    """At least ten, by other algebra, einsum, torch's own calls, modules and arrays."""
    assert len(RIGHT) >= 10
    paths = [folder / f"other_{number}.py" for number in range(len(RIGHT))]
    for path, code in zip(paths, RIGHT, strict=True):
        path.write_text(code, encoding="utf-8")
    judging = (
        "import judge, sys\nfor path in sys.argv[1:]: judge.main([path], judge.TASKS)"
    )
    names = [path.name for path in paths]
    command = [sys.executable, "-c", judging, *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    wanted = sum(len(re.findall(r"^(?:def|class) ", code, re.M)) for code in RIGHT)
    assert done.stdout.count(" is right: it passes ") == wanted, done.stdout
    assert done.stdout.count("The point: ") == wanted
    assert not done.stderr


@pytest.mark.parametrize(
    ("code", "first", "dtypes"),
    [
        (
            NARROW,
            "y[0, 0] is -0, expected -0.105353 (99 of 99",
            ["float16", "bfloat16"],
        ),
        (LLAMA, "one rounding too many: y[", ["bfloat16", "float16"]),
    ],
)
def test_every_dtype_that_fails_is_told_the_largest_error_first(
    code, first, dtypes, folder, say
):
    (folder / "narrow.py").write_text(code, encoding="utf-8")
    done = say("narrow.py")
    said = done.stdout.splitlines()
    assert done.returncode == 1 and first in said[0]
    for line, dtype in zip(said, dtypes, strict=False):
        assert f"x of size 300 in torch.{dtype}," in line


def test_what_a_file_defines_otherwise(module, tmp_path, monkeypatch, capsys):
    path = tmp_path / "other.py"
    for code, status, said in (
        ("def layernorm(x): ...", 2, "other.py defines no rms_norm (it has layernorm)"),
        ("while True:\n    pass", 2, "other.py does not come to an end: stopped "),
        ("from snippets.a import b", 2, "(the stub that judge.py writes holds what "),
    ):
        path.write_text(code, encoding="utf-8")
        monkeypatch.setattr(module, "LIMIT", 0.5 if "while" in code else 20.0)
        assert module.main(["rms_norm", str(path)], module.TASKS) == status
        assert said in capsys.readouterr().out
    path.write_text(MADE.replace("y = wide", "print(x)\n    y = wide"))
    assert module.main([str(path), "rms_norm"], module.TASKS) == 0
    out = capsys.readouterr().out
    assert "rms_norm is right: " in out and out.count("\n") < 5 * module.PRINTED + 20


def test_points_are_plain(module):
    points = [task.learned for task in module.TASKS.values()]
    assert not [each for each in points if re.search(r"[\\{}$]", each)]


def test_at_most_a_handful_of_lines(module, tmp_path, capsys):
    path = tmp_path / "off.py"
    path.write_text("def rms_norm(x, gain, eps=1e-6):\n    return x.float() * 2\n")
    assert module.main([str(path)], module.TASKS) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and last == "... and 2 more"
    path.write_text("def rms_norm(*given):\n    assert False\n")
    assert module.main([str(path)], module.TASKS) == 1
    assert "rms_norm: " in capsys.readouterr().out


OUTSIDE = """
def rms_norm(x, gain, eps=1e-6):
    h = x.to(gain.dtype) if x.dtype.itemsize > 2 else x.float()
    return (h / (h.pow(2).mean(-1, keepdim=True).sqrt() + eps) * gain).to(x.dtype)
"""
STRIDES = """
import torch

def layer_norm(x, gain, bias, eps=1e-5):
    blocks = torch.empty(x.shape, device="meta").stride()
    h = x.as_strided(x.shape, blocks).to(torch.promote_types(x.dtype, torch.float32))
    var, mean = torch.var_mean(x.to(h.dtype), -1, correction=0, keepdim=True)
    return ((h - mean) * (var + eps).rsqrt() * gain + bias).to(x.dtype)
"""
REBOUND = """
def batch_norm(
    x, gain, bias, running_mean, running_var, training, momentum=0.1, eps=1e-5
):
    if training and len(x) < 2:
        raise ValueError
    h = x.to(gain.dtype)
    mean, var = running_mean, running_var
    if training:
        mean, var = h.mean(0), h.var(0, correction=0)
        running_mean = running_mean + momentum * (mean.detach() - running_mean)
        running_var.lerp_(h.detach().var(0), momentum)
    return ((h - mean) * (var + eps).rsqrt() * gain + bias).to(x.dtype)
"""
GAMMA = RMS_NORM.replace("weight", "gamma")
LOOP = """
def rms_norm(x, gain, eps=1e-6):
    while True:
        eps += 1
"""
ENDLESS = KERNELS.replace(
    "mean = 0.0\n", "mean = 0.0\n    while eps > 0:\n        eps += 1\n"
)
LOST = KERNELS.replace(
    "y += tl.program_id(0) * WIDTH", "os.kill(os.getpid(), 11)", 1
).replace("import triton\n", "import os\nimport triton\n")
FAR = KERNELS.replace("y += tl.program_id(0) * WIDTH", "y += 1_000_000_000 * stride", 1)
BETWEEN = KERNELS.replace(
    "    root = ", "    tl.store(x + WIDTH, eps, stride > WIDTH)\n    root = "
)
UNMASKED = KERNELS.replace(
    "g = tl.load(gain + at, at < WIDTH, 0.0)", "g = tl.load(gain + at)", 1
)
WHOLE = KERNELS.replace("first in range(0, WIDTH, COLUMNS)", "first in range(1)")
WHOLE = WHOLE.replace("at = tl.arange(0, COLUMNS)", "at = tl.arange(0, 512)")
WHOLE = WHOLE.replace("tl.minimum(COLUMNS, WIDTH - first)", "WIDTH")
GONE = "import os\n\ndef rms_norm(x, gain, eps=1e-6):\n    os._exit(0)\n"
LEFT = "def rms_norm(x, gain, eps=1e-6):\n    exit()\n"
OTHER = "def layer_norm(x, shape, gain, bias, eps=1e-5):\n    return x.to(gain)\n"
OWN = "def rms_norm(x, gain, eps=1e-6):\n    assert x.ndim == 9\n"
TURNED = "def rms_norm(x, gain, eps=1e-6):\n    return x.view(-1, 5) * gain.view(7)\n"
INPUTS = KERNELS.replace(
    "y += tl.program_id(0) * WIDTH", "y += tl.program_id(0) * stride"
)
RMS, LAYER = "rms_norm_kernel", "layer_norm_kernel"


@pytest.mark.parametrize(
    ("task", "code", "said"),
    [
        ("rms_norm", READY, "rms_norm: torch's own rms_norm is called: write the norm"),
        ("batch_norm", READY, "batch_norm: torch's own batch_norm is called: "),
        ("group_norm", READY, "group_norm: torch's own group_norm is called: "),
        ("rms_norm", OUTSIDE, "rms_norm: x of size 1e-4 and a row of zeros, eps 1e-05"),
        ("layer_norm", STRIDES, "layer_norm: input 1 is a view, "),
        ("rms_norm", GAMMA, "rms_norm: RMSNorm has no weight: call it so (it has g"),
        ("rms_norm", LOOP, "rms_norm does not come to an end: stopped after 3 s"),
        ("triton_layer_norm", ENDLESS, f"{LAYER} does not come to an end: stopped "),
        ("triton_rms_norm", LOST, f"{RMS} ends its process (SIGSEGV): it leaves the"),
        ("triton_rms_norm", INPUTS, f"{RMS}: x of size 300 in torch.float16: writes "),
        ("triton_rms_norm", FAR, f"{RMS}: x of size 300 in torch.float16: writes out"),
        ("triton_rms_norm", BETWEEN, f"{RMS}: x of size 300 in torch.float16: writes"),
        ("triton_rms_norm", UNMASKED, f"{RMS}: x of size 300 in torch.float16: reads"),
        ("triton_layer_norm", WHOLE, f"{LAYER}: x of size 300 in torch.float16: a ti"),
        ("rms_norm", GONE, "rms_norm ends the program\n  line 4: os._exit(0)"),
        ("rms_norm", LEFT, "rms_norm ends the program\n  line 2: exit()"),
        (
            "layer_norm",
            OTHER,
            "layer_norm takes (x, shape, gain, bias, eps), the stub ",
        ),
        (
            "rms_norm",
            OWN,
            "rms_norm: an assertion of its own fails\n  with x (3, 33) f",
        ),
        ("rms_norm", TURNED, "rms_norm: RuntimeError: "),
        (
            "rms_norm_backward",
            AUTOGRAD,
            "rms_norm_backward: autograd is called: write ",
        ),
        ("layer_norm_backward", AUTOGRAD, "layer_norm_backward: torch's own native_la"),
        ("numpy_rms_norm", BY_TORCH, "numpy_rms_norm: torch's "),
        ("batch_norm", REBOUND, "batch_norm: training, 2 samples in float64, momentum"),
    ],
)
def test_what_is_wrong_comes_first(
    task, code, said, module, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(module, "LIMIT", 3.0 if "end:" in said else 20.0)
    path = tmp_path / "wrong.py"
    path.write_text(code, encoding="utf-8")
    assert module.main([task, str(path)], module.TASKS) == 1
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert out.startswith(said), lines
    assert code != REBOUND or "running_mean is unchanged: " in lines[0]
    if "end:" in said:
        assert lines[1].startswith("  line ") and len(lines) == 2


@pytest.mark.parametrize(
    ("task", "right", "wrong"),
    [
        ("rms_norm", "wide = x", "x.mul_(2)\n    wide = x"),
        ("merged_statistics", "(means - mean)", "means.sub_(mean)"),
        ("soft_cap", "ratio = z.to", "ratio = z.copy_(z.abs()).to"),
        ("numpy_rms_norm", "wide / np", "x.__itruediv__(3) / np"),
        ("deepnorm", "self.alpha * x", "x.mul_(self.alpha)"),
    ],
)
def test_an_input_changed_in_place_is_all_that_is_said(
    task, right, wrong, module, tmp_path, capsys
):
    """What is expected of a changed input would mislead."""
    code = (SNIPPETS / "coding" / f"{task}.py").read_text(encoding="utf-8")
    assert right in code
    path = tmp_path / "in_place.py"
    path.write_text(code.replace(right, wrong, 1), encoding="utf-8")
    assert module.main([task, str(path)], module.TASKS) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(": an input was changed in place")


@pytest.mark.parametrize("name", SUITES)
def test_solutions_pass_and_every_known_wrong_fails(name, module):
    checks, suite = module.TASKS[name].checks(), SUITES[name]
    for check in checks:
        check(suite.JUDGED)
    wrong = variants(suite.JUDGED)
    assert len(module.TASKS[name].rejected) == len(wrong) >= 8
    for variant in wrong:
        made = variant.make()
        assert any(rejects(check, made) for check in checks), variant.__name__


@pytest.mark.parametrize("name", judge.listings())
def test_listings_fail_unless_they_have_no_fault(name, module):
    suite = importlib.import_module(f"tests.snippets.spot_the_bug.test_{name}")
    task = module.TASKS[name]
    checks = task.checks()
    for check in checks:
        check(suite.JUDGED)
    sound = suite.JUDGED is suite.LISTING
    assert task.listing and len(checks) == len(suite.CHECKS) + (not sound)
    assert any(rejects(check, suite.LISTING) for check in checks) != sound


def rejects(check, variant) -> bool:
    try:
        check(variant)
    except Exception:
        return True
    return False


@pytest.fixture(scope="module")
def chinese():
    module = types.ModuleType("chinese_judge")
    sys.modules["chinese_judge"] = module
    exec(judge.text("zh", URL.replace("en", "zh")), vars(module))
    yield module
    del sys.modules["chinese_judge"]


ENGLISH = re.compile(
    r"\b(is|of|in|with|the|expected|and|an?|to|no|not|up)\b|\b[a-z]{3,} [a-z]{3,}\b"
)


def english(module, name, variants) -> list[str]:
    """Messages of a task that are not all Chinese."""
    found = []
    for check in module.TASKS[name].checks():
        for variant in variants:
            try:
                check(variant)
            except AssertionError as wrong:
                found += str(wrong).splitlines()
            except Exception:
                continue
    return [line for line in dict.fromkeys(found) if ENGLISH.search(line)]


@pytest.mark.parametrize("name", [*SUITES, *judge.listings()])
def test_messages_are_chinese_on_the_chinese_page(name, chinese, no_violations):
    room = "spot_the_bug" if name in judge.listings() else "coding"
    suite = importlib.import_module(f"tests.snippets.{room}.test_{name}")
    if room == "coding":
        wrong = [variant.make() for variant in variants(suite.JUDGED)]
    else:
        wrong = [suite.LISTING]
    no_violations(english(chinese, name, wrong))


def test_a_message_without_chinese_is_found(chinese, monkeypatch):
    monkeypatch.delitem(chinese.SAID, "the last token grew")
    listing = importlib.import_module("tests.snippets.spot_the_bug.test_token_norm")
    (line,) = english(chinese, "token_norm", [listing.LISTING])
    assert line == "the last token grew: 前面的 token 变了"


def test_the_judge_of_the_chinese_page_speaks_chinese(chinese, tmp_path, capsys):
    path = tmp_path / "mine.py"

    def say(*given):
        status = chinese.main([*map(str, given)], chinese.TASKS)
        return status, capsys.readouterr().out

    assert say("rms_norm", path)[1].startswith("题面代码已写入 ")
    assert say("rms_norm", path) == (1, "rms_norm 还没有写\n")
    path.write_text(BY_SUM, encoding="utf-8")
    said = say(path)[1]
    assert said.startswith("rms_norm 正确：通过了 5 项检查，这些检查会拒绝 ")
    assert not ENGLISH.search(said.splitlines()[0])
    path.write_text(NARROW, encoding="utf-8")
    assert "，应为 -0.105353（99 项不对，共 99 项）" in say(path)[1]
    assert say("lost", path)[1].startswith("judge.py: 没有 lost 这道题；有的是 ")


@pytest.mark.parametrize("name", SUITES)
def test_a_stub_stands_alone(name, module, folder):
    path = folder / f"{name}.py"
    path.write_text(module.TASKS[name].stub, encoding="utf-8")
    attempt = module.load(path, path.name)
    judged = module.TASKS[name].judged
    assert module.found(attempt, judged)
    for check in module.TASKS[name].checks():
        ((line, _),) = module.problems(attempt, judged, check)
        assert line == f"{judged} is not written yet"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing", "a.py"], "judge.py: no task nothing; there are add_rms_norm, "),
        (["rms_norm"], "judge.py: which file? python judge.py rms_norm my_file.py"),
        (["absent.py"], "judge.py: no such file: absent.py"),
        (["rms_norm", "empty.py"], "judge.py: empty.py defines no rms_norm"),
        (["empty.py"], "judge.py: empty.py defines nothing of add_rms_norm, "),
        (["bad.py"], "judge.py: bad.py does not import: SyntaxError: "),
        (["bad.py", "rms_norm"], "judge.py: bad.py does not import: SyntaxError: "),
    ],
)
def test_one_line_for_what_cannot_be_judged(arguments, said, folder, say):
    (folder / "empty.py").write_text("from math import sqrt as rms_norm\n")
    (folder / "bad.py").write_text("def rms_norm(:\n")
    done = say(*arguments)
    assert done.returncode == 2
    assert done.stdout.startswith(said)
    assert done.stdout.count("\n") == 1 and not done.stderr


def test_a_listing_is_a_task(folder, say):
    done = say("token_norm", "fix.py")
    assert done.stdout.startswith("wrote the stub to fix.py"), done.stderr
    done = say("token_norm", "fix.py")
    assert done.returncode == 1
    assert done.stdout.startswith("TokenNorm: the last token grew: ")
    path = folder / "fix.py"
    path.write_text(path.read_text("utf-8").replace("tuple(range(1, x.ndim))", "(-1,)"))
    done = say("token_norm", "fix.py")
    assert done.returncode == 0
    assert done.stdout.startswith("token_norm is right: it passes 3 checks\n  Why: ")


def test_a_class_goes_before_a_stub_that_is_left(folder, say):
    stub = (SNIPPETS / "coding" / "rms_norm_stub.py").read_text(encoding="utf-8")
    (folder / "both.py").write_text(f"{stub}\n{RMS_NORM}", encoding="utf-8")
    done = say("rms_norm", "both.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_module_that_is_wrong_fails(module, tmp_path, capsys):
    path = tmp_path / "wrong.py"
    for code, old, new in (
        (BATCH_NORM, "wide.detach().var(0)", "wide.detach().var(0, correction=0)"),
        (
            MASKED,
            "torch.where(real, h - h.sum((0, 1)) / n, 0)",
            "h - h.sum((0, 1)) / n",
        ),
        (ADD, "x.dtype), stream", "x.dtype), residual"),
        (ATTENTION, "q, k = self.turned(q), self.turned(k)", "pass"),
        (BY_NUMPY, "dtype=kind", "dtype=x.dtype"),
        (KERNELS, "c = tl.where(inside, h - here, 0.0)", "c = h - here"),
    ):
        assert old in code
        path.write_text(code.replace(old, new), encoding="utf-8")
        assert module.main([str(path)], module.TASKS) == 1
        assert ": " in capsys.readouterr().out


def test_what_a_task_needs_is_told(folder):
    """A file that imports what is not installed."""
    (folder / "triton.py").write_text("raise ModuleNotFoundError(name='triton')")
    (folder / "kernel.py").write_text("import triton\n")
    judging = "import judge, sys\nsys.exit(judge.main(['kernel.py'], judge.TASKS))"
    command = [sys.executable, "-c", judging]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    (folder / "triton.py").unlink()
    assert done.returncode == 2 and done.stdout.count("\n") == 1
    assert "pip install triton, on Linux; no GPU is needed" in done.stdout


def test_a_kernel_is_below_its_decorator(module, tmp_path, capsys):
    path = tmp_path / "bare.py"
    path.write_text("def rms_norm_kernel(*given, **sizes):\n    pass\n")
    assert module.main([str(path)], module.TASKS) == 1
    assert "@triton.jit is missing" in capsys.readouterr().out


def test_tasks_are_listed(say):
    assert say().stdout.startswith("tasks: add_rms_norm batch_norm ")


def test_what_a_success_says_is_the_page_in_its_language():
    assert "要点" in judge.text("zh", URL.replace("en", "zh"))


def test_its_page_is_named_where_the_site_is_not_published():
    assert f"of the page <{URL}interview/coding/>\n" in judge.text("en", URL)
    local = judge.text("en", "http://localhost:8000/en/")
    assert 'of the page "Coding tasks"\n' in local
    assert "localhost" not in local


def test_a_task_without_a_solution_on_its_page(monkeypatch):
    monkeypatch.setattr(judge, "tasks", lambda: ["rms_norm", "lost"])
    judge._learned.cache_clear()
    with pytest.raises(SourceError, match="has no solution of lost"):
        judge._learned("en", URL)
    judge._learned.cache_clear()
