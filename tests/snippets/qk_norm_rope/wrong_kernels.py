"""Kernels that readers might write: the right ones with one thing changed."""

from tests.kernel_gate import variants

CHANGES = {
    "turned_the_other_way": (
        "kernels.py",
        "(a * c - b * s).to(out)",
        "(a * c + b * s).to(out)",
    ),
    "second_half_not_turned": ("kernels.py", "(b * c + a * s).to(out)", "b.to(out)"),
    "norm_of_half_a_head": (
        "kernels.py",
        "square / (2 * HALF) + eps",
        "square / HALF + eps",
    ),
    "gain_of_the_first_half_twice": (
        "kernels.py",
        "second = tl.load(gain + HALF + column",
        "second = tl.load(gain + column",
    ),
    "offsets_in_int32": (
        "kernels.py",
        "offset(row, 2 * HALF)",
        "(row * (2 * HALF))",
    ),
    "slopes_at_offsets_in_int32": (
        "kernels.py",
        "place = offset(row, 2 * HALF)",
        "place = (row * (2 * HALF))",
    ),
    "epsilon_missing": ("kernels.py", "/ (2 * HALF) + eps", "/ (2 * HALF)"),
    "position_is_the_row": ("kernels.py", "row // heads % time", "row % time"),
    "batches_run_on": ("kernels.py", "row // heads % time", "row // heads"),
    "packed_heads_taken_for_contiguous": (
        "heads.py",
        "strides = over_batch if time == 1 else token_stride, head_stride",
        "strides = heads * width, width",
    ),
    "gradient_turned_forwards": (
        "kernels.py",
        "da = turned * c + other * s",
        "da = turned * c - other * s",
    ),
    "statistic_detached": ("kernels.py", "da - a * along", "da - a * (0.0 * along)"),
    "gain_gradient_after_the_gain": (
        "kernels.py",
        "first_total += da * a",
        "first_total += da * first * a",
    ),
    "gain_gradient_of_the_last_tile": (
        "kernels.py",
        "second_total += db * b",
        "second_total = db * b",
    ),
    "zeros_for_the_statistic": (
        "operator.py",
        "    ctx.set_materialize_grads(False)\n",
        "",
    ),
}
WRONG = variants("qk_norm_rope", CHANGES, "qk_norm_rope")
