import torch

torch.manual_seed(0)


def draw(sequences: int, length: int, shared: float) -> torch.Tensor:
    """Tokens of one feature, (2000 batches, sequences, length), variance 1.

    shared is the share of the variance that all tokens of a sequence have
    in common, such as its topic or its language.
    """
    topic = torch.randn(2000, sequences, 1, dtype=torch.float64)
    token = torch.randn(2000, sequences, length, dtype=torch.float64)
    return shared**0.5 * topic + (1 - shared) ** 0.5 * token


print("std of the mean       measured, tokens")
print(f"{'B x L':>9}{'1/sqrt(N)':>11}{'independent':>13}{'related':>9}")
for sequences, length in ((16, 1), (16, 16), (1, 256), (4, 256)):
    rule = (sequences * length) ** -0.5
    print(f"{sequences:>3} x {length:<3}{rule:11.2f}", end="")
    for shared, width in ((0.0, 13), (0.5, 9)):
        means = draw(sequences, length, shared).mean(dim=(1, 2))
        print(f"{means.std().item():{width}.2f}", end="")
    print()
