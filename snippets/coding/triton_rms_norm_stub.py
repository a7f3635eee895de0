import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    x, gain, y, stride, eps, WIDTH: tl.constexpr, COLUMNS: tl.constexpr
):
    """RMSNorm of one row a program, on a grid of (rows,).

    x, gain and y point to tensors of one dtype: float16, bfloat16 or float32.
    Rows of x begin stride elements apart, rows of y lie side by side. A row
    has WIDTH entries; COLUMNS is the next power of two. Computes in float32
    and rounds once. Reads and writes nothing outside of the rows.
    """
    raise NotImplementedError
