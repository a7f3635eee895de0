import torch

from snippets.norms_beyond_the_decoder.attention import (
    causal_logits,
    gated_attention,
    sink_attention,
)

generator = torch.Generator().manual_seed(0)
q, k, v = torch.randn(3, 3, 6, 16, generator=generator, dtype=torch.float64)
sink = torch.tensor([-3.0, 0.0, 3.0], dtype=torch.float64)  # three heads

total = causal_logits(q, k).logsumexp(dim=-1, keepdim=True)
gate = total - sink[:, None, None]  # how far the logits are above the sink
gap = sink_attention(q, k, v, sink) - gated_attention(q, k, v, gate)
print(f"sink minus gate: {gap.abs().max():.0e}")

print("sink's logit   share of the output left, last query")
for logit, share in zip(sink, torch.sigmoid(gate)[:, -1, 0], strict=True):
    print(f"{logit:12.0f}{share:14.3f}")
