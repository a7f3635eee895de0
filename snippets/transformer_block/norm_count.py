from collections import Counter

import torch

from snippets.rms_norm.reference import RMSNorm
from snippets.transformer_block.decoder import Decoder, Sizes

for qk_norm in (False, True):
    with torch.device("meta"):  # shapes only, no memory
        model = Decoder(Sizes(qk_norm=qk_norm))
    norms = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, RMSNorm)
    }
    total = sum(each.numel() for each in model.parameters())
    gains = sum(each.gain.numel() for each in norms.values())
    kinds = Counter(name.rsplit(".", 1)[-1] for name in norms)
    print(f"qk_norm={qk_norm}: {len(norms)} norms")
    for kind, number in kinds.items():
        print(f"  {number} {kind}")
    print(f"  {gains:,} gains of {total:,} parameters")
