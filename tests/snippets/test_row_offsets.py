"""No kernel of the snippets finds its row with 32 bits.

A program's number is an int32. Times the length of a row it is an offset in elements,
and passes 2 ** 31 in tensors that fit into a GPU: it has to be widened before.
"""

import ast

import pytest
import torch

from scripts.site.reading.source import ROOT
from snippets.coding.triton_layer_norm import layer_norm_kernel
from snippets.coding.triton_rms_norm import rms_norm_kernel
from tests.kernel_checks import far, far_rows
from tests.wrong import variant

WIDE = (".to", "tl.cast", "offset", "row_start")  # what gives an int64
NUMBERS = {"ROWS", "COLUMNS"}  # times these a program's number still counts rows
FEW = "partial"  # has one row a program, and there are a few hundred of them


def _called(node, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(name)


def _narrow(node, names: set[str]) -> bool:
    """Whether a value is an int32 that grows with the program's number."""
    if any(_called(node, name) for name in WIDE):
        return False
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return False  # it grows no further than the divisor
    if _called(node, "tl.program_id"):
        return True
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Call | ast.Compare):
        return _called(node, "tl.range") and any(_narrow(a, names) for a in node.args)
    return any(_narrow(child, names) for child in ast.iter_child_nodes(node))


def violations(text: str, name: str = "kernel") -> list[str]:
    """'name:line: product' for each offset that a kernel computes in 32 bits."""
    found = []
    for kernel in ast.walk(ast.parse(text)):
        if not isinstance(kernel, ast.FunctionDef) or not any(
            "triton.jit" in ast.unparse(d) for d in kernel.decorator_list
        ):
            continue
        names: set[str] = set()
        for node in ast.walk(kernel):
            pairs = []
            if isinstance(node, ast.Assign):
                (target,), value = node.targets, node.value
                both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                pairs = [(target, value)]
                if both:
                    pairs = zip(target.elts, value.elts, strict=True)
            elif isinstance(node, ast.For):
                pairs = [(node.target, node.iter)]
            for target, value in pairs:
                if isinstance(target, ast.Name) and _narrow(value, names):
                    names.add(target.id)
        few = {
            id(product)
            for total in ast.walk(kernel)
            if isinstance(total, ast.BinOp) and FEW in ast.unparse(total).split()
            for product in ast.walk(total)
        }
        for node in ast.walk(kernel):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
                continue
            for one, other in ((node.left, node.right), (node.right, node.left)):
                counts = isinstance(other, ast.Name) and other.id in NUMBERS
                if _narrow(one, names) and not counts and id(node) not in few:
                    found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    return found


def test_snippets(no_violations):
    files = sorted((ROOT / "snippets").rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    kernels = [path for path, text in texts.items() if "tl.program_id" in text]
    assert len(kernels) > 10
    no_violations(
        found
        for path in kernels
        for found in violations(texts[path], str(path.relative_to(ROOT)))
    )


KERNEL = "@triton.jit\ndef k(x, y, stride, WIDTH: tl.constexpr, ROWS: tl.constexpr):\n"


@pytest.mark.parametrize(
    "body",
    [
        "tl.load(x + tl.program_id(0) * WIDTH)",
        "row = tl.program_id(0)\n tl.load(x + row * stride)",
        "row = tl.program_id(0) * ROWS\n tl.load(x + stride * row)",
        "row, c = tl.program_id(0), 0\n tl.load(x + row // 2 * stride)",
        "p = tl.program_id(0)\n for row in tl.range(p * ROWS, 9):\n  x + row * WIDTH",
    ],
)
def test_bad(body):
    assert len(violations(f"{KERNEL} {body}\n")) == 1


@pytest.mark.parametrize(
    "body",
    [
        "tl.load(x + tl.program_id(0).to(tl.int64) * WIDTH)",
        "row = tl.program_id(0) * ROWS\n tl.load(x + offset(row, stride))",
        "p = tl.program_id(0)\n tl.store(partial + p * WIDTH, 0)",
    ],
)
def test_good(body):
    assert violations(f"{KERNEL} {body}\n") == []


CAST = "tl.program_id(0).to(tl.int64) => tl.program_id(0)"


def _far(kernel, vectors) -> bool:
    """Whether the kernel reads rows that are 2 ** 30 elements apart."""
    x, y = far_rows(), far(3, 64)
    ones = torch.ones(64, dtype=torch.bfloat16)
    rest = [ones, 0 * ones][:vectors]
    kernel[(3,)](x, *rest, y, x.stride(0), 1e-6, WIDTH=64, COLUMNS=64)
    wide = x.double()
    if vectors == 2:
        wide = wide - wide.mean(1, keepdim=True)
    wanted = wide / (wide.square().mean(1, keepdim=True) + 1e-6).sqrt()
    return torch.allclose(y.double(), wanted, rtol=2**-6, atol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "vectors"), [(rms_norm_kernel, 1), (layer_norm_kernel, 2)]
)
@pytest.mark.filterwarnings("ignore")
def test_far_rows(kernel, vectors):
    assert _far(kernel, vectors)
    narrow = variant(kernel, "offsets_in_int32", CAST)
    assert not _far(narrow, vectors)
