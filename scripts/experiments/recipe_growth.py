"""What do residual recipes do to a fresh stack, and to its first step?

Every recipe of the page wraps the same branches, drawn from the same seed, in
stacks of 4 to 64 layers at two widths. Before any step: how large the stream is
behind each layer, how far the last layer moves it, how the gradient of the first
layer compares with that of the last, how alike the tokens have become, and how
far the output moves for one unit of an SGD step and of a step along the signs.

Float64, since LayerScale starts at a millionth. The change of the output is its
derivative along the step, so the size of the step does not enter.

T-Fixup has two arms: with its embeddings scaled, as its authors do, and without.

A row holds one run. `stream` is the RMS before the first layer and behind each.
Where a recipe carries two streams it is the plain sum; in Attention Residuals
the mean that the next branch reads. `share` is RMS(change of the last layer) /
RMS(stream in front of it). `gradients` belong to the last matrix of the
feed-forward network in the first and in the last layer. `changes` are the RMS
of the output's derivative along one step: SGD and signs on the branches'
matrices, then on everything that learns.
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step
from scripts.measure.spread import number

PARALLEL = True
SEEDS = tuple(range(8))
METHOD = (
    "attention and ReLU network without biases, Xavier normal, the same draws for "
    "all recipes of a seed; input: LayerNorm of normal noise, RMS 1 (T-Fixup: times "
    "(9N)^(-1/4)); loss: the mean "
    "over tokens of a random linear function of the output; a step changes the "
    "parameters by their gradient, or by its signs; float64"
)
RECIPES = (
    "post", "pre", "gpt2", "sandwich", "reordered", "lns", "mix_ln", "deepnorm",
    "admin", "t_fixup", "t_fixup_unscaled", "rezero", "layer_scale", "magneto",
    "residual", "siamese", "pangu", "gpas", "depth_mup", "complete_p",
    "attention_residuals",
)  # fmt: skip
CHANGES = ("sgd", "signs", "sgd_all", "signs_all")
T_FIXUP = ("t_fixup", "t_fixup_unscaled")  # the second without its embeddings
NORMLESS = (*T_FIXUP, "rezero")
SIZES = {
    "tiny": dict(widths=(8, 16), heads=2, depths=(2, 4), batch=2, time=5),
    "small": dict(widths=(32, 128), heads=4, depths=(4, 16, 64), batch=2, time=8),
    "full": dict(widths=(256, 1024), heads=8, depths=(4, 16, 64), batch=4, time=32),
}


def branches(recipe: str, layers: int, d: int, heads: int) -> list:
    """Two a layer, drawn and rescaled as the recipe starts them."""
    import torch

    from snippets.deepnorm.block import Attention, FeedForward, initialize
    from snippets.deepnorm.coefficients import coefficients
    from snippets.residual_recipes.magneto import magneto_gains, sub_ln
    from snippets.residual_recipes.t_fixup import t_fixup, t_fixup_factor
    from snippets.sandwich_norm.attention import CausalAttention

    gain = 1.0
    if recipe == "deepnorm":
        gain = coefficients(decoder_layers=layers)["decoder"].beta
    elif recipe == "magneto":
        gain = magneto_gains(decoder_layers=layers)["decoder"]
    found = []
    for _ in range(layers):
        attention = Attention(d, heads)
        if recipe == "reordered":
            attention = CausalAttention(d, heads, qk_norm=True)
        for branch in (attention, FeedForward(d)):
            if recipe == "magneto":
                sub_ln(branch)
            initialize(branch, gain)
            with torch.no_grad():
                if recipe in T_FIXUP:
                    t_fixup(branch, t_fixup_factor("encoder", layers))
                elif recipe == "gpt2":
                    for name in ("output", "down"):
                        if hasattr(branch, name):
                            getattr(branch, name).weight.mul_((2 * layers) ** -0.5)
            found.append(branch)
    return found


def block(recipe: str, branch, index: int, layers: int, d: int, least: int):
    """The recipe's block around a branch; index counts sublayers from 0."""
    from torch import nn

    from snippets.curse_of_depth.depth_scaling import ScaledNorm
    from snippets.deepnorm.block import DeepNorm
    from snippets.deepnorm.coefficients import coefficients
    from snippets.residual_recipes.admin import Admin
    from snippets.residual_recipes.attention_residuals import AttentionResidual
    from snippets.residual_recipes.complete_p import DepthScaled
    from snippets.residual_recipes.gpas import GPAS, PreNormGPAS
    from snippets.residual_recipes.layer_scale import LayerScale, initial_scale
    from snippets.residual_recipes.residual_dual import ResiDual
    from snippets.residual_recipes.siamese import Siamese
    from snippets.sandwich_norm.blocks import ReorderedNorm, SandwichNorm
    from snippets.without_normalization.residual import ScaledResidual

    layer, norm = index // 2 + 1, nn.LayerNorm(d)
    post = recipe == "post" or (recipe == "mix_ln" and layer <= layers // 4)
    if post:
        return DeepNorm(branch, d, alpha=1.0)
    if recipe == "deepnorm":
        return DeepNorm(branch, d, coefficients(decoder_layers=layers)["decoder"].alpha)
    if recipe in T_FIXUP:
        made = ScaledResidual(branch, alpha=1.0)
        made.alpha.requires_grad_(False)
        return made
    return {
        "sandwich": lambda: SandwichNorm(branch, d),
        "pangu": lambda: SandwichNorm(branch, d),
        "reordered": lambda: ReorderedNorm(branch, d),
        "lns": lambda: DepthScaled(branch, ScaledNorm(norm, layer), 1.0),
        "admin": lambda: Admin(branch, d),
        "rezero": lambda: ScaledResidual(branch),
        "layer_scale": lambda: LayerScale(branch, norm, d, initial_scale(layers)),
        "residual": lambda: ResiDual(branch, d),
        "siamese": lambda: Siamese(branch, d, layer),
        "gpas": lambda: PreNormGPAS(branch, norm, GPAS()),
        "depth_mup": lambda: DepthScaled(branch, norm, layers / least, 0.5),
        "complete_p": lambda: DepthScaled(branch, norm, layers / least, 1.0),
        "attention_residuals": lambda: AttentionResidual(branch, d),
    }.get(recipe, lambda: DepthScaled(branch, norm, 1.0))()  # Pre-Norm


def fresh(recipe: str, layers: int, d: int, size: dict, seed: int):
    """(model, x, target): a stack at initialization and what it is shown."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    from snippets.residual_recipes.admin import profile
    from snippets.residual_recipes.attention_residuals import AttentionResidualEnd
    from snippets.residual_recipes.depth_scaled import scale_exits
    from snippets.residual_recipes.residual_dual import ResiDualEnd
    from snippets.residual_recipes.siamese import SiameseEnd
    from snippets.residual_recipes.t_fixup import t_fixup_factor

    torch.manual_seed(seed)
    drawn = branches(recipe, layers, d, size["heads"])
    least = size["depths"][0]
    blocks = [block(recipe, b, i, layers, d, least) for i, b in enumerate(drawn)]
    ends = {
        "residual": ResiDualEnd,
        "siamese": SiameseEnd,
        "attention_residuals": AttentionResidualEnd,
    }
    bare = ("post", "deepnorm", "admin", *NORMLESS)
    end = nn.Identity() if recipe in bare else ends.get(recipe, nn.LayerNorm)(d)
    model = nn.ModuleDict({"blocks": nn.ModuleList(blocks), "end": end}).double()
    if recipe == "pangu":
        scale_exits(blocks)
    generator = torch.Generator().manual_seed(1000 + seed)
    shape = (2, size["batch"], size["time"], d)
    x, target = torch.randn(shape, dtype=torch.float64, generator=generator)
    x = F.layer_norm(x, (d,))
    if recipe == "t_fixup":
        x = x * t_fixup_factor("decoder", layers)
    if recipe == "admin":
        profile(blocks, x)
    return model, x, target


def start(recipe: str, x):
    """What the first block is given."""
    if recipe in ("residual", "siamese"):
        return x, x
    return (x,) if recipe == "attention_residuals" else x


def stream(recipe: str, state):
    """The stream that the page's table speaks of."""
    if recipe in ("residual", "siamese"):
        return state[1]
    if recipe == "attention_residuals":
        return sum(state) / len(state)  # as all queries are still zero
    return state


def output(model, recipe: str, x):
    state = start(recipe, x)
    for each in model["blocks"]:
        state = each(state)
    return model["end"](state)


def rms(x) -> float:
    return x.square().mean().sqrt().item()


def token_cosine(x) -> float:
    """Mean cosine of two different tokens of a sequence; x is (batch, time, d)."""
    from torch.nn import functional as F

    unit = F.normalize(x, dim=-1)
    time = x.shape[1]
    total = (unit @ unit.mT).sum(dim=(1, 2)) - time
    return (total / (time * (time - 1))).mean().item()


def moved(model, recipe: str, x, direction: dict) -> float:
    """RMS of the output's derivative along a direction of the parameters.

    By a central difference; the step is a ten-millionth of the parameters.
    """
    import torch

    direction = {held: slope for held, slope in direction.items() if slope.any()}
    if not direction:
        return 0.0
    before = [held.detach().clone() for held in direction]
    size, length = (
        torch.stack([tensor.norm() for tensor in tensors]).norm().item()
        for tensors in (before, direction.values())
    )
    step, ends = 1e-7 * max(size, 1e-3) / length, []
    with torch.no_grad():
        for sign in (1, -1):
            for value, (held, slope) in zip(before, direction.items(), strict=True):
                held.copy_(value).add_(slope, alpha=sign * step)
            ends.append(output(model, recipe, x))
        for value, held in zip(before, direction, strict=True):
            held.copy_(value)
    return rms(ends[0] - ends[1]) / (2 * step)


def run(recipe: str, layers: int, d: int, size: dict, seed: int) -> dict:
    """One row: everything measured of one stack."""
    import torch
    from torch import nn

    model, x, target = fresh(recipe, layers, d, size, seed)
    with torch.no_grad():
        state = start(recipe, x)
        streams = [stream(recipe, state)]
        for index, each in enumerate(model["blocks"]):
            state = each(state)
            if index % 2:
                streams.append(stream(recipe, state))
    y = output(model, recipe, x)
    (y * target).sum(dim=-1).mean().backward()
    networks = [
        model["blocks"][i].body if recipe in NORMLESS else model["blocks"][i].branch
        for i in (1, -1)
    ]
    learned = {p: p.grad for p in model.parameters() if p.grad is not None}
    linear = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
    matrices = {weight: learned[weight] for weight in linear}
    changes = []
    for group in (matrices, learned):
        signs = {held: slope.sign() for held, slope in group.items()}
        changes += [moved(model, recipe, x, each) for each in (group, signs)]
    return {
        "recipe": recipe,
        "layers": layers,
        "d": d,
        "seed": seed,
        "stream": [rms(each) for each in streams],
        "share": rms(streams[-1] - streams[-2]) / rms(streams[-2]),
        "gradients": [each.down.weight.grad.norm().item() for each in networks],
        "cosine": token_cosine(y.detach()),
        "changes": changes,
    }


def measure(size: str) -> list[Step]:
    """One step computes all seeds of one stack."""
    setting = SIZES[size]

    def rows(recipe, layers, d):
        return [run(recipe, layers, d, setting, seed) for seed in SEEDS]

    return [
        Step(
            {"recipe": recipe, "layers": layers, "d": d},
            partial(rows, recipe, layers, d),
            cost=layers * d * d,
        )
        for d in setting["widths"]
        for layers in setting["depths"]
        for recipe in RECIPES
    ]


# What was asked, and how it was held equal ---------------------------------


def _runs(record) -> list[Run]:
    """Every stack as drawn: nothing is trained."""
    return [
        Run(row["recipe"], row["seed"], (row["layers"],), width=row["d"], steps=0)
        for row in record.rows
    ]


DESIGN = Design(
    says=("at_initialization",),
    arms=RECIPES,
    runs=_runs,
    **design_words(__file__),
)


# What the page says -------------------------------------------------------


def _values(record, recipe: str, d: int, layers: int, of) -> list:
    """of(row) for each seed, in order."""
    rows = record.select(recipe=recipe, d=d, layers=layers)
    return [of(row) for row in sorted(rows, key=lambda row: row["seed"])]


def _grid(record) -> tuple[list[int], list[int]]:
    """(widths, depths) of which every recipe has its rows."""
    rows = record.rows
    widths = sorted({row["d"] for row in rows})
    depths = sorted({row["layers"] for row in rows})
    return widths, depths


def _longer(row: dict) -> float:
    return row["stream"][-1] / row["stream"][0]


def _exponent(sizes: list[float]) -> float:
    """p of the law RMS = c * l ** p over the upper three quarters of the layers."""
    from math import log
    from statistics import linear_regression

    most = len(sizes) - 1
    layers = range(max(most // 4, 1), most + 1)
    logs = [log(layer) for layer in layers], [log(sizes[layer]) for layer in layers]
    return linear_regression(*logs).slope


def _ratio(over: float, under: float) -> float:
    """A ratio; 0 where nothing moves at all."""
    return over / under if under else 0.0


def _factor(value: float) -> str:
    """Three digits at most: 0, 1.5e-09, 0.04, 1.28, 12.3, 345."""
    if value and value < 0.005:
        return f"{value:.0e}"
    digits = 0 if value >= 99.5 or not value else 1 if value >= 9.95 else 2
    return number(value, digits)


def growth(record, recipe: str, d: int, change: str) -> list[float]:
    """Change of the output, deepest over least, by seed; "stream": last over first."""
    _, depths = _grid(record)
    if change == "stream":
        return _values(record, recipe, d, depths[-1], _longer)
    at = CHANGES.index(change)
    under, over = (
        _values(record, recipe, d, layers, lambda row: row["changes"][at])
        for layers in (depths[0], depths[-1])
    )
    return [_ratio(a, b) for a, b in zip(over, under, strict=True)]


def facts(record) -> dict[str, str]:
    from statistics import median

    widths, depths = _grid(record)
    most = depths[-1]
    size = SIZES[record.size]
    found = {
        "seeds": str(len(record.provenance["seeds"])),
        "narrow": str(widths[0]),
        "wide": str(widths[-1]),
        "least": str(depths[0]),
        "middle": str(depths[len(depths) // 2]),
        "most": str(most),
        "tokens": str(size["batch"] * size["time"]),
    }
    for recipe in RECIPES:
        for d, suffix in ((widths[-1], ""), (widths[0], "_narrow")):

            def note(name, of, write, recipe=recipe, d=d, suffix=suffix):
                values = _values(record, recipe, d, most, of)
                found[f"{recipe}_{name}{suffix}"] = write(median(values))

            note("rms", _longer, _factor)
            note("p", lambda row: _exponent(row["stream"]), number)
            note("share", lambda row: 100 * row["share"], lambda v: f"{_factor(v)}%")
            note("cosine", lambda row: row["cosine"], number)
            note("gradient", lambda row: _ratio(*row["gradients"]), _factor)
            for change in CHANGES:
                grown = growth(record, recipe, d, change)
                found[f"{recipe}_{change}{suffix}"] = _factor(median(grown))
                if change in ("sgd", "sgd_all"):
                    low, high = min(grown), max(grown)
                    text = f"[{_factor(low)}, {_factor(high)}]"
                    found[f"{recipe}_{change}{suffix}_range"] = text
    rate = (depths[0] / most) ** 0.5  # of the deep stack, by depth-muP's own rule
    grown = median(growth(record, "depth_mup", widths[-1], "signs"))
    return found | {"depth_mup_signs_lowered": _factor(rate * grown)}


WORDS = figure_words(__file__)
LEAST = 0.03  # of the figure's axis; what is smaller is written at its edge


def plot(record, words):
    from statistics import median

    from scripts.measure import figures

    widths, _ = _grid(record)
    figure, axis = figures.new_figure(words, record, height=6.6)
    places = list(range(len(RECIPES)))[::-1]
    for series, name in enumerate(("stream", "sgd", "signs")):
        for d in widths:
            sizes = [median(growth(record, r, d, name)) for r in RECIPES]
            drawn = {**figures.style(series), "linestyle": "none"}
            wide = d == widths[-1]
            for place, size in zip(places, sizes, strict=True):
                if wide and size < LEAST:  # written side by side, at the edge
                    text = dict(color=drawn["color"], fontsize="x-small", va="center")
                    edge = LEAST * 3.2 ** (series - 1)
                    axis.text(edge, place, f"\u25c2 {_factor(size)}", **text)
            axis.plot(
                [size if size >= LEAST else None for size in sizes],
                [place + 0.22 * (1 - series) for place in places],
                markersize=5.5 if wide else 3,
                alpha=1.0 if wide else 0.5,
                label=words[name] if wide else None,
                **drawn,
            )
    axis.axvline(1, color=figures.MUTED, linewidth=1)
    for place in places[:-1]:
        axis.axhline(place - 0.5, color=figures.MUTED, linewidth=0.4, alpha=0.5)
    axis.set_yticks(places, [words[recipe] for recipe in RECIPES])
    axis.set_ylim(-0.6, len(RECIPES) - 0.4)
    axis.set(xscale="log", xlim=(LEAST, None))
    figures.plain_log(axis.xaxis)
    axis.set_xlabel(words["factor"])
    axis.grid(visible=False, axis="y")
    figures.legend(figure, columns=1)
    figures.footer(figure, record, words, words["band"])
    return figure
