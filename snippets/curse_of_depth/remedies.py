from snippets.curse_of_depth.depth_scaling import scale_norms, scale_writers
from snippets.curse_of_depth.stream import trace
from snippets.pre_norm_vs_post_norm.gradients import gradient_norms
from snippets.pre_norm_vs_post_norm.trial import fresh, random_text

remedies = {
    "plain Pre-Norm": lambda decoder: None,
    "LayerNorm Scaling": scale_norms,
    "GPT-2's initialization": scale_writers,
}
print("mean of 5 seeds; gradient: median")
for name, apply in remedies.items():
    print(f"\n{name}\nlayer   RMS   update   cosine   gradient")
    traces, norms = [], []
    for seed in range(5):
        decoder = fresh("Pre-Norm with final norm", 36, seed)
        apply(decoder)
        traces.append(trace(decoder, random_text(seed)))
        norms.append(gradient_norms(decoder, random_text(seed)))
    for layer in (1, 4, 9, 36):
        rows = [run[layer - 1] for run in traces]
        size, update, cosine = (
            sum(c) / len(c) for c in zip(*rows, strict=True)
        )
        gradient = sorted(run[layer - 1] for run in norms)[2]
        print(
            f"{layer:>5}{size:>6.2f}{update:>9.2f}{cosine:>9.3f}"
            f"{gradient:>11.2f}"
        )
