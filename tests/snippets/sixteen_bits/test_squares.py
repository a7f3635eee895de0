"""Zeros without an error in float16, and what casting up first gives."""

import torch

from snippets.sixteen_bits.squares import narrow, row, wide


def test_the_row_becomes_zero_and_so_does_its_gradient():
    x = row.clone().requires_grad_()
    y = narrow(x)
    assert torch.isinf(row.square()[0]) and not y.any() and not y.isnan().any()
    y.sum().backward()
    assert not x.grad.any() and not x.grad.isnan().any()


def test_cast_up_first():
    exact = row.double() / (row.double().square().mean() + 1e-6).sqrt()
    assert wide(row).dtype == torch.float16
    assert torch.allclose(wide(row).double(), exact, rtol=1e-3)
    calm = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)).half()[:, ::2]
    assert torch.allclose(wide(calm[0]), narrow(calm[0]), rtol=3e-3)


def test_the_table_of_formats():
    assert torch.finfo(torch.float16).max == 65504
    for name, bits in (("float16", 10), ("bfloat16", 7), ("float32", 23)):
        kind = torch.finfo(getattr(torch, name))
        assert kind.eps == 2.0**-bits
        assert name == "float16" or f"{kind.max:.1e}" == "3.4e+38"


def test_large_swallows_small_in_bfloat16():
    total = torch.zeros((), dtype=torch.bfloat16)
    for _ in range(1000):
        total = total + 1
    assert total == 256
