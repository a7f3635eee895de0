ROWS, WIDTH, SIZE = 16_384, 4096, 2  # bfloat16
PROGRAMS = 2 * 132  # of the backward pass: either card has 132 SMs
BANDWIDTHS = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second, datasheets


def moved(tensors, statistics, vectors, partials):
    """Bytes of a kernel that holds whole rows.

    tensors of x's size, statistics in float32 a row, vectors of WIDTH such
    as the gain, partials in float32 a program, written and read again.
    """
    large = tensors * ROWS * WIDTH * SIZE
    small = statistics * ROWS * 4 + vectors * WIDTH * SIZE
    return large + small + partials * 2 * PROGRAMS * WIDTH * 4


passes = {
    "forward": (moved(2, 1, 1, 0), moved(2, 2, 2, 0)),
    "backward": (moved(3, 1, 2, 1), moved(3, 2, 3, 2)),
}
UNITS = {"MB": 1e6} | {f"µs, {k}": v / 1e6 for k, v in BANDWIDTHS.items()}
print("                   RMSNorm  LayerNorm   ratio")
for name, (rms, layer) in passes.items():
    for unit, each in UNITS.items():
        print(
            f"{name:9} {unit:8} {rms / each:9.2f} {layer / each:10.2f} "
            f"{layer / rms:7.4f}"
        )
