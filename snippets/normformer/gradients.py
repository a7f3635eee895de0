import torch

from snippets.normformer.stack import Stack, fc2_gradients, initialize

OFF = {"scale_heads": False, "scale_attn": False, "scale_fc": False}
VARIANTS = {
    "Pre-LN": OFF,
    "+ scale_attn": OFF | {"scale_attn": True},
    "+ scale_fc": OFF | {"scale_fc": True},
    "NormFormer": dict.fromkeys(OFF, True),
}
for scheme in ("gpt", "xavier"):
    print(f"{scheme:14}block 1     2     4     7    12")
    for name, switches in VARIANTS.items():
        total = torch.zeros(12)
        for seed in range(3):
            torch.manual_seed(seed)
            model = Stack(blocks=12, d=64, heads=4, **switches)
            initialize(model, scheme)
            total += fc2_gradients(model, torch.randint(100, (8, 33)))
        sizes = (total / 3)[[0, 1, 3, 6, 11]]
        print(f"{name:15}" + "".join(f"{size:6.2f}" for size in sizes))
