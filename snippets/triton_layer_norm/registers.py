from snippets.triton_rms_norm.launch import tile

print("width threads RMSNorm LayerNorm available")
for width in (1024, 4096, 8192, 16_384):
    rows, columns, warps = tile(width).values()
    threads = 32 * warps
    each = rows * columns // threads  # an array of the tile's size
    sums = columns // threads  # an array of one row's size
    available = min(255, 65_536 // threads)
    rms = 2 * each + 2 * sums  # value, slope; gain, its sum
    layer = rms + sums  # and the bias's sum
    print(f"{width:5} {threads:7} {rms:7} {layer:9} {available:9}")
