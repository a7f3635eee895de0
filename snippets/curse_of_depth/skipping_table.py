import torch

from snippets.curse_of_depth.skipping import read_out
from snippets.pre_norm_vs_post_norm.trial import fresh, random_text

skips = {f"layer {n}": (n,) for n in (1, 4, 9, 36)}
skips |= {"layers 19 to 36": range(19, 37), "layers 1 to 18": range(1, 19)}
cosines = {name: [] for name in skips}
for seed in range(5):
    decoder = fresh("Pre-Norm with final norm", 36, seed)
    text = random_text(seed)
    full = read_out(decoder, text)
    for name, skip in skips.items():
        left = read_out(decoder, text, skip)
        cosine = torch.cosine_similarity(full, left, dim=-1).mean().item()
        cosines[name].append(cosine)

print("skipped          cosine to the full model")
for name, values in cosines.items():
    print(f"{name:<17}{sum(values) / len(values):.3f}")
