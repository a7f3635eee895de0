import torch


def z_scores(x):
    mean = x.mean()
    deviation = x.std(correction=0)  # (1)!
    return (x - mean) / deviation


marks = torch.tensor([87.0, 92.0, 65.0, 99.0, 41.0])
for x in (marks, 0.4 * marks - 7):  # (2)!
    print(f"mean {x.mean():.1f}  deviation {x.std(correction=0):.1f}")
    print("z   ", "  ".join(f"{z:6.3f}" for z in z_scores(x)))
