import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x, gain, bias, y, stride, eps, WIDTH: tl.constexpr, COLUMNS: tl.constexpr
):
    """LayerNorm of one row a program, on a grid of (rows,), of any width.

    x, gain, bias and y point to tensors of one dtype: float16, bfloat16 or
    float32. Rows of x begin stride elements apart, rows of y lie side by side.
    A row has WIDTH entries; COLUMNS is a power of two and may be far smaller:
    no tile is larger than COLUMNS, so the program walks over its row in
    pieces. The mean may be large beside the deviation. Computes in float32 and
    rounds once. Reads and writes nothing outside of the rows.
    """
    raise NotImplementedError
