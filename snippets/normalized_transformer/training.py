import torch
from torch.nn import functional as F

from snippets.normalized_transformer.model import (
    NormalizedTransformer,
    normalize_weights,
)

text = b"the cat sat on the mat. the dog sat on the log. " * 4
data = torch.tensor(list(text))[:129]
tokens, following = data[None, :-1], data[1:]
torch.manual_seed(0)
model = NormalizedTransformer(256, d=32, layers=2, heads=4, inner=64).double()
normalize_weights(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

print("step   loss   rows of length one   mean alpha   mean s_z")
for step in range(41):
    logits = model(tokens)[0]
    loss = F.cross_entropy(logits, following)
    if step % 10 == 0:
        rows = model.blocks[0].query.weight.norm(dim=1)
        kept = bool(((rows - 1).abs() < 1e-12).all())
        alpha = model.blocks[0].alpha_attention().abs().mean()
        print(f"{step:4} {loss:6.2f} {kept!s:>20}", end="")
        print(f" {alpha:12.3f} {model.s_z().mean():10.2f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    normalize_weights(model)

with torch.no_grad():
    h = model.token(tokens)
    for block in model.blocks:
        h = block(h)
    kept = bool(((h.norm(dim=-1) - 1).abs() < 1e-12).all())
    print("hidden vectors of length one:", kept)
    before = model(tokens)
    bounded = bool(before.abs().max() <= model.s_z().abs().max())
    print("no logit above the largest s_z:", bounded)
    model.blocks[0].s_u.stored.mul_(7.0)  # one factor for all of u
    change = (model(tokens) - before).abs().max()
    print("seven times s_u changes no logit:", bool(change < 1e-12))
