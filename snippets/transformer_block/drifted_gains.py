import copy

import torch
from torch.nn import functional as F

from snippets.transformer_block.decoder import Decoder, Sizes
from snippets.transformer_block.gain_changes import gain_changes

torch.manual_seed(0)
model = Decoder(Sizes(32, 2, 2, 1, 16, 64, 64))
for parameter in model.parameters():
    if parameter.ndim == 1:
        torch.nn.init.uniform_(parameter, 0.5, 1.5)
start = copy.deepcopy(model.state_dict())
tokens = torch.randint(64, (40, 8, 17)).cummax(dim=-1).values
rate, steps = 3e-3, len(tokens)


def tuned(decay: float) -> dict:
    ours = copy.deepcopy(model)
    groups = ours.parameters()  # the gains too: the mistake to be found
    optimizer = torch.optim.AdamW(groups, lr=rate, weight_decay=decay)
    for batch in tokens:
        logits = ours(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return ours.state_dict()


found = {f"decay {decay:g}": tuned(decay) for decay in (0, 1)}
found["rounded"] = {name: p.bfloat16() for name, p in start.items()}
print(f"{'factor, rest':28}", *(f"{name:>12}" for name in found))
found = [gain_changes(start, after) for after in found.values()]
for name in found[0]:
    cells = (f"{each[name][0]:.3f}, {each[name][1]:.3f}" for each in found)
    print(f"{name:28}", *cells)
print(f"(1 - rate * decay) ** steps = {(1 - rate) ** steps:.3f}")
