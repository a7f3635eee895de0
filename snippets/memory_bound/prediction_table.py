from snippets.memory_bound.prediction import (
    ASSUMED,
    DATASHEET,
    KERNELS,
    seconds,
)
from snippets.speed.byte_count import CHAINS, bytes_per_element

ROWS, WIDTH = 16384, 4096
CHAIN = [("divide", "x", "x"), ("tanh", "x", "x"), ("multiply", "x", "x")]
RATES = [rates[card] for card in DATASHEET for rates in (DATASHEET, ASSUMED)]


def line(name: str, mix: str, moved: int) -> str:
    times = "".join(f"{1e6 * seconds(moved, rate):7.1f}" for rate in RATES)
    return f"{name:25} {mix:4} {moved / (ROWS * WIDTH):7.2f} {times}"


print(f"model, not a measurement: x is ({ROWS}, {WIDTH}), bfloat16")
print("                               bytes a   us on an H100 and an H200,")
print("kernel                    mix   number   by datasheet and at 90% of it")
for kernel, traffic in KERNELS.items():
    mix = f"{traffic.reads}R{traffic.writes}W"
    print(line(kernel, mix, traffic.moved(ROWS, WIDTH)))
unfused = {
    "soft cap, three kernels": CHAIN,
    "RMSNorm by hand": CHAINS["RMSNorm by hand"],
}
for name, kernels in unfused.items():
    print(line(name, "", bytes_per_element(kernels) * ROWS * WIDTH))
