"""What pages compute by hand before anything else."""

import torch
from torch.nn.functional import layer_norm, rms_norm

from snippets.batch_norm_vs_layer_norm.example import standardized
from snippets.low_precision.upcast import right_rms_norm


def test_rows_are_layer_norm_and_columns_batch_norm():
    x = torch.randn(7, 5, dtype=torch.float64)
    torch.testing.assert_close(standardized(x, 1), layer_norm(x, (5,), eps=1e-30))
    batch_norm = torch.nn.functional.batch_norm(x, None, None, training=True, eps=1e-30)
    torch.testing.assert_close(standardized(x, 0), batch_norm)


def test_the_right_norm_keeps_large_rows_and_rounds_once():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        x = (900 * torch.randn(33, 6)).to(dtype).T  # a view
        gain = (1 + torch.rand(33)).to(dtype)
        wanted = rms_norm(x.double(), (33,), gain.double(), 1e-6)
        said = right_rms_norm(x, gain)
        assert said.dtype == dtype and x.isfinite().all()
        off = (said.double() - wanted).abs()
        assert (off <= 2 * torch.finfo(dtype).eps * wanted.abs() + 1e-9).all()
