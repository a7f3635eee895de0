from torch import nn


class Block(nn.Module):
    def __init__(self, width, attention, feed_forward):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(width, 1e-5) for _ in "af")
        self.attention, self.feed_forward = attention, feed_forward

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))  # (1)!
        return x + self.feed_forward(self.norms[1](x))


blocks = [
    Block(512, nn.Linear(512, 512), nn.Linear(512, 512)) for _ in range(8)
]
model = nn.Sequential(*blocks, nn.RMSNorm(512, 1e-5))  # (2)!
print(sum(isinstance(part, nn.RMSNorm) for part in model.modules()))
