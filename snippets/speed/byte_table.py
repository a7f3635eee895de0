from snippets.speed.byte_count import CHAINS, bytes_per_element

print("bytes per element            bfloat16  float32")
for chain_name, kernels in CHAINS.items():
    narrow = bytes_per_element(kernels, "bfloat16")
    wide = bytes_per_element(kernels, "float32")
    print(f"{chain_name:28} {narrow:8} {wide:8}")
