SIZE = 2  # bfloat16
print("                   readings  L2  memory")
for name, readings in (
    ("a row in registers", 1),
    ("RMSNorm, pieces", 2),
    ("merged, pieces", 2),
    ("LayerNorm, pieces", 3),
):
    least, most = 2 * SIZE, (readings + 1) * SIZE
    print(f"{name:18} {readings:8} {least:3} {most:7}")
