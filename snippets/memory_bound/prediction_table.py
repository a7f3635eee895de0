from snippets.memory_bound.prediction import (
    ASSUMED,
    DATASHEET,
    KERNELS,
    seconds,
)
from snippets.speed.byte_count import CHAINS, bytes_per_element

ROWS, WIDTH = 16384, 4096
CHAIN = [("divide", "x", "x"), ("tanh", "x", "x"), ("multiply", "x", "x")]


def line(name: str, mix: str, moved: int) -> str:
    low, high = (seconds(moved, rate) * 1e6 for rate in (DATASHEET, ASSUMED))
    each = moved / (ROWS * WIDTH)
    return f"{name:26} {mix:5} {each:6.2f} {low:9.1f} {high:9.1f}"


print(f"model, not a measurement: x is ({ROWS}, {WIDTH}), bfloat16")
print("                                 bytes a     us at    us at 90%")
print("kernel                     mix   number  datasheet   of it")
for kernel, traffic in KERNELS.items():
    mix = f"{traffic.reads}R{traffic.writes}W"
    print(line(kernel, mix, traffic.moved(ROWS, WIDTH)))
unfused = {
    "soft cap, three kernels": CHAIN,
    "RMSNorm by hand": CHAINS["RMSNorm by hand"],
}
for name, kernels in unfused.items():
    print(line(name, "", bytes_per_element(kernels) * ROWS * WIDTH))
