"""The keys of the quiz on kernels: bytes are counted on real tensors."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from triton._C.libtriton import native_specialize_impl
from triton.backends.nvidia.compiler import CUDABackend

from snippets.qk_norm_rope.traffic import BOTH, NORM, ROTATE
from snippets.rms_norm.reference import rms_norm
from snippets.speed.byte_count import ADD_THEN_NORM, FUSED_ADD_NORM, bytes_per_element
from snippets.speed.handwritten import hand_rms_norm
from snippets.triton_rms_norm.launch import tile

ROWS, D = 64, 256


class _Traffic(TorchDispatchMode):
    """Adds up the bytes of the large tensors that each operation reads and writes."""

    moved = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if operation is not torch.ops.aten.detach.default:  # moves nothing
            for leaf in tree_leaves((args, result)):
                if isinstance(leaf, Tensor) and leaf.numel() == ROWS * D:
                    self.moved += leaf.nbytes
        return result


def _inputs() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    x, gain = torch.randn(ROWS, D), 0.5 + torch.rand(D)
    return x.bfloat16().requires_grad_(), gain.bfloat16().requires_grad_()


def fused_forward_and_backward() -> dict[str, bool]:
    x, gain = _inputs()
    dy = torch.ones_like(x)
    with _Traffic() as traffic:
        y = F.layer_norm(x, (D,), gain, torch.zeros_like(gain), 1e-5)
        y.backward(dy)
    found = traffic.moved / x.numel()
    values = {"eight": 8, "ten": 10, "twelve": 12, "sixteen": 16}
    return {name: found == value for name, value in values.items()}


def rmsnorm_in_separate_operations() -> dict[str, bool]:
    x, gain = (each.detach() for each in _inputs())
    with _Traffic() as traffic:
        hand_rms_norm(x, gain)
    found = traffic.moved / x.numel()
    values = {"four": 4, "twelve": 12, "twenty": 20, "thirty-six": 36}
    return {name: found == value for name, value in values.items()}


def kept_for_the_backward_pass() -> dict[str, bool]:
    x, gain = _inputs()
    kept = {}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.numel() == x.numel():
            kept[tensor.data_ptr()] = tensor  # one storage counts once
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        hand_rms_norm(x, gain)
    found = sum(tensor.nbytes for tensor in kept.values()) / x.numel()
    values = {"nothing": 0, "two": 2, "four": 4, "six": 6}
    return {name: found == value for name, value in values.items()}


def residual_addition_fused() -> dict[str, bool]:
    apart, fused = bytes_per_element(ADD_THEN_NORM), bytes_per_element(FUSED_ADD_NORM)
    saved = 1 - fused / apart
    values = {"nothing": 0, "fifth": 1 / 5, "two-fifths": 2 / 5, "half": 1 / 2}
    return {name: abs(saved - value) < 1e-9 for name, value in values.items()}


def one_summand_for_each_row() -> dict[str, bool]:
    x, gain = _inputs()
    dy = torch.randn(ROWS, D).bfloat16()

    def first_kernel(x: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
        wide, g = x.float().requires_grad_(), gain.detach().float()
        (dx,) = torch.autograd.grad(rms_norm(wide, g), wide, dy.float())
        return dx.bfloat16(), dy.float() * rms_norm(wide.detach())  # the buffer

    dx, summands = first_kernel(x.detach(), dy)
    second_kernel = summands.sum(0)
    (dgain,) = torch.autograd.grad(rms_norm(x.detach().float(), gain), gain, dy.float())
    assert torch.allclose(second_kernel, dgain.float(), rtol=1e-2, atol=1e-2)
    moved = (x, dy, dx, summands, summands)  # the buffer twice: written, read
    found = sum(tensor.nbytes for tensor in moved) / x.numel()
    values = {"six": 6, "eight": 8, "ten": 10, "fourteen": 14}
    return {name: found == value for name, value in values.items()}


def row_too_long_for_the_chip() -> dict[str, bool]:
    torch.manual_seed(0)
    row = 3 + torch.randn(1024, dtype=torch.float64)
    reads = 0

    def chunks():
        nonlocal reads
        reads += 1  # the whole row once more from memory
        return row.split(128)

    def rms() -> Tensor:
        mean_square = sum(c.square().sum() for c in chunks()) / 1024
        return torch.cat([c / mean_square.sqrt() for c in chunks()])

    def welford() -> Tensor:
        count, mean, m2 = 0, 0.0, 0.0
        for c in chunks():  # the rule of Chan, Golub and LeVeque
            delta, total = c.mean() - mean, count + len(c)
            m2 += (c - c.mean()).square().sum() + delta**2 * count * len(c) / total
            mean, count = mean + delta * len(c) / total, total
        return torch.cat([(c - mean) / (m2 / count).sqrt() for c in chunks()])

    assert torch.allclose(rms(), F.rms_norm(row, (1024,), eps=0))
    rms_reads, reads = reads, 0
    assert torch.allclose(welford(), F.layer_norm(row, (1024,), eps=0))
    found = (rms_reads, reads)
    values = {
        "one-one": (1, 1),
        "one-two": (1, 2),
        "two-two": (2, 2),
        "two-three": (2, 3),
    }
    return {name: found == value for name, value in values.items()}


def two_parts_of_a_row() -> dict[str, bool]:
    row = torch.tensor([1.0, 2.0, 6.0, 7.0, 9.0, 4.0, 8.0, 11.0])

    def squares(part: Tensor) -> float:
        """Sum of squared distances from the part's own mean."""
        return (part - part.mean()).square().sum().item()

    a, b = row[:3], row[3:]
    apart = (b.mean() - a.mean()).item() ** 2
    rules = {
        "add": squares(a) + squares(b),
        "add-and-distance": squares(a) + squares(b) + apart,
        "add-and-weighted-distance": squares(a) + squares(b) + apart * 3 * 5 / 8,
        "average": (3 * squares(a) + 5 * squares(b)) / 8,
    }
    return {name: abs(value - squares(row)) < 1e-4 for name, value in rules.items()}


