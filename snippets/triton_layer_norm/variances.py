import triton
import triton.language as tl


@triton.jit
def merge(mean, spread, count, other_mean, other_spread, other_count):
    """Count, mean and summed squared distance of two parts together."""
    total = count + other_count
    share = tl.where(total > 0, other_count / tl.maximum(total, 1.0), 0.0)
    step = other_mean - mean
    spread += other_spread + step * step * count * share
    return mean + step * share, spread, total


@triton.jit
def variance_of_row(x, result, width, COLUMNS: tl.constexpr, WAY: tl.constexpr):
    """result[row], the variance of a row of x in one of four ways."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, COLUMNS)
    inside = column < width
    value = tl.load(x + row * width + column, mask=inside, other=0.0)
    if WAY == "merged":
        count = tl.where(inside, 1.0, 0.0)
        parts = (value, tl.zeros_like(value), count)
        _, spread, _ = tl.reduce(parts, 0, merge)
    else:
        middle = tl.sum(value, axis=0) / width
        if WAY == "moments":
            spread = tl.sum(value * value, axis=0) - width * middle * middle
        else:
            centred = value - middle
            if WAY == "centred":
                centred = tl.where(inside, centred, 0.0)
            spread = tl.sum(centred * centred, axis=0)
    tl.store(result + row, spread / width)
