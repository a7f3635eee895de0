import torch
from torch import Tensor

from snippets.normformer.stack import Stack, fc2_gradients, initialize


def level(name: str, model: Stack, gains: list[Tensor]) -> None:
    """Print, and divide each block's gain by its block's gradient ratio."""
    print(f"{name:18} 1     2     4     7    12")
    for _ in range(3):
        sizes = fc2_gradients(model, text)
        means = torch.stack([gain.mean() for gain in gains]).detach()
        for label, row in (("gradient of fc2", sizes), ("gain", means)):
            shown = "".join(f"{value:6.2f}" for value in row[[0, 1, 3, 6, 11]])
            print(f"{label:15}{shown}")
        with torch.no_grad():
            for gain, size in zip(gains, sizes, strict=True):
                gain.div_(size)


torch.manual_seed(0)
text = torch.randint(100, (8, 33))
normformer = Stack(blocks=12, d=64, heads=4)
pre_ln = Stack(12, 64, 4, scale_heads=False, scale_attn=False, scale_fc=False)
for each in (normformer, pre_ln):
    initialize(each, "xavier")
inner = [block.ffn.norm.weight for block in normformer.blocks]
level("gain before fc2", normformer, inner)
entrance = [block.ffn_norm.weight for block in pre_ln.blocks]
level("gain before fc1", pre_ln, entrance)
