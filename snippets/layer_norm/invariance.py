import torch

from snippets.layer_norm.reference import layer_norm

generator = torch.Generator().manual_seed(0)
x = torch.randn(1000, 64, generator=generator, dtype=torch.float64)
y = layer_norm(x)


def gap(other: torch.Tensor) -> float:
    """Median over the tokens of their largest distance from y."""
    return (other.double() - y).abs().amax(dim=-1).median().item()


print(
    "float64, x + 1e7: within 1e-6 of x:",
    gap(layer_norm(x + 1e7)) < 1e-6,
)
print("shift  input in    all in   input in")
print("       float32    float32   bfloat16")
for shift in (1e2, 1e4, 1e6, 1e7):
    single, brain = (x + shift).float(), (x + shift).bfloat16()
    cells = [layer_norm(single.double()), layer_norm(single)]
    a, b, c = map(gap, (*cells, layer_norm(brain.double())))
    print(f"{shift:5.0e} {a:8.0e} {b:10.0e} {c:10.0e}")

print("factor   eps 1e-5   no eps: below 1e-12")
for factor in (5.0, 0.1, 0.01, 0.001, -1.0):
    bare = (layer_norm(factor * x, eps=0.0) - layer_norm(x, eps=0.0)).abs()
    print(f"{factor:6} {gap(layer_norm(factor * x)):10.0e}", end="   ")
    print(bool(bare.max() < 1e-12))
