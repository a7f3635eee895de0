WIDTH, TIME = 128, 4096
asked = 2 * 4 * (WIDTH // 2) / WIDTH  # cos and sin of a pair, float32
print(f"tables: {2 * 4 * TIME * (WIDTH // 2) / 2**20:.0f} MiB")
print(f"asked for: {asked:.0f} bytes an element, x itself: 2")
for heads in (32, 8, 1):
    for batch in (1, 4):
        memory = asked / heads / batch
        print(
            f"{heads:2} heads, batch {batch}: from memory {memory:5.3f} of "
            f"{4 + memory:5.3f} bytes an element"
        )
