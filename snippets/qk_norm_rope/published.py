# Rows of 128 in 16 bits: (source, GPU, rows, microseconds before, after).
REPORTS = (
    ("aiter", "MI308X", 364_800, 2692.84, 74.50),
    ("aiter", "MI35XX", 364_800, 1004.10, 27.19),
    ("SGLang", "H20", 4096 * 48, 269, 69),
)
print("source  GPU          before       after")
for source, card, rows, before, after in REPORTS:
    size = rows * 128 * (2 + 2)  # read once, written once
    rates = [f"{size / time / 1e3:5.0f} GB/s" for time in (before, after)]
    print(f"{source:7} {card:7}", *rates, sep="  ")

# Llama 4 Scout, one layer: microseconds, bytes a token.
ADD_NORM = 59.744, 5120 * 8  # add and norm: two read, two written
QUERIES = 345.344, 40 * 128 * 4
KEYS = 70.592, 8 * 128 * 4
for name, (time, size) in (("queries", QUERIES), ("keys", KEYS)):
    slower = time / size * ADD_NORM[1] / ADD_NORM[0]
    print(f"{name}: {slower:.0f} times the add-norm's time per byte")
