from snippets.memory_bound.prediction import ASSUMED, KERNELS, seconds
from snippets.speed.byte_count import CHAINS, bytes_per_element

FEATURES = 4096
STARTS = {  # seconds; assumptions, to be measured with the empty kernel
    "kernel in a CUDA graph": 2.5e-6,
    "launch of a Triton kernel": 6e-6,
    "the same, through an operator": 25e-6,
}
norm = KERNELS["RMSNorm"]
a_row = norm.moved(1, FEATURES) - FEATURES * 2  # without gain

print(f"model: rows of {FEATURES} in bfloat16 that take as long as a launch")
print(f"{'':40}", *(f"{card:>6}" for card in ASSUMED))
for name, start in STARTS.items():
    rows = (f"{start * rate / a_row:6.0f}" for rate in ASSUMED.values())
    print(f"  {name:30} {start * 1e6:4.1f} us", *rows)

by_hand = CHAINS["RMSNorm by hand"]
launched = len(by_hand) + 2  # two more work on one number a row
start = STARTS["kernel in a CUDA graph"]
print("\nmodel: us in a CUDA graph")
print("card   rows    fused  by hand  ratio")
for card, rate in ASSUMED.items():
    for rows in (1, 512, 2048, 16384):
        fused = seconds(norm.moved(rows, FEATURES), rate, 1, start)
        moved = bytes_per_element(by_hand) * rows * FEATURES
        hand = seconds(moved, rate, launched, start)
        shown = f"{fused * 1e6:8.1f} {hand * 1e6:8.1f} {hand / fused:6.1f}"
        print(f"{card} {rows:6} {shown}")
