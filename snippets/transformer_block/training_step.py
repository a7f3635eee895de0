# --8<-- [start:training_step]
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.optim import Optimizer

from snippets.transformer_block.decoder import Decoder, Sizes
from snippets.transformer_block.parameter_groups import parameter_groups


def training_step(
    model: Decoder, optimizer: Optimizer, tokens: Tensor, autocast: bool
) -> float:
    """One step on tokens (batch, time); the loss before it, in nats."""
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=autocast):
        logits = model(tokens[:, :-1])
    loss = F.cross_entropy(
        logits.float().flatten(0, 1), tokens[:, 1:].flatten()
    )
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


# --8<-- [end:training_step]


# --8<-- [start:dtypes]
def show_dtypes(model: Decoder, autocast: bool) -> None:
    """Print what the last block's norms and the final norm read and return."""

    def record(name: str):
        def show(module, inputs: tuple[Tensor], output: Tensor) -> None:
            dtypes = inputs[0].dtype, module.gain.dtype, output.dtype
            cells = [str(dtype).removeprefix("torch.") for dtype in dtypes]
            print(f"  {name:9} {cells[0]:9} {cells[1]:9} {cells[2]}")

        return show

    block = model.blocks[-1]
    norms = {
        "attention": block.attention_norm,
        "query": block.attention.q_norm,
        "ffn": block.ffn_norm,
        "final": model.norm,
    }
    hooks = [n.register_forward_hook(record(name)) for name, n in norms.items()]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        model(torch.zeros(1, 4, dtype=torch.long))
    for hook in hooks:
        hook.remove()


# --8<-- [end:dtypes]


# --8<-- [start:compare]
tiny = Sizes(32, 2, 4, 2, 8, 64, 50, qk_norm=True)
for name, dtype, autocast in (
    ("float32 weights, autocast", torch.float32, True),
    ("everything bfloat16", torch.bfloat16, False),
):
    torch.manual_seed(0)
    model = Decoder(tiny).to(dtype)
    print(f"{name}\n  norm      input     gain      output")
    show_dtypes(model, autocast)

    start = {key: value.clone() for key, value in model.named_parameters()}
    groups = parameter_groups(model, weight_decay=0.1)
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    batch = torch.randint(50, (4, 17))
    losses = [
        training_step(model, optimizer, batch, autocast) for _ in range(20)
    ]
    print("  loss fell:", losses[-1] < losses[0] - 0.5)
    for kind, ndim in (("matrices", 2), ("gains", 1)):
        moved = [
            (value != start[key]).flatten()
            for key, value in model.named_parameters()
            if value.ndim == ndim
        ]
        print(f"  {kind} that moved: {torch.cat(moved).double().mean():.0%}")
# --8<-- [end:compare]
