import torch

from snippets.normformer.block import Block

NORMFORMER = {"scale_heads": True, "scale_attn": True, "scale_fc": True}
PRE_LN = dict.fromkeys(NORMFORMER, False)


def count(d: int, heads: int, **switches: bool) -> tuple[int, int]:
    """Parameters of a block, and features it normalizes for one token."""
    with torch.device("meta"):  # shapes only, no memory
        block = Block(d, heads, **switches)
    norms = [m for m in block.modules() if isinstance(m, torch.nn.LayerNorm)]
    features = sum(norm.weight.numel() for norm in norms)
    return sum(each.numel() for each in block.parameters()), features


print(f"{'size':6}{'added a block':>14}{'share':>8}  normalized / d")
for size, d, heads in (  # of fairseq's NormFormer script
    ("125M", 768, 12),
    ("355M", 1024, 16),
    ("1.3B", 2048, 32),
    ("2.7B", 2560, 32),
):
    before, read = count(d, heads, **PRE_LN)
    after, more = count(d, heads, **NORMFORMER)
    added = after - before
    row = f"{size:6}{added:14,}{added / before:8.2%}"
    print(f"{row}  {read // d} -> {more // d}")
