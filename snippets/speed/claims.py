from snippets.speed.byte_count import CHAINS, bytes_per_element

# Llama-7B: 32 blocks, two norms in each, and a last one.
WIDTH, INNER, VOCABULARY, BLOCKS = 4096, 11008, 32000, 32
NORMS = 2 * BLOCKS + 1
WEIGHTS = BLOCKS * (4 * WIDTH**2 + 3 * WIDTH * INNER) + VOCABULARY * WIDTH
BANDWIDTH, TENSOR_CORES = 4.8e12, 989e12  # H200, dense bfloat16; datasheet

products = 2 * WEIGHTS / TENSOR_CORES
print("model: Llama-7B forward, per token, bfloat16, an H200's peaks")
print(f"{'its matrix products':26} {products * 1e6:6.2f} us")
for name in (
    "fused LayerNorm or RMSNorm",
    "LayerNorm by hand",
    "RMSNorm by hand",
):
    moved = NORMS * WIDTH * bytes_per_element(CHAINS[name])
    norms = moved / BANDWIDTH
    share = norms / (norms + products)
    print(f"{name:26} {norms * 1e6:6.2f} us, {share:.1%} of the sum")
# Backward a fused norm reads x and a gradient and writes one: 6 bytes more.
norms = NORMS * WIDTH * (4 + 6) / BANDWIDTH
share, name = norms / (norms + 3 * products), "fused, backward too"
print(f"{name:26} {norms * 1e6:6.2f} us, {share:.1%} of the sum")

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
