def left(shares: list[float]) -> float:
    """What layers leave of 1 - cosine; each is given by its branch's share.

    The share is the branch's part of the sum's mean square. For attention
    with equal weights over all tokens.
    """
    product = 1.0
    for share in shares:
        product *= 1 - share
    return product


def shares(placement: str, n: int) -> list[float]:
    """Of n attention branches that write vectors of RMS 1 before scaling."""
    if placement == "Post-Norm":  # 1 beside a stream of 1
        return [1 / 2] * n
    if placement == "Pre-Norm":  # 1 beside a stream that has grown to l
        return [1 / (layer + 1) for layer in range(1, n + 1)]
    if placement == "branches / sqrt(n)":
        return [1 / (1 + n)] * n
    if placement == "DeepNorm":  # beta^4 beside alpha^2
        return [1 / (1 + 8 * n * (2 * n) ** 0.5)] * n
    if placement == "ReZero":  # the factor of the branch starts at zero
        return [0.0] * n
    raise ValueError(f"no shares are known for {placement!r}")
