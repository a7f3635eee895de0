from snippets.triton_rms_norm.launch import WHOLE_FORWARD, tile

print(" width  rows  columns  idle  threads  values/thread  registers/thread")
for width in (64, 128, 1000, 4096, 5120, 16_384, WHOLE_FORWARD):
    rows, columns, warps = tile(width).values()
    threads = 32 * warps
    held = rows * columns // threads
    most = min(255, 65_536 // threads)  # one program alone on its SM
    idle = 1 - width / columns
    print(
        f"{width:6} {rows:5} {columns:8} {idle:5.0%} {threads:8} "
        f"{held:14} {most:17}"
    )
