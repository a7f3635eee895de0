# --8<-- [start:move]
import torch
from torch import Tensor

from snippets.port_a_norm.gains import gain_of, weight_of


def move(
    weight: Tensor, readers: list[Tensor], scale: Tensor, form: str
) -> tuple[Tensor, list[Tensor]]:
    """A norm's weight over scale, and all that reads the norm times scale.

    weight and scale are (d,), each reader is (out, d): W (gain n) =
    (W scale) (gain / scale n). With scale = gain that is folding.
    """
    moved = weight_of(gain_of(weight, form) / scale, form)
    return moved, [reader * scale for reader in readers]


# --8<-- [end:move]


# --8<-- [start:compare]
generator = torch.Generator().manual_seed(0)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator).double()


n, w, scale = random(100, 64), 0.3 * random(64), 0.5 + random(64).abs()
up, gate = random(32, 64), random(32, 64)
down, out = random(8, 64), random(32, 8)  # a LoRA of rank 8, beside up


def layer(w: Tensor, up: Tensor, gate: Tensor, down: Tensor) -> Tensor:
    h = n * (1 + w)  # a norm of the form 1 + w
    return (h @ up.T + h @ down.T @ out.T) * (h @ gate.T)


right = layer(w, up, gate, down)
v, (up_v, gate_v, down_v) = move(w, [up, gate, down], scale, "1+w")
for name, y in {
    "all that reads it": layer(v, up_v, gate_v, down_v),
    "not the gate": layer(v, up_v, gate, down_v),
    "not the LoRA": layer(v, up_v, gate_v, down),
    "w, not 1 + w": layer(w / scale, up_v, gate_v, down_v),
    "LoRA merged first": layer(v, (up + out @ down) * scale, gate_v, 0 * down),
}.items():
    print(f"{name:18} {((y - right).norm() / right.norm()).item():.2f}")
# --8<-- [end:compare]
