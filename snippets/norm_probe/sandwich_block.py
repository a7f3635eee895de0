import torch
from torch import nn

from snippets.norm_probe.matching import decompose, written
from snippets.rms_norm.reference import RMSNorm

torch.manual_seed(0)
d = 64
# Stand-ins: how a branch computes does not matter here.
attention, feed_forward = nn.Linear(d, d), nn.Linear(d, d)
before, after = RMSNorm(d), RMSNorm(d)

x = torch.randn(2, 8, d)  # the block's input
branch = attention(before(x))
normed = after(branch)
a = x + normed
y = a + 0.5 * feed_forward(a)

seen = {  # what hooks on the modules see, in order of time
    "x": x,
    "N[before](x)": before(x),
    "Attention(..)": branch,
    "N[after](Attention(..))": normed,
}
into_feed_forward = decompose(a, seen)
print(f"a = {written(into_feed_forward)}")
seen |= {"a": a, "FFN(a)": feed_forward(a)}
print(f"y = {written(decompose(y, seen))}")
