from torch import Tensor, nn


class Decoder(nn.Module):
    """A Pre-Norm language model. ids is (batch, time), logits one a word."""

    def __init__(self, words: int, d: int, layers: list[nn.Module]) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, d)
        self.layers = nn.ModuleList(layers)  # each adds to the stream
        self.norm = nn.RMSNorm(d, eps=1e-6)
        self.head = nn.Linear(d, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
