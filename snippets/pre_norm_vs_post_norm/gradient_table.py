from snippets.pre_norm_vs_post_norm.gradients import gradient_norms
from snippets.pre_norm_vs_post_norm.trial import (
    PLACEMENTS,
    fresh,
    random_text,
    spread,
)

print("median [lowest, highest] of 5 seeds")
for placement in PLACEMENTS:
    print(f"\n{placement}\nlayers first layer          last layer")
    for layers in (3, 12, 48):
        norms = [
            gradient_norms(fresh(placement, layers, seed), random_text(seed))
            for seed in range(5)
        ]
        first, last = ([run[i] for run in norms] for i in (0, -1))
        print(f"{layers:>6} {spread(first):<21}{spread(last)}")
