from snippets.pre_norm_vs_post_norm.trial import fresh, random_text, spread
from snippets.warm_up.first_step import (
    first_adam_step,
    noise_shift,
)

print("median [lowest, highest] of 5 seeds")
for placement in ("Post-Norm", "Pre-Norm with final norm"):
    print(f"\n{placement}\nlayers logits move, %     loss changes by")
    for layers in (6, 12, 24):
        moved, changed = [], []
        for seed in range(5):
            text = random_text(seed)
            decoder = fresh(placement, layers, seed)
            moved.append(noise_shift(decoder, text, seed))
            changed.append(first_adam_step(decoder, text))
        print(f"{layers:>6} {spread(moved):<19}{spread(changed)}")
