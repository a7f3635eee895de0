# --8<-- [start:chains]
# One entry a kernel: (name, big tensors read, big tensors written).
# "x" has the dtype of the activations, "f" is float32. Numbers per row
# (means, variances) and gain and bias are left out: they are 1/d or
# 1/rows of the traffic.
FUSED_NORM = [("norm", "x", "x")]  # LayerNorm and RMSNorm alike
ADD_THEN_NORM = [("add", "xx", "x"), ("norm", "x", "x")]
FUSED_ADD_NORM = [("add and norm", "xx", "xx")]  # the sum is needed later

HAND_LAYER_NORM = [
    ("mean", "x", ""),
    ("var", "x", ""),
    ("subtract the mean", "x", "x"),
    ("divide by the root", "x", "x"),
    ("multiply by the gain", "x", "x"),
    ("add the bias", "x", "x"),
]
HAND_RMS_NORM = [
    ("cast to float32", "x", "f"),
    ("pow(2)", "f", "f"),
    ("mean", "f", ""),
    ("multiply by rsqrt", "f", "f"),
    ("cast back", "f", "x"),
    ("multiply by the gain", "x", "x"),
]
# --8<-- [end:chains]


# --8<-- [start:bytes_per_element]
SIZES = {"bfloat16": 2, "float16": 2, "float32": 4}  # bytes
CHAINS = {
    "fused LayerNorm or RMSNorm": FUSED_NORM,
    "LayerNorm by hand": HAND_LAYER_NORM,
    "RMSNorm by hand": HAND_RMS_NORM,
    "add, then fused norm": ADD_THEN_NORM,
    "fused add and norm": FUSED_ADD_NORM,
}


def bytes_per_element(
    chain: list[tuple[str, str, str]], dtype: str = "bfloat16"
) -> int:
    """Bytes that a chain of kernels moves for each element of x."""
    bytes_of = {"x": SIZES[dtype], "f": 4}
    total = 0
    for _, read, written in chain:
        if {read, written} == {"x", "f"} and dtype == "float32":
            continue  # a cast to the same dtype moves nothing
        total += sum(bytes_of[tensor] for tensor in read + written)
    return total


# --8<-- [end:bytes_per_element]
