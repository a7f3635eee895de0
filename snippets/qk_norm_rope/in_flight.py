BANDWIDTHS = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second, datasheets
SMS, LATENCY = 132, 4e-7  # of both; seconds
WARPS, PROGRAMS = 64, 32  # what an SM of a Hopper GPU holds, at most

for card, bandwidth in BANDWIDTHS.items():
    print(f"{card} needs {bandwidth * LATENCY / SMS / 1024:4.1f} KiB an SM")
print("width  heads  warps  bytes a load  programs  KiB an SM")
for width in (64, 128, 256):
    for heads, warps in ((1, 4), (1, 1), (4096 // width, 4)):
        size = 2 * width * heads  # a program's tile in bfloat16
        load = max(2, min(16, size // (32 * warps)))  # of one thread
        programs = min(PROGRAMS, WARPS // warps)
        held = programs * size / 1024
        print(
            f"{width:5} {heads:6} {warps:6} {load:13} {programs:9} {held:10.0f}"
        )
