import torch
from torch import Tensor

from snippets.qk_norm.attention import Attention, largest_logit
from snippets.qk_norm.clip import qk_clip
from snippets.rms_norm.reference import RMSNorm


def show(name: str, attention: Attention, tokens: Tensor) -> None:
    largest = largest_logit(attention.logits(tokens)).tolist()
    print(f"{name:28}" + "".join(f"{value:8.2f}" for value in largest))


torch.manual_seed(0)
tokens = torch.randn(4, 32, 64, dtype=torch.float64)
variants = {
    "four heads": Attention(64, heads=4),
    "four heads, two key heads": Attention(64, heads=4, key_heads=2),
    "four heads with QK-Norm": Attention(64, heads=4, norm=RMSNorm),
}
for name, attention in variants.items():
    attention.double()
    with torch.no_grad():
        attention.query.weight[:16].mul_(20)  # the first head is too loud
    show(name, attention, tokens)
    qk_clip(attention, largest_logit(attention.logits(tokens)), tau=2.0)
    show("  after qk_clip, tau 2", attention, tokens)
