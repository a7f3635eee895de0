SMS, WIDTH, SIZE = 132, 131_072, 2  # an H100 or H200, a wide row, bfloat16
for name, tensors in (("forward: x", 1), ("backward: x, dy", 2)):
    for per_sm in (1, 2, 4):
        live = SMS * per_sm * tensors * WIDTH * SIZE
        print(f"{name:16} {per_sm} programs per SM: {live / 1e6:4.0f} MB live")
