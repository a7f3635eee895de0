import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x, gain, bias, y, stride, eps, WIDTH: tl.constexpr, COLUMNS: tl.constexpr
):
    """LayerNorm of one row a program, for rows of any width.

    As before, with a bias in the dtype of the gain. COLUMNS is a power of two
    and may be far smaller than WIDTH: no tile is larger than COLUMNS, so the
    program walks over its row in pieces. The mean may be large beside the
    deviation.
    """
    raise NotImplementedError
