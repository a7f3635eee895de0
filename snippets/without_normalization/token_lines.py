from snippets.without_normalization.cloud import cloud

print("token's size   LayerNorm's slope   on that line to 1e-12")
for size, x, y in zip(*cloud(), strict=True):
    centred = x - x.mean()
    slope = (centred @ y) / (centred @ centred)
    on_line = bool((y - slope * centred).abs().max() < 1e-12)
    print(f"{size:12.1f} {slope:19.2f} {on_line!s:>24}")
