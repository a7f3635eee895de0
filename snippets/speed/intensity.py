from snippets.speed.byte_count import FUSED_NORM, bytes_per_element

# Floating-point operations per element of x, as the formulas state them.
LAYER_NORM_FLOPS = {
    "sum for the mean": 1,
    "subtract the mean": 1,
    "square": 1,
    "sum for the variance": 1,
    "multiply by rstd": 1,
    "multiply by the gain": 1,
    "add the bias": 1,
}
RMS_NORM_FLOPS = {
    "square": 1,
    "sum": 1,
    "multiply by rsqrt": 1,
    "multiply by the gain": 1,
}


def intensity(flops: dict[str, int], dtype: str = "bfloat16") -> float:
    """Floating-point operations per byte moved by a fused forward."""
    return sum(flops.values()) / bytes_per_element(FUSED_NORM, dtype)


def ridge(flops_per_second: float, bytes_per_second: float) -> float:
    """The intensity from which arithmetic, not memory, sets the time."""
    return flops_per_second / bytes_per_second


def traffic(rows: int, d: int, size: int, centred: bool) -> int:
    """Every byte of a fused forward on (rows, d) at ``size`` bytes each.

    x read and y written, gain (and bias) read, and one float32 a row kept
    for the backward pass: rstd, with ``centred`` also the mean.
    """
    parameters, statistics = (2, 2) if centred else (1, 1)
    return size * (2 * rows * d + parameters * d) + 4 * statistics * rows


RIDGES = {  # float32 outside the tensor cores; datasheets
    "H100": ridge(67e12, 3.35e12),
    "H200": ridge(67e12, 4.8e12),
}
print(f"LayerNorm: {intensity(LAYER_NORM_FLOPS):.2f} FLOP per byte")
print(f"RMSNorm:   {intensity(RMS_NORM_FLOPS):.2f} FLOP per byte")
for card, found in RIDGES.items():
    print(f"ridge of an {card}: {found:.0f} FLOP per byte")
more = traffic(16384, 4096, 2, True) / traffic(16384, 4096, 2, False)
print(f"bytes, LayerNorm / RMSNorm at (16384, 4096): {more:.4f}")
