from snippets.signal_propagation.shares import left, shares

DEPTHS = (6, 24, 96, 1000)
print("left of 1 - cosine, n =" + "".join(f"{n:9}" for n in DEPTHS))
for placement in (
    "Post-Norm",
    "Pre-Norm",
    "branches / sqrt(n)",
    "DeepNorm",
    "ReZero",
):
    row = (left(shares(placement, n)) for n in DEPTHS)
    print(f"{placement:<23}" + "".join(f"{value:9.2g}" for value in row))
