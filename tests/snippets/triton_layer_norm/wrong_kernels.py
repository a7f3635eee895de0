"""Kernels that readers might write: the right ones with one thing changed."""

from tests.kernel_gate import OFFSETS_IN_INT32, variants

CHANGES = {
    "padding_counted_in_the_variance": (
        "forward.py",
        "tl.where(inside, value - middle[:, None], 0.0)",
        "value - middle[:, None]",
    ),
    "statistics_in_bfloat16": (
        "forward.py",
        "tl.sum(centred * centred, axis=1)",
        "tl.sum((centred * centred).to(tl.bfloat16).to(tl.float32), axis=1)",
    ),
    "variance_as_difference_of_moments": (
        "forward.py",
        "tl.sum(centred * centred, axis=1) / WIDTH",
        "(tl.sum(value * value, axis=1) / WIDTH - middle * middle)",
    ),
    "unbiased_variance": (
        "forward.py",
        "tl.sum(centred * centred, axis=1) / WIDTH",
        "tl.sum(centred * centred, axis=1) / (WIDTH - 1)",
    ),
    "epsilon_missing": ("forward.py", "/ WIDTH + eps", "/ WIDTH"),
    "wide_epsilon_missing": (
        "forward.py",
        "tl.sum(squares, axis=0) / WIDTH + eps",
        "tl.sum(squares, axis=0) / WIDTH",
    ),
    **OFFSETS_IN_INT32,
    "bias_scaled_by_the_gain": (
        "forward.py",
        "result += shift.to(tl.float32)[None, :]",
        "result += (shift.to(tl.float32) * weight.to(tl.float32))[None, :]",
    ),
    "late_bias_is_the_gain": (
        "forward.py",
        "if COLUMNS > EARLY:\n"
        "        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)\n"
        "        shift = tl.load(bias",
        "if COLUMNS > EARLY:\n"
        "        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)\n"
        "        shift = tl.load(gain",
    ),
    "wide_variance_not_centred": (
        "forward.py",
        "tl.where(column < WIDTH, value - middle, 0.0)",
        "tl.where(column < WIDTH, value, 0.0)",
    ),
    "mean_of_the_slopes_forgotten": (
        "backward.py",
        "(slope - level - unit * along) * scale",
        "(slope - unit * along) * scale",
    ),
    "wide_mean_of_the_slopes_forgotten": (
        "backward.py",
        "(slope - level - unit * scale * along) * scale",
        "(slope - unit * scale * along) * scale",
    ),
    "bias_gradient_times_the_gain": (
        "backward.py",
        "bias_total += slope  # (2)!",
        "bias_total += slope * weight.to(tl.float32)[None, :]",
    ),
    "gain_gradient_not_centred": (
        "backward.py",
        "gain_total += slope * unit\n        bias_total += slope  # (2)!",
        "gain_total += slope * value.to(tl.float32) * scale\n"
        "        bias_total += slope",
    ),
    "gradients_of_the_last_tile": (
        "backward.py",
        "bias_total += slope  # (2)!",
        "bias_total = slope",
    ),
    "second_sum_not_launched": (
        "launch.py",
        "*summed(partial, gain)",
        "*summed(partial[:1], gain), torch.empty_like(gain)",
    ),
    "zeros_for_the_statistic": (
        "operator.py",
        "    ctx.set_materialize_grads(False)\n",
        "",
    ),
}
WRONG = variants("triton_layer_norm", CHANGES, "layer_norm")
