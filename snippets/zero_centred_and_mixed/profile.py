import torch
from torch import nn
from torch.nn import functional as F

from snippets.rms_norm.reference import rms_norm
from snippets.zero_centred_and_mixed.mixed import (
    hybrid_norm,
    mix_ln,
    uniform,
)
from snippets.zero_centred_and_mixed.placements import (
    PeriNorm,
    PostNorm,
    PreNorm,
)

d, heads, layers = 64, 4, 16
stacks = {
    "Pre-Norm": uniform(d, heads, layers, PreNorm),
    "Post-Norm": uniform(d, heads, layers, PostNorm),
    "Mix-LN": mix_ln(d, heads, layers),
    "HybridNorm": hybrid_norm(d, heads, layers),
    "HybridNorm*": hybrid_norm(d, heads, layers, star=True),
    "Peri-LN": uniform(d, heads, layers, PeriNorm),
}
generator = torch.Generator().manual_seed(0)
x = torch.randn(4, 16, d, generator=generator, dtype=torch.float64)
head = torch.randn(50, d, generator=generator, dtype=torch.float64) / d**0.5
targets = torch.randint(50, (4, 16), generator=generator)
shown = (0, 3, 4, 8, 15)

profiles = {}
for name, stack in stacks.items():
    stack.double()
    weights = torch.Generator().manual_seed(1)
    for module in stack.modules():
        if isinstance(module, nn.Linear):
            std = module.in_features**-0.5
            nn.init.normal_(module.weight, std=std, generator=weights)
    h, moved = x, []
    for block in stack:
        before, h = h, block(h)
        cosine = F.cosine_similarity(before, h, dim=-1)
        moved.append(torch.rad2deg(torch.arccos(cosine)).mean().item())
    loss = F.cross_entropy((rms_norm(h) @ head.T).mT, targets)
    loss.backward()
    grads = [block[1].body[-1].weight.grad.norm().item() for block in stack]
    mean = sum(grads) / layers
    profiles[name] = [grad / mean for grad in grads], moved

titles = (
    "gradient of a layer's last matrix, over the mean of the stack",
    "angle by which a layer turns the stream, in degrees",
)
for index, title in enumerate(titles):
    print(title)
    print("layer       " + "".join(f"{layer + 1:8}" for layer in shown))
    for name, profile in profiles.items():
        cells = (profile[index][layer] for layer in shown)
        form = "8.2f" if index == 0 else "8.1f"
        print(f"{name:<12}" + "".join(f"{cell:{form}}" for cell in cells))
