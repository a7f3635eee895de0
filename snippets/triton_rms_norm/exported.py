import torch
from torch import Tensor

from snippets.triton_rms_norm.device import device
from snippets.triton_rms_norm.fake import FAKES


class Means(torch.nn.Module):
    """The operator as a model: what torch.export takes."""

    def __init__(self, means) -> None:
        super().__init__()
        self.means = means

    def forward(self, x: Tensor) -> Tensor:
        return self.means(x)


rows = torch.export.Dim("rows", min=2, max=64)
six = torch.randn(6, 8, device=device)
for name, means in FAKES.items():
    for wish in (rows, torch.export.Dim.AUTO):
        try:
            program = torch.export.export(
                Means(means), (six,), dynamic_shapes=({0: wish},)
            )
            got = tuple(program.module()(torch.cat([six, six])).shape)
            print(f"{name:5} exported with 6 rows, runs on 12:", got)
        except Exception as error:
            print(f"{name:5} {type(error).__name__}: {str(error)[:48]} ...")
