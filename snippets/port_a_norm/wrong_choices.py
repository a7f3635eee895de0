import torch

from snippets.port_a_norm.decoder import WORDS, Recipe, decode, weights

model = weights()
generator = torch.Generator().manual_seed(1)
tokens = torch.randint(WORDS, (16, 64), generator=generator)
theirs = Recipe()  # RMSNorm, 1 + w, both ends of a branch, QK-Norm per head
choices = {  # name: (the recipe of the weights, the one of our code)
    "one_left_out": (theirs, Recipe(form="w")),
    "one_added": (Recipe(form="w"), theirs),
    "eps_ten_times": (theirs, Recipe(eps=1e-5)),
    "mean_kept": (Recipe(kind="LayerNorm"), theirs),
    "mean_subtracted": (theirs, Recipe(kind="LayerNorm")),
    "bias_left_out": (Recipe(shift=True), theirs),
    "input_norms_left_out": (theirs, Recipe(inputs=False)),
    "input_norms_added": (Recipe(inputs=False), theirs),
    "output_norms_left_out": (theirs, Recipe(outputs=False)),
    "output_norms_added": (Recipe(outputs=False), theirs),
    "loaded_by_name_in": (theirs, Recipe(misloaded="in")),
    "loaded_by_name_out": (theirs, Recipe(misloaded="out")),
    "qk_norm_left_out": (theirs, Recipe(qk="none")),
    "qk_norm_added": (Recipe(qk="none"), theirs),
    "qk_norm_whole_projection": (theirs, Recipe(qk="projection")),
    "qk_norm_after_rope": (theirs, Recipe(qk="rotated")),
    "qk_norm_before_rope": (Recipe(qk="rotated"), theirs),
    "factor_left_out": (Recipe(factor=0.5), theirs),
    "final_norm_left_out": (theirs, Recipe(final=False)),
}


def line(name: str, right: torch.Tensor, wrong: torch.Tensor) -> None:
    right, wrong = right.double(), wrong.double()
    error = ((wrong - right).norm() / right.norm()).item()
    moved = (wrong.argmax(-1) != right.argmax(-1)).double().mean().item()
    print(f"{name:26} {error:10.1g} {moved:12.0%}")


print("wrong choice               rel. error  top changes")
for name, (right, wrong) in choices.items():
    line(name, decode(tokens, model, right), decode(tokens, model, wrong))
low = {name: tensor.bfloat16() for name, tensor in model.items()}
wide = {name: tensor.double() for name, tensor in low.items()}
after, before = (
    decode(tokens, low, Recipe(rounds=rounds)) for rounds in ("after", "before")
)
line("rounded_before_gain", after, before)
line("rounded_after_gain", before, after)
line("bfloat16_itself", decode(tokens, wide, theirs), after)
