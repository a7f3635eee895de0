import torch

from snippets.why_normalize.standardize import standardize

marks = torch.tensor([87.0, 92.0, 65.0, 99.0, 41.0], dtype=torch.float64)
print(f"mean {marks.mean():.1f}, median {marks.median():.0f}")
for name, correction in (("population", 0), ("sample", 1)):
    deviation = marks.std(correction=correction)
    scores = standardize(marks, correction=correction)
    row = " ".join(f"{score:5.2f}" for score in scores)
    print(f"{name} deviation {deviation:.2f}, z-scores:\n{row}")

harder = 0.4 * marks - 7  # the same exam on another scale
gap = (standardize(harder) - standardize(marks)).abs().max()
print("same z for 0.4 mark - 7:", bool(gap < 1e-12))
