from snippets.speed.byte_count import CHAINS, bytes_per_element

# Llama-7B: 32 blocks, two norms in each, and a last one.
WIDTH, INNER, VOCABULARY, BLOCKS = 4096, 11008, 32000, 32
NORMS = 2 * BLOCKS + 1
WEIGHTS = BLOCKS * (4 * WIDTH**2 + 3 * WIDTH * INNER) + VOCABULARY * WIDTH
TENSOR_CORES = 989e12  # dense bfloat16; both cards, by their datasheets
BANDWIDTHS = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second, likewise

products = 2 * WEIGHTS / TENSOR_CORES
counted = {
    name: (bytes_per_element(CHAINS[name]), products)
    for name in (
        "fused LayerNorm or RMSNorm",
        "LayerNorm by hand",
        "RMSNorm by hand",
    )
}
# Backward a fused norm reads x and a gradient and writes one: 6 bytes more.
counted["fused, backward too"] = 4 + 6, 3 * products
print("model: Llama-7B, per token, bfloat16; us, and share of the sum")
print(" " * 26, *(f"{card:>13}" for card in BANDWIDTHS))
us = f"{products * 1e6:6.2f}"  # of the same peak on both
print(f"{'its matrix products':26} {us} {us:>13}")
for name, (moved, rest) in counted.items():
    times = [NORMS * WIDTH * moved / rate for rate in BANDWIDTHS.values()]
    cells = [f"{t * 1e6:6.2f} {t / (t + rest):6.1%}" for t in times]
    print(f"{name:26}", *cells)

by_hand = [
    bytes_per_element(CHAINS[f"{norm} by hand"], "float32")
    for norm in ("LayerNorm", "RMSNorm")
]
print("\n'7.8 times': bytes of LayerNorm / RMSNorm")
print(f"  by hand in float32: {by_hand[0] / by_hand[1]:.2f}, fused: 1.00")
print("'7 to 64% less time': norms must have taken")
print("  7% to 64% of it, and then cost nothing")
print("'10 to 40% faster': norms must have taken")
print(f"  {1 - 1 / 1.1:.0%} to {1 - 1 / 1.4:.0%} of it, and then cost nothing")
operations = 7 * NORMS * WIDTH / (2 * WEIGHTS)
print("'15 to 30% less compute': all LayerNorms / all products")
print(f"  {operations:.3%} of the operations")
print("'two passes': bytes, if the row came from memory twice")
print(f"  {3 / 2:.2f} of those with one read")