def norms_that_cost_nothing() -> dict[str, bool]:
    other, norms = 95.0, 5.0  # of a step of 100
    ratio = (other + norms) / (other + norms / 1e12)
    values = {"slightly": 1.053, "half": 1.5, "twenty": 20, "no-bound": 1e12}
    return {name: abs(ratio / value - 1) < 0.01 for name, value in values.items()}


def padded_columns_of_a_layernorm() -> dict[str, bool]:
    row = 5 + torch.randn(96, generator=torch.Generator().manual_seed(0)).double()
    block = F.pad(row, (0, 128 - 96))
    mean = block.sum() / 96
    found = (block - mean).square().sum() / 96 - row.var(correction=0)
    sizes = {
        "nothing": 0,
        "third": mean.square() / 3,
        "quarter": mean.square() / 4,
        "spread": row.var(correction=0) / 3,
    }
    return {name: abs(found - size).item() < 1e-9 for name, size in sizes.items()}


def block_for_a_row_of_5120() -> dict[str, bool]:
    columns = tile(5120)["COLUMNS"]  # of the kernel that holds whole rows
    sizes = {"exact": 5120, "multiple": 5632, "power": 8192, "smaller": 4096}
    return {name: columns == size for name, size in sizes.items()}


def fused_kernel_that_skips_a_rounding() -> dict[str, bool]:
    x, branch = torch.randn(2, ROWS, D, generator=torch.Generator().manual_seed(0))
    x, branch = x.bfloat16(), branch.bfloat16()
    stream = x + branch  # computed in float32, rounded once
    normed = rms_norm(stream)
    wide = x.float() + branch.float()
    same_stream = torch.equal(wide.bfloat16(), stream)
    same_normed = torch.equal(rms_norm(wide).bfloat16(), normed)
    return {
        "neither": same_stream and same_normed,
        "stream": same_normed and not same_stream,
        "normed": same_stream and not same_normed,
        "both": not same_stream and not same_normed,
    }


