"""Kernels are launched where their tensors lie, not on the device that is current.

Triton launches on the current device. Two things hold: every function of the snippets
that launches, or calls one that does, is called behind a guard; and an operator whose
tensors lie on a second GPU (they have no memory) launches there.
"""

import ast
from contextlib import nullcontext
from importlib import import_module

import pytest
import torch
from torch._subclasses import FakeTensorMode
from triton.runtime.interpreter import InterpretedFunction

from scripts.site.reading.source import ROOT

# Every function, read ---------------------------------------------------------

GUARDS = ("torch.cuda.device_of(", "torch.cuda.device(")


def _calls(node, guarded: bool):
    """Each call below a node, and whether it stands in a guard."""
    if isinstance(node, ast.With):
        guards = (ast.unparse(item.context_expr) for item in node.items)
        guarded |= any(guard.startswith(GUARDS) for guard in guards)
    if isinstance(node, ast.Call):
        yield node, guarded
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, guarded)


class _Module:
    """A module's functions, and the full names of what it imports or defines."""

    def __init__(self, name: str, text: str) -> None:
        tree = ast.parse(text)
        self.functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        self.names = {f.name: f"{name}.{f.name}" for f in self.functions}
        self.kernels = set()
        for function in self.functions:
            decorated = map(ast.unparse, function.decorator_list)
            if any("triton.jit" in each for each in decorated):
                self.kernels.add(f"{name}.{function.name}")
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    self.names[alias.asname or alias.name] = full

    def open_calls(self, function, launching: set[str], kernels: set[str]):
        """Launches, and calls of what launches, that no guard encloses."""
        for call, guarded in _calls(function, guarded=False):
            launch = isinstance(call.func, ast.Subscript)
            name = call.func.value if launch else call.func
            full = isinstance(name, ast.Name) and self.names.get(name.id)
            if not guarded and full in (kernels if launch else launching):
                yield call


def unguarded(texts: dict[str, str]) -> list[str]:
    """'module.function' that launch without a guard, unless all callers have one.

    A module's own lines may launch: they make their tensors on the current device.
    """
    modules = [_Module(*each) for each in texts.items()]
    kernels = set().union(*(module.kernels for module in modules))
    launching, before = set(), None
    while launching != before:
        before = set(launching)
        for module in modules:
            for function in module.functions:
                full = module.names[function.name]
                if full not in kernels and any(
                    module.open_calls(function, launching, kernels)
                ):
                    launching.add(full)
    called = {
        module.names.get(call.func.id)
        for module in modules
        for function in module.functions
        for call, _ in _calls(function, guarded=False)
        if isinstance(call.func, ast.Name)
    }
    return sorted(launching - called)


def test_every_launch_of_the_snippets_is_guarded(no_violations):
    texts = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text("utf-8")
        for path in (ROOT / "snippets").rglob("*.py")
    }
    assert sum("triton.jit" in text for text in texts.values()) > 10
    no_violations(f"{found}: no torch.cuda.device_of" for found in unguarded(texts))


LAUNCH = """
@triton.jit
def kernel(x): ...
def launch(x):
    kernel[(1,)](x)
"""
GUARD = "with torch.cuda.device_of(x):"


@pytest.mark.parametrize(
    ("operator", "wanted"),
    [
        ("", ["launch.launch"]),
        ("launch(x)", ["operator.run"]),
        (f"{GUARD} launch(x)", []),
        ("with torch.no_grad(): launch(x)", ["operator.run"]),
        (f"{GUARD} pass\n    launch(x)", ["operator.run"]),
        ("kernel[(1,)](x)", ["launch.launch", "operator.run"]),
        (f"{GUARD} kernel[(1,)](launch(x))", []),
    ],
)
def test_planted_launches(operator, wanted):
    code = f"from launch import kernel, launch\ndef run(x):\n    {operator or 'pass'}\n"
    assert unguarded({"launch": LAUNCH, "operator": code}) == wanted


# Every operator, called -------------------------------------------------------

ROWS, HALF = 5, 4
WIDTHS = (8, 9000, 70_000)  # narrow rows, whole ones, pieces
CASES = [
    ("triton_rms_norm", "rms_norm", "x g"),
    ("triton_rms_norm", "rms_norm_backward", "x x g r"),
    ("triton_layer_norm", "layer_norm", "x g g"),
    ("triton_layer_norm", "layer_norm_backward", "x x g r r"),
    ("fused_residual", "add_rms_norm", "x x g"),
    ("fused_residual", "add_rms_norm_backward", "x x x g r"),
]
NARROW = [  # without kernels for wide rows
    ("qk_norm_rope", "qk_norm_rope", "h g t t"),
    ("qk_norm_rope", "qk_norm_rope_backward", "h h g t t r"),
    ("memory_bound", "soft_cap", "x"),
    ("memory_bound", "soft_cap_backward", "x x"),
]


@pytest.fixture
def launched(monkeypatch):
    """(device in hand, devices of the tensors) of each launch; GPU 0 is current."""
    found, current = [], [0]

    def exchange(index: int) -> int:
        before = current[0]
        current[0] = index if index >= 0 else before
        return before

    def run(self, *args, grid, warmup, **options):
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        found.append((current[0], {tensor.get_device() for tensor in tensors}))

    class Properties:
        multi_processor_count = 132

    monkeypatch.setattr(torch.cuda, "_exchange_device", exchange)
    monkeypatch.setattr(torch.cuda, "_maybe_exchange_device", exchange)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: Properties)
    monkeypatch.setattr(InterpretedFunction, "run", run)
    yield found
    assert current == [0]


def call(folder: str, name: str, given: str, width: int) -> None:
    """An operator's own code, on tensors of GPU 1."""
    module = "soft_cap" if folder == "memory_bound" else "operator"
    module = import_module(f"snippets.{folder}.{module}")
    operator = getattr(module, f"{name}_op", None) or getattr(module, name)
    shapes = {
        "x": (ROWS, width),
        "h": (1, ROWS, 2, width),
        "g": (width,),
        "t": (ROWS, width // 2),
        "r": (2 * ROWS if "h" in given else ROWS,),
    }
    with FakeTensorMode():
        made = [torch.empty(shapes[each], device="cuda:1") for each in given.split()]
        more = () if "backward" in name else (1e-6,)
        more = (30.0,) if folder == "memory_bound" else more
        operator.__wrapped__(*made, *more)


@pytest.mark.parametrize(
    ("folder", "name", "given", "width"),
    [(*case, width) for case in CASES for width in WIDTHS]
    + [(*case, 8) for case in NARROW],
)
def test_launched_where_the_tensors_lie(launched, folder, name, given, width):
    call(folder, name, given, width)
    assert launched
    assert all(where == 1 and own == {1} for where, own in launched)


@pytest.mark.parametrize(("folder", "name", "given"), CASES + NARROW)
def test_without_the_guard_it_is_seen(launched, folder, name, given, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_of", lambda _: nullcontext())
    call(folder, name, given, 8)
    assert {where for where, _ in launched} == {0}
