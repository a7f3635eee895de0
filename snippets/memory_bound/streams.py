import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def add_streams(
    a, b, c, y, z, size,
    READS: tl.constexpr, WRITES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y = z = a + b + c, as many of them as READS and WRITES say."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    total = tl.load(a + place, mask=inside, other=0.0).to(tl.float32)
    if READS > 1:
        total += tl.load(b + place, mask=inside, other=0.0).to(tl.float32)
    if READS > 2:
        total += tl.load(c + place, mask=inside, other=0.0).to(tl.float32)
    total = total.to(y.dtype.element_ty)
    tl.store(y + place, total, mask=inside)
    if WRITES > 1:
        tl.store(z + place, total, mask=inside)