def gain_gradient_by_atomics() -> dict[str, bool]:
    torch.manual_seed(0)
    x, dy, gain = torch.randn(ROWS, D), torch.randn(ROWS, D), torch.rand(D)

    def backward(order: Tensor) -> tuple[Tensor, Tensor]:
        """The gain's gradient, rows in the order of their arrival, and dx."""
        total, dx = torch.zeros(D), torch.empty(ROWS, D)
        for row in order:
            total += dy[row] * rms_norm(x[row])
            wide = x[row].clone().requires_grad_()
            (dx[row],) = torch.autograd.grad(rms_norm(wide, gain), wide, dy[row])
        return total, dx

    (one, dx), (two, dx_again) = (
        backward(torch.arange(ROWS)),
        backward(torch.randperm(ROWS)),
    )
    gain_differs, input_differs = not one.equal(two), not dx.equal(dx_again)
    close = torch.allclose(one, two, rtol=1e-4, atol=1e-4)
    return {
        "nothing": not (gain_differs or input_differs),
        "bits": gain_differs and close and not input_differs,
        "input": input_differs and not gain_differs,
        "rows": not close,
    }


def qk_norm_and_rope_in_one_kernel() -> dict[str, bool]:
    x = torch.empty(4, 16, 8, 64, dtype=torch.bfloat16)
    normed, rotated = torch.empty_like(x), torch.empty_like(x)
    apart = [x, normed, normed, rotated]  # read, written; read, written
    fused = [x, rotated]
    saved = 1 - sum(t.nbytes for t in fused) / sum(t.nbytes for t in apart)
    assert abs(saved - 1 + BOTH / (NORM + ROTATE)) < 0.01  # with tables: nearly
    shares = {"quarter": 1 / 4, "half": 1 / 2, "two-thirds": 2 / 3, "none": 0}
    return {name: saved == share for name, share in shares.items()}


def row_offset_in_32_bits() -> dict[str, bool]:
    def wrong(row: int) -> bool:
        narrow = torch.tensor(row, dtype=torch.int32) * torch.tensor(
            8192, dtype=torch.int32
        )
        return narrow.item() != row * 8192

    rows = {"bytes": 2**17, "signed": 2**18, "unsigned": 2**19, "rows": 2**31}
    return {
        name: row < 2**31 and wrong(row) and not wrong(row - 1)
        for name, row in rows.items()
    }


def tanh_from_an_exponential() -> dict[str, bool]:
    x = torch.tensor(1e-4)
    exponential = torch.exp(2 * x)
    found = (1 - 2 / (exponential + 1)).item()
    error = abs(found / math.tanh(x.item()) - 1)
    return {
        "all": error < 1e-6,
        "half": 1e-5 < error < 1e-2,
        "zero": found == 0,
        "overflow": bool(exponential.isinf()),
    }


def residual_gradient_fused() -> dict[str, bool]:
    x, dy, below = torch.randn(
        3, ROWS, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    x.requires_grad_()
    y = rms_norm(x)
    (through,) = torch.autograd.grad(y, x, dy, retain_graph=True)  # first kernel
    total = through + below  # second kernel
    (fused,) = torch.autograd.grad([y, x], x, [dy, below])
    assert torch.allclose(fused, total)
    apart = [x, dy, through, through, below, total]
    together = [x, dy, below, total]
    saved = 1 - len(together) / len(apart)
    shares = {"fifth": 1 / 5, "third": 1 / 3, "half": 1 / 2, "nothing": 0}
    return {name: abs(saved - share) < 1e-9 for name, share in shares.items()}


def compilations_for_token_counts() -> dict[str, bool]:
    def key(rows: int):
        return native_specialize_impl(CUDABackend, rows, False, True, True)

    found = len({key(rows) for rows in range(1, 4097)})
    counts = {"once": 1, "twice": 2, "three": 3, "each": 4096}
    return {name: found == count for name, count in counts.items()}
