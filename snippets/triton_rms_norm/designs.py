ROWS, WIDTH, PROGRAMS = 16_384, 4096, 2 * 132  # either card has 132 SMs
BANDWIDTHS = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second, datasheets
PARTIALS = 2 * 4 * PROGRAMS / ROWS  # float32, written once and read once

# Bytes per element of x: (of memory, and of the L2 cache beside them).
DESIGNS = {
    "forward": lambda size: (2 * size, 0),  # 1R1W
    "separate kernel": lambda size: (5 * size, 0),  # 4R1W
    "atomics, a row each": lambda size: (3 * size, 4),  # float32 additions
    "lock, a row each": lambda size: (3 * size, 2 * size),  # read, add, write
    "persistent programs": lambda size: (3 * size + PARTIALS, 0),
}
for dtype, size in (("bfloat16", 2), ("float32", 4)):
    print(f"{dtype:19}  bytes  L2 ", *BANDWIDTHS)
    for design, count in DESIGNS.items():
        memory, cached = count(size)
        moved = 1e6 * memory * ROWS * WIDTH
        h100, h200 = (moved / each for each in BANDWIDTHS.values())
        print(f"{design:19} {memory:6.2f} {cached:3} {h100:5.0f} {h200:4.0f}")
