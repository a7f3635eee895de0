"""Kernels that readers might write: the right ones with one thing changed."""

from tests.kernel_gate import variants

CHANGES = {
    "old_stream_returned": (
        "kernels.py",
        "total = left.to(tl.float32) + right.to(tl.float32)",
        "total = left.to(tl.float32) + 0.0 * right.to(tl.float32)",
    ),
    "norm_of_the_branch_alone": (
        "kernels.py",
        "value = total.to(tl.float32)",
        "value = right.to(tl.float32)",
    ),
    "sum_in_bfloat16": (
        "kernels.py",
        "total = left.to(tl.float32) + right.to(tl.float32)",
        "total = (left + right).to(tl.bfloat16)",
    ),
    "norm_before_rounding": (
        "kernels.py",
        "value = total.to(tl.float32)",
        "value = left.to(tl.float32) + right.to(tl.float32)",
    ),
    "offsets_in_int32": (
        "kernels.py",
        "offset(row, WIDTH)[:, None]",
        "(row * WIDTH)[:, None]",
    ),
    "branch_at_offsets_in_int32": (
        "kernels.py",
        "(offset(row, branch_stride // ALIGN) * ALIGN)[:, None]",
        "(row * branch_stride)[:, None]",
    ),
    "epsilon_missing": ("kernels.py", "/ WIDTH + eps", "/ WIDTH"),
    "stream_gradient_dropped": (
        "kernels.py",
        "* scale + below",
        "* scale + 0.0 * below",
    ),
    "stream_gradient_normed_too": (
        "kernels.py",
        "(slope - unit * along) * scale + below.to(tl.float32)",
        "(slope - unit * along + below.to(tl.float32)) * scale",
    ),
    "gain_gradient_of_the_last_tile": (
        "kernels.py",
        "total += slope * unit",
        "total = slope * unit",
    ),
    "wide_stream_gradient_dropped": (
        "launch.py",
        "return backward(dy, stream, gain, rstd, dstream)",
        "return backward(dy, stream, gain, rstd)",
    ),
    "wide_gradient_rounded_twice": (
        "launch.py",
        "return backward(dy, stream, gain, rstd, dstream)",
        "dx, dgain = backward(dy, stream, gain, rstd)\n"
        "        return dx.add_(dstream), dgain",
    ),
    "branch_gradient_missing": (
        "operator.py",
        "return dx, dx, dgain, None",
        "return dx, torch.zeros_like(dx), dgain, None",
    ),
    "zeros_for_the_statistic": (
        "operator.py",
        "    ctx.set_materialize_grads(False)\n",
        "",
    ),
}
WRONG = variants("fused_residual", CHANGES, "add_rms_norm")
