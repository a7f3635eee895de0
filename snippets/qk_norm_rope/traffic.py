BATCH, TIME, WIDTH, HEADS, KEYS = 4, 4096, 128, 32, 8
BANDWIDTHS = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second, datasheets
ELEMENTS = BATCH * TIME * (HEADS + KEYS) * WIDTH  # of queries and keys

COPY = PLAIN = 2 + 2  # bfloat16: every element read and written
STATISTIC = 4 / WIDTH  # float32, one a head
TABLES = 2 * 2 * 4 * TIME * (WIDTH // 2) / ELEMENTS  # cos and sin; q and k
NORM = PLAIN + STATISTIC
ROTATE = PLAIN + TABLES
BOTH = PLAIN + STATISTIC + TABLES
FORWARD = {
    "copy, norm, rotate": COPY + NORM + ROTATE,
    "norm, rotate": NORM + ROTATE,
    "copy, one kernel": COPY + BOTH,
    "one kernel": BOTH,
}
BACKWARD = {
    "turn back, norm": ROTATE + NORM + 2,
    "one kernel": BOTH + 2,
}
for name, plans in (("forward", FORWARD), ("backward", BACKWARD)):
    print(f"{name:18} B/element    MB  model us:", *BANDWIDTHS)
    for plan, count in plans.items():
        size = count * ELEMENTS
        times = [1e6 * size / each for each in BANDWIDTHS.values()]
        line = f"{plan:18} {count:9.2f} {size / 1e6:5.0f}"
        print(line, f"{times[0]:15.0f} {times[1]:4.0f}")
