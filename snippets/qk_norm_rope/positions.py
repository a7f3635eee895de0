import torch

from snippets.qk_norm_rope.device import device
from snippets.qk_norm_rope.operator import angles, qk_norm_rope

torch.manual_seed(0)
x = torch.randn(2, 9, 4, 64, device=device)
gain = torch.rand(64, device=device)
cos, sin = angles(9, 64, device=device)
at_once = qk_norm_rope(x, gain, cos, sin)

step = qk_norm_rope(x[:, 8:], gain, cos[8:], sin[8:])
print("a decoding step, its own angles:", torch.equal(step, at_once[:, 8:]))
step = qk_norm_rope(x[:, 8:], gain, cos[:1], sin[:1])
print("a decoding step, the first ones:", torch.equal(step, at_once[:, 8:]))

ragged = torch.cat((x[0, :5], x[1, :3]))[None]  # 5 and 3 tokens, no padding
place = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2], device=device)
found = qk_norm_rope(ragged, gain, cos[place], sin[place])
wanted = torch.cat((at_once[0, :5], at_once[1, :3]))[None]
print("sequences end to end:", torch.equal(found, wanted))

grouped = torch.randn(2, 9, 2, 4 + 1 + 1, 64, device=device)  # q q q q k v
q = grouped[..., :4, :]  # 9 tokens, 2 groups of 4 heads
copied = qk_norm_rope(q.reshape(2, 9, 8, 64), gain, cos, sin)
tables = (t.repeat_interleave(2, dim=0) for t in (cos, sin))
found = qk_norm_rope(q.flatten(1, 2), gain, *tables)  # a view: 18 "tokens"
print("groups as tokens:", torch.equal(found.view_as(copied), copied))
