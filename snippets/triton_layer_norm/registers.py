from snippets.triton_rms_norm.forward import EARLY
from snippets.triton_rms_norm.launch import walk

print("width threads RMSNorm LayerNorm available")
for width in (1024, 4096, 8192, 16_384):
    rows, columns, warps, _ = walk(width, 2).values()
    threads = 32 * warps
    each = rows * columns // threads  # an array of the tile's size
    gain = columns // threads if columns <= EARLY.value else 0
    rms = 3 * each + gain  # value, slope and the gain's sum
    layer = rms + each  # and the bias's sum
    available = 65_536 // (16 * 32)  # 16 warps run on an SM
    print(f"{width:5} {threads:7} {rms:7} {layer:9} {available:9}")
