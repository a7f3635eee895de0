from snippets.curse_of_depth.stream import LayerTrace, trace
from snippets.pre_norm_vs_post_norm.trial import fresh, random_text

LAYERS, SEEDS = 36, 5
SHOWN = (1, 4, 9, 36)


def mean_trace(runs: list[list[LayerTrace]], layer: int) -> LayerTrace:
    """Mean over runs at a layer, counted from 1."""
    rows = [run[layer - 1] for run in runs]
    return LayerTrace(
        *(sum(column) / len(rows) for column in zip(*rows, strict=True))
    )


runs = [
    trace(fresh("Pre-Norm with final norm", LAYERS, seed), random_text(seed))
    for seed in range(SEEDS)
]
print("layer  RMS /sqrt(l) update *sqrt(l) cosine")
for layer in SHOWN:
    row, root = mean_trace(runs, layer), layer**0.5
    print(
        f"{layer:>5}{row.rms:>6.2f}{row.rms / root:>9.2f}"
        f"{row.update:>7.2f}{row.update * root:>9.2f}{row.cosine:>7.3f}"
    )
