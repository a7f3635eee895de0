from math import prod


def llama_shapes(
    d: int, layers: int, hidden: int, vocabulary: int
) -> dict[str, list[tuple[int, ...]]]:
    """Shapes of all parameters of a Llama without grouped-query attention."""
    attention, gated = [(d, d)] * 4, [(d, hidden)] * 3
    return {
        "embedding and head": [(vocabulary, d)] * 2,
        "attention": attention * layers,
        "feed-forward": gated * layers,
        "norms": [(d,)] * (2 * layers + 1),
    }


shapes = llama_shapes(d=4096, layers=32, hidden=11008, vocabulary=32000)
counts = {part: sum(map(prod, group)) for part, group in shapes.items()}
total = sum(counts.values())
for part, count in counts.items():
    print(f"{part:<20}{count:>15,}{count / total:>12.4%}")
print(f"{'total':<20}{total:>15,}")
print(f"LayerNorm with bias would hold {2 * counts['norms']:,} in its norms")
