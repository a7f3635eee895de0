import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


class Block(nn.Module):
    def __init__(self, matrices: torch.dtype) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(8)  # float32
        self.up = nn.Linear(8, 8, bias=False, dtype=matrices)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x.to(self.norm.weight.dtype))
        return self.up(y.to(self.up.weight.dtype))


def attempt(name: str, block: Block) -> None:
    kept = block.norm.weight.dtype
    try:
        y = block(torch.ones(2, 8))
        print(f"{name}: gain stored in {kept}, output {y.dtype}")
    except AssertionError as error:
        print(f"{name}: {str(error).partition(' but')[0]}")


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
mesh = dist.init_device_mesh("cpu", (1,))

block = Block(torch.bfloat16)
fully_shard(block, mesh=mesh)
attempt("one unit", block)

block = Block(torch.bfloat16)
fully_shard(block.norm, mesh=mesh)
fully_shard(block, mesh=mesh)
attempt("norm apart", block)

block = Block(torch.float32)
low = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
fully_shard(block, mesh=mesh, mp_policy=low)
attempt("all float32, computed in bfloat16", block)

dist.destroy_process_group()
