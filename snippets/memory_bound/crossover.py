from snippets.memory_bound.prediction import ASSUMED, KERNELS, seconds
from snippets.speed.byte_count import CHAINS, bytes_per_element

FEATURES = 4096
STARTS = {  # seconds; assumptions, to be measured with the empty kernel
    "kernel in a CUDA graph": 2.5e-6,
    "launch of a Triton kernel": 6e-6,
    "the same, through an operator": 25e-6,
}
a_row = KERNELS["RMSNorm"].moved(1, FEATURES) - FEATURES * 2  # without gain

print(f"model: rows of {FEATURES} in bfloat16 that take as long as a launch")
for name, start in STARTS.items():
    print(f"  {name:31} {start * 1e6:4.1f} us {start * ASSUMED / a_row:6.0f}")

by_hand = CHAINS["RMSNorm by hand"]
launched = len(by_hand) + 2  # two more work on one number a row
start = STARTS["kernel in a CUDA graph"]
print("\nmodel: us in a CUDA graph")
print("   rows    fused  by hand  ratio")
for rows in (1, 64, 512, 2048, 16384):
    fused = seconds(KERNELS["RMSNorm"].moved(rows, FEATURES), ASSUMED, 1, start)
    moved = bytes_per_element(by_hand) * rows * FEATURES
    hand = seconds(moved, ASSUMED, launched, start)
    print(f"{rows:7} {fused * 1e6:8.1f} {hand * 1e6:8.1f} {hand / fused:6.1f}")
