import torch

from snippets.qk_norm_rope.heads import head_layout

HEADS, KEYS, WIDTH = 32, 8, 128  # grouped queries, as in Qwen3-8B
packed = torch.empty(2, 5, (HEADS + 2 * KEYS) * WIDTH)  # batch, time
sizes = [n * WIDTH for n in (HEADS, KEYS, KEYS)]
q, k, v = (t.unflatten(-1, (-1, WIDTH)) for t in packed.split(sizes, dim=-1))

print("                  heads token_stride head_stride  reshape copies")
for name, x in {
    "queries": q,
    "keys": k,
    "keys, contiguous": k.contiguous(),
    "a decoding step": q[:, -1:],
}.items():
    copied = x.reshape(-1, WIDTH).data_ptr() != x.data_ptr()
    heads, token_stride, head_stride, _ = head_layout(x)
    print(f"{name:17} {heads:5} {token_stride:12} {head_stride:11}  {copied}")
try:
    head_layout(q[:, :3])
except ValueError as error:
    print(error)
