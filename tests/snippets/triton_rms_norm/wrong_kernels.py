"""Kernels that readers might write: the right ones with one thing changed."""

from tests.kernel_gate import OFFSETS_IN_INT32, variants

HOLD = (  # the line that both versions of the statistic share
    "scale = tl.rsqrt(tl.sum(value * value, axis=1) / WIDTH + eps)"
)
CHANGES = {
    "mask_lets_padding_in": (
        "forward.py",
        "column[None, :], mask=inside, other=0.0",
        "column[None, :], mask=inside, other=1.0",
    ),
    "mean_over_the_padded_width": (
        "forward.py",
        "axis=1) / WIDTH",
        "axis=1) / COLUMNS",
    ),
    "statistics_in_bfloat16": (
        "forward.py",
        "tl.sum(value * value, axis=1)",
        "tl.sum((value * value).to(tl.bfloat16).to(tl.float32), axis=1)",
    ),
    "epsilon_missing": ("forward.py", "/ WIDTH + eps", "/ WIDTH"),
    "wide_epsilon_missing": (
        "forward.py",
        "tl.sum(squares, axis=0) / WIDTH + eps",
        "tl.sum(squares, axis=0) / WIDTH",
    ),
    "epsilon_outside_the_root": (
        "forward.py",
        HOLD,
        "scale = 1 / (tl.sqrt(tl.sum(value * value, axis=1) / WIDTH) + eps)",
    ),
    "offsets_in_int32": ("forward.py", "row.to(tl.int64) * stride", "row * stride"),
    **OFFSETS_IN_INT32,
    "heads_packed_without_gaps": (
        "forward.py",
        "offset(row // heads, token_stride // ALIGN)",
        "offset(row // heads, heads * head_stride // ALIGN)",
    ),
    "alignment_of_tokens_only": (
        "rows.py",
        "gcd(16, *strides)",
        "gcd(16, strides[0])",
    ),
    "alignment_assumed": ("rows.py", "gcd(16, *strides)", "16"),
    "wide_rows_lose_their_tail": (
        "forward.py",
        "for first in tl.range(0, WIDTH, COLUMNS)",
        "for first in tl.range(0, WIDTH - COLUMNS, COLUMNS)",
    ),
    "last_rows_unwritten": (
        "launch.py",
        'triton.cdiv(rows, shape["ROWS"]),)\n        rms_norm_forward',
        'max(1, rows // shape["ROWS"]),)\n        rms_norm_forward',
    ),
    "gain_of_one_program_only": (
        "backward.py",
        "(row < programs)",
        "(row < 1)",
    ),
    "partial_sums_in_bfloat16": (
        "launch.py",
        "dtype=torch.float32)\n        rms_norm_backward[",
        "dtype=torch.bfloat16)\n        rms_norm_backward[",
    ),
    "gain_gradient_without_the_norm": (
        "backward.py",
        "total += slope * unit",
        "total += slope * value.to(tl.float32)",
    ),
    "gain_gradient_of_the_last_tile": (
        "backward.py",
        "total += slope * unit",
        "total = slope * unit",
    ),
    "late_gain_of_the_first_column": (
        "backward.py",
        "if COLUMNS > EARLY:  # (3)!\n            weight = tl.load(gain + column",
        "if COLUMNS > EARLY:\n            weight = tl.load(gain + 0 * column",
    ),
    "late_gain_of_the_first_column_forward": (
        "forward.py",
        "if COLUMNS > EARLY:\n        weight = tl.load(gain + column",
        "if COLUMNS > EARLY:\n        weight = tl.load(gain + 0 * column",
    ),
    "gain_left_out_of_dx": (
        "backward.py",
        "slope *= weight.to(tl.float32)[None, :]",
        "slope *= 1.0",
    ),
    "statistic_detached": ("backward.py", "unit * along", "unit * (0.0 * along)"),
    "projection_not_averaged": (
        "backward.py",
        "along = tl.sum(slope * unit, axis=1)[:, None] / WIDTH",
        "along = tl.sum(slope * unit, axis=1)[:, None]",
    ),
    "wide_gradient_detached": (
        "backward.py",
        'slope *= piece(gain, column, WIDTH, "")\n'
        "        result = (slope - unit * along) * scale",
        'slope *= piece(gain, column, WIDTH, "")\n        result = slope * scale',
    ),
    "wide_rows_back_from_a_wrong_piece": (
        "forward.py",
        "last = (WIDTH - 1) // COLUMNS * COLUMNS",
        "last = (WIDTH + COLUMNS - 1) // COLUMNS * COLUMNS",
    ),
    "zeros_for_the_statistic": (
        "operator.py",
        "    ctx.set_materialize_grads(False)  # (1)!\n",
        "",
    ),
}


WRONG = variants("triton_rms_norm", CHANGES, "rms_norm")
