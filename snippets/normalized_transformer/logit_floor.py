from math import exp, log

print("lowest loss in nats   s_z = 1   s_z = 5   s_z = 10   s_z = 20")
for vocabulary in (256, 50304):
    cells = [log(1 + (vocabulary - 1) * exp(-2 * s)) for s in (1, 5, 10, 20)]
    print(f"{vocabulary:>9} tokens", end="")
    print("".join(f"{cell:10.2f}" for cell in cells))
