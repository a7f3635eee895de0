import torch

from snippets.qk_norm.entropy import attention_entropy, softmax_jacobian

generator = torch.Generator().manual_seed(0)
logits = torch.randn(200, 128, generator=generator).double()  # 128 keys
print(f"uniform attention has entropy {torch.tensor(128.0).log():.2f}")
print("logit scale   entropy   largest weight   size of the Jacobian")
for scale in (0, 1, 4, 16, 64, 256):
    entropy = attention_entropy(scale * logits).mean()
    largest = (scale * logits).softmax(dim=-1).amax(dim=-1).mean()
    jacobian = softmax_jacobian(scale * logits)
    size = torch.linalg.matrix_norm(jacobian).median()
    print(f"{scale:11d} {entropy:9.2f} {largest:16.3f} {size:22.0e}")
