import torch

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm


def stream(shared: float, seed: int, batches: int) -> torch.Tensor:
    """(batches, sequences, length, d); shared as in the noise block."""
    generator = torch.Generator().manual_seed(seed)
    options = {"generator": generator, "dtype": torch.float64}
    topic = torch.randn(batches, 4, 1, 8, **options)
    token = torch.randn(batches, 4, 128, 8, **options)
    return shared**0.5 * topic + (1 - shared) ** 0.5 * token


def gap(norm: BatchNorm, batches: torch.Tensor) -> float:
    """RMS difference between the outputs of the two modes."""
    norm.momentum = 0.0  # from here on nothing is learned
    pairs = [(norm.train()(x), norm.eval()(x)) for x in batches]
    gaps = torch.stack([train - evaluated for train, evaluated in pairs])
    return gaps.square().mean().sqrt().item()


print("train and eval outputs: RMS difference")
print("             tracked   exact")
for shared in (0.0, 0.5):
    tracked, exact = BatchNorm(8).double(), BatchNorm(8).double()
    for batch in stream(shared, seed=0, batches=300):
        tracked(batch)
    fresh = stream(shared, seed=1, batches=100)
    print(f"shared {shared:.1f} {gap(tracked, fresh):9.2f}", end="")
    print(f"{gap(exact, fresh):8.2f}")  # stored: mean 0, variance 1
