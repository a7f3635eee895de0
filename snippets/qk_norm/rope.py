import torch
from torch import Tensor


def rotate(x: Tensor, base: float = 10_000.0) -> Tensor:
    """Rotary position embedding: turn pairs of features by their position.

    x is (..., time, width) with an even width. Feature i < width / 2 is
    paired with i + width / 2; at position t the pair turns by the angle
    t * base ** (-2 i / width). The angles are float32 (float64 for float64
    input); the result has x's dtype. Su et al. (2021), with the pairs of
    the code of Llama in transformers.
    """
    time, width = x.shape[-2:]
    wide = torch.promote_types(x.dtype, torch.float32)
    options = {"dtype": wide, "device": x.device}
    speed = base ** (-torch.arange(0, width, 2, **options) / width)
    angle = torch.arange(time, **options)[:, None] * speed  # (time, width / 2)
    a, b = x.to(wide).chunk(2, dim=-1)
    cos, sin = angle.cos(), angle.sin()
    turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
    return turned.to(x.dtype)
