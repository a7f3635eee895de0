import torch
from torch import nn

from snippets.norms_beyond_the_decoder.ada_ln import AdaLNZero

torch.manual_seed(0)
block = AdaLNZero(8, nn.Linear(8, 8))
x, target = torch.randn(2, 4, 5, 8)
c = torch.randn(4, 8)
print("identity at the start:", torch.equal(block(x, c), x))

optimizer = torch.optim.SGD(block.parameters(), lr=0.5)
print("largest gradient of  shift    scale    alpha    body")
for step in range(3):
    optimizer.zero_grad()
    (block(x, c) - target).square().mean().backward()
    parts = block.modulation[1].weight.grad.chunk(3)
    grads = [part.abs().max() for part in (*parts, block.body.weight.grad)]
    print(f"step {step + 1}        " + "".join(f"{g:9.4f}" for g in grads))
    optimizer.step()

y = block(x[:1].expand(4, -1, -1), c)  # one image, four conditions
print(f"the conditions now differ by {(y - y[:1]).abs().max():.2f}")
