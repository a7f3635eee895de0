import copy

import torch

from snippets.port_a_norm.depth_error import depth_errors, random_blocks
from snippets.transformer_block.decoder import Sizes

torch.manual_seed(0)
small = {"d": 64, "heads": 4, "kv_heads": 2, "width": 16, "hidden": 128}
blocks = random_blocks(Sizes(blocks=32, **small))
x = torch.randn(2, 32, 64)
shown = (1, 4, 8, 16, 32)
print("error / spacing, block", *(f"{n:7}" for n in shown))
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    port = copy.deepcopy(blocks).to(dtype)
    original = copy.deepcopy(port).double()  # of the weights as rounded
    for name in ("right", "wrong"):
        if name == "wrong":
            port[7].ffn_norm.gain.data.mul_(1.05)  # one gain, 5% too large
        for kind, errors in depth_errors(original, port, x.to(dtype)).items():
            row = [errors[n - 1] / torch.finfo(dtype).eps for n in shown]
            cells = (f"{ratio:7.2g}" for ratio in row)
            print(f"{str(dtype)[6:]:8} {name} {kind:6}", *cells)
