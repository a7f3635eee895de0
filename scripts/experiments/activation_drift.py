"""What a deep plain stack does to activations and to gradients.

A stack of linear layers, each with an activation behind it, no residual
connection, at initialization. Between the linear layer and the activation
stands no norm, BatchNorm, LayerNorm or RMSNorm, without gain and bias. Inputs
and the gradient that is sent in at the last layer are standard normal.

A row is one stack. `size`, `spread` and `gradient` are lists along the depth:
the RMS of the activations, the part of it in which the inputs differ, and the
RMS of the gradient with respect to the activations. They are taken in float64
at layers 0 (the input) to 8, then at every fourth. `gradient_of_8` is the RMS
of the gradient at layers 0 to 8 if the stack ends there. The same stack then
runs in float32: `overflow` is the first layer with a number that is not finite,
`gradient_overflow` the last one whose gradient has such a number (null: none),
`gradient_zeros` the share of zeros in the gradient at the input.
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

ACTIVATIONS = ("ReLU", "GELU", "tanh")
NORMS = ("none", "BatchNorm", "LayerNorm", "RMSNorm")
INITS = ("default", "Xavier", "He", "unit normal")
EIGHT = 8  # the depth of the demonstration
EVERY = 4  # behind it, every so many layers are kept
EPS = 1e-5  # PyTorch's default for BatchNorm and LayerNorm
SEEDS = tuple(range(5))
METHOD = (
    "linear layers of PyTorch at initialization, norms without gain and bias between "
    "linear layer and activation; sizes in float64, overflow from the same stack in "
    "float32; RMS over all inputs and features of a layer"
)
SIZES = {
    "tiny": dict(d=16, batch=16, depth=16),
    "small": dict(d=256, batch=256, depth=64),
    "full": dict(d=1024, batch=1024, depth=64),
}


def kept(depth: int) -> list[int]:
    """The layers that a row holds; 0 is the input."""
    return [*range(EIGHT + 1), *range(EIGHT + EVERY, depth + 1, EVERY)]


def make_stack(init: str, depth: int, d: int, device: str) -> list:
    """nn.Linear layers, float32; all but the default start without biases."""
    from torch import nn

    draw = {
        "default": None,  # uniform within 1/√d, the biases too
        "Xavier": nn.init.xavier_normal_,
        "He": partial(nn.init.kaiming_normal_, nonlinearity="relu"),
        "unit normal": nn.init.normal_,
    }[init]
    layers = [nn.Linear(d, d, device=device) for _ in range(depth)]
    for layer in layers:
        layer.requires_grad_(False)
        if draw:
            draw(layer.weight)
            nn.init.zeros_(layer.bias)
    return layers


def normalize(x, norm: str):
    """x is (inputs, d)."""
    from snippets.rms_norm.reference import rms_norm
    from snippets.why_normalize.standardize import standardize

    if norm == "none":
        return x
    if norm == "RMSNorm":
        return rms_norm(x, eps=EPS)
    return standardize(x, dim={"BatchNorm": 0, "LayerNorm": -1}[norm], eps=EPS)


def forward(x, layers, norm: str, activation: str) -> list:
    """The input and the activations of every layer."""
    import torch
    from torch.nn import functional as F

    act = {"ReLU": torch.relu, "GELU": F.gelu, "tanh": torch.tanh}[activation]
    states = [x]
    for layer in layers:
        y = F.linear(states[-1], layer.weight.to(x), layer.bias.to(x))
        states.append(act(normalize(y, norm)))
    return states


def run(size: str, activation: str, norm: str, seed: int) -> list[dict]:
    """One stack for each initialization."""
    import torch

    from snippets.why_normalize import deep_stack

    setting = SIZES[size]
    d, batch, depth = (setting[name] for name in ("d", "batch", "depth"))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    places = kept(depth)

    def sizes(tensors):
        return [deep_stack.size(tensor).item() for tensor in tensors]

    rows = []
    for init in INITS:
        torch.manual_seed(seed)
        x, sent = torch.randn(2, batch, d, device=device)
        layers = make_stack(init, depth, d, device)

        states = forward(x.double().requires_grad_(), layers, norm, activation)
        short = states[: EIGHT + 1]
        of_8 = torch.autograd.grad(short[-1], short, sent.double(), retain_graph=True)
        grads = torch.autograd.grad(states[-1], states, sent.double())

        narrow = forward(x.requires_grad_(), layers, norm, activation)
        narrow_grads = torch.autograd.grad(narrow[-1], narrow, sent)

        def broken(tensors):
            return [i for i, t in enumerate(tensors) if not t.isfinite().all()]

        overflow, gradient_overflow = broken(narrow), broken(narrow_grads)
        rows.append(
            {
                "activation": activation,
                "norm": norm,
                "init": init,
                "seed": seed,
                "d": d,
                "batch": batch,
                "depth": depth,
                "overflow": overflow[0] if overflow else None,
                "gradient_overflow": gradient_overflow[-1]
                if gradient_overflow
                else None,
                "gradient_zeros": (narrow_grads[0] == 0).double().mean().item(),
                "size": sizes(states[i] for i in places),
                "spread": [deep_stack.spread(states[i]).item() for i in places],
                "gradient": sizes(grads[i] for i in places),
                "gradient_of_8": sizes(of_8),
            }
        )
    return rows


def measure(size: str) -> list[Step]:
    """One step is one activation with one norm, at each initialization."""
    return [
        Step(
            {"activation": activation, "norm": norm, "seed": seed},
            partial(run, size, activation, norm, seed),
        )
        for seed in SEEDS
        for activation in ACTIVATIONS
        for norm in NORMS
    ]


# What was asked, and how it was held equal ---------------------------------


def _runs(record) -> list[Run]:
    """Stacks as drawn; arms are compared within an activation and initialization."""
    return [
        Run(
            row["norm"],
            row["seed"],
            cell=(row["activation"], row["init"]),
            width=row["d"],
            steps=0,
        )
        for row in record.rows
    ]


DESIGN = Design(
    says=("at_initialization",),
    arms=NORMS,
    runs=_runs,
    **design_words(__file__),
)


# What the page says -------------------------------------------------------

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _profiles(rows: list[dict], quantity: str) -> list[list[float]]:
    """One list along the kept layers for each row.

    `spread` is a share of the size, `gradient` relative to the one sent in.
    """
    if quantity == "spread":
        return [
            [a / b for a, b in zip(row["spread"], row["size"], strict=True)]
            for row in rows
        ]
    if quantity == "size":
        return [row["size"] for row in rows]
    return [[value / row[quantity][-1] for value in row[quantity]] for row in rows]


def _at(rows: list[dict], quantity: str, deep: bool) -> list[float]:
    """A quantity behind all layers or behind eight; a gradient at the input."""
    if quantity == "gradient":
        name = "gradient" if deep else "gradient_of_8"
        return [profile[0] for profile in _profiles(rows, name)]
    return [profile[-1 if deep else EIGHT] for profile in _profiles(rows, quantity)]


def _number(value: float) -> str:
    """Two digits as people write them: 0.0026, 4.2, 730, 3×10⁻⁷."""
    if 0.000995 <= value < 995:
        digits = float(f"{value:.2g}")
        if digits < 1:
            return f"{digits:#.2g}"
        return f"{digits:.1f}" if digits < 10 else f"{digits:.0f}"
    mantissa, exponent = f"{value:.0e}".split("e")
    power = str(int(exponent)).translate(SUPERSCRIPT)
    return f"10{power}" if mantissa == "1" else f"{mantissa}×10{power}"


def _ratio(values: list[float]) -> float:
    return max(values) / min(values)


def predicted_growth(norm: str, activation: str) -> float:
    """The factor by which a layer with a norm changes the gradient's RMS.

    z is the standard normal number behind the norm. W and what the norm divides
    by leave E phi'(z)^2 / E phi(z)^2; BatchNorm divides by the deviation over
    the inputs, so there the variance of phi(z) stands below.
    """
    from math import cosh, erf, exp, pi, sqrt, tanh

    def normal(z):
        return exp(-z * z / 2) / sqrt(2 * pi)

    def below(z):
        return (1 + erf(z / sqrt(2))) / 2

    value, slope = {
        "ReLU": (lambda z: max(z, 0), lambda z: float(z > 0)),
        "GELU": (lambda z: z * below(z), lambda z: below(z) + z * normal(z)),
        "tanh": (tanh, lambda z: cosh(z) ** -2),
    }[activation]

    def mean(f):  # midpoints over ±9 standard deviations
        width = 0.01
        points = [width * (i + 0.5) for i in range(-900, 900)]
        return width * sum(f(z) * normal(z) for z in points)

    below_line = mean(lambda z: value(z) ** 2)
    if norm == "BatchNorm":
        below_line -= mean(value) ** 2
    return sqrt(mean(lambda z: slope(z) ** 2) / below_line)


def facts(record) -> dict[str, str]:
    from statistics import median

    first = record.rows[0]
    depth = first["depth"]
    found = {
        "seeds": str(len({row["seed"] for row in record.rows})),
        "d": str(first["d"]),
        "batch": str(first["batch"]),
        "depth": str(depth),
    }
    by_seed = {"size": [], "gradient": []}
    for activation in ACTIVATIONS:
        for init in INITS:
            rows = record.select(activation=activation, norm="none", init=init)
            cell = f"{activation}_{init.split()[0]}".lower()
            for quantity in ("size", "spread", "gradient"):
                for deep, where in ((False, "8"), (True, "end")):
                    values = _at(rows, quantity, deep)
                    found[f"{cell}_{quantity}_{where}"] = _number(median(values))
                    if quantity in by_seed and not deep:
                        by_seed[quantity].append(_ratio(values))
    for quantity, ratios in by_seed.items():
        found[f"{quantity}_by_seed_8"] = f"{max(ratios):.1f}"

    by_init = []
    for norm in NORMS[1:]:
        for activation in ACTIVATIONS:
            rows = record.select(norm=norm, activation=activation)
            cell = f"{norm}_{activation}".lower()
            for quantity in ("size", "spread", "gradient"):
                values = _at(rows, quantity, True)
                found[f"{cell}_{quantity}_end"] = _number(median(values))
                if quantity == "gradient":
                    found[f"{cell}_growth"] = f"{median(values) ** (1 / depth):.2f}"
                    expected = predicted_growth(norm, activation)
                    found[f"{cell}_predicted"] = f"{expected:.2f}"
                    found[f"{cell}_gradient_least"] = _number(min(values))
                    found[f"{cell}_gradient_most"] = _number(max(values))
            medians = [
                median(_at([row for row in rows if row["init"] == init], "size", True))
                for init in INITS
            ]
            by_init.append(_ratio(medians))
    found["norm_size_by_init"] = f"{max(by_init):.2f}"

    def layers(rows):
        return [row["overflow"] for row in rows if row["overflow"] is not None]

    broken = record.select(norm="none", init="unit normal")
    loud = [row for row in broken if row["activation"] != "tanh"]
    hit = layers(loud)
    found["overflowing"] = f"{len(hit)}"
    found["overflow_tried"] = f"{len(loud)}"
    found["overflow_elsewhere"] = str(len(layers(record.rows)) - len(hit))
    ends = sorted({min(hit), max(hit)}) if hit else ["–"]
    found["overflow_layer"] = "–".join(map(str, ends))
    zeros = max(row["gradient_zeros"] for row in record.rows if row not in loud)
    found["gradient_zeros"] = f"{100 * zeros:.2g}%"
    plain = record.select(norm="none")
    found["least_gradient"] = _number(min(_at(plain, "gradient", True)))
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from statistics import median

    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from scripts.measure import figures

    places = kept(record.rows[0]["depth"])
    shown = [i for i, place in enumerate(places) if place == 4 or not place % 8]
    figure, axes = figures.new_figure(
        words, record, rows=4, columns=3, height=6.9, sharex=True, sharey="row"
    )

    scales = {  # y ticks; the first and the last are the limits
        "size": (1e-8, 1e-4, 1, 1e4, 1e8),
        "gradient": (1e-16, 1e-8, 1, 1e8, 1e16),
        "normed_gradient": (0.1, 1, 10, 1e3, 1e5),
        "normed_spread": (0.03, 0.1, 0.3, 1),
    }

    def draw(axis, rows, name, drawn, label, first):
        quantity = name.removeprefix("normed_")
        profiles = _profiles(rows, quantity)
        along = [[profile[i] for profile in profiles] for i in shown]
        at = [places[i] for i in shown]
        low, high = (list(map(edge, along)) for edge in (min, max))
        axis.plot(
            at, list(map(median, along)), label=label, markevery=(first, 5), **drawn
        )
        ticks = scales[name]
        hair = (ticks[-1] / ticks[0]) ** 0.06  # about the width of a line
        if any(b > hair * a for a, b in zip(low, high, strict=True)):
            axis.fill_between(
                at, low, high, color=drawn["color"], alpha=0.2, linewidth=0
            )

    for column, activation in enumerate(ACTIVATIONS):
        for axis, name in zip(axes[:, column], scales, strict=True):
            if name.startswith("normed_"):
                for first, norm in enumerate(NORMS[1:]):
                    rows = record.select(norm=norm, activation=activation)
                    draw(axis, rows, name, figures.style(norm), norm, first)
                continue
            here = record.select(norm="none", activation=activation)
            for series, init in enumerate(INITS):
                rows = [row for row in here if row["init"] == init]
                drawn = figures.style((0, 2, 3, 5)[series])
                if not series:
                    drawn |= {"color": figures.INK}
                draw(axis, rows, name, drawn, words[init], series)
        axes[0, column].set_title(activation)
        axes[3, column].set_xlabel(words["layer"])
    for line, (name, ticks) in enumerate(scales.items()):
        axis = axes[line, 0]
        axis.set_ylabel(words[name].replace(", ", ",\n").replace("，", "，\n"))
        axis.set_yscale("log")
        axis.set_ylim(ticks[0], 1.3 * ticks[-1])
        axis.yaxis.set_major_locator(FixedLocator(ticks))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(
            FuncFormatter(
                lambda value, _: f"{value:g}" if 0.01 < value < 99 else _number(value)
            )
        )
    axes[3, 0].xaxis.set_major_locator(FixedLocator(range(0, places[-1] + 1, 16)))
    for axis in axes.flat:
        axis.tick_params(left=False, bottom=False)
        axis.grid(visible=False, axis="x")
    axes[2, 0].set_title(" ")  # room for the second legend
    figures.legend(axes[2, 0], columns=3, columnspacing=1).set_in_layout(False)
    figures.legend(figure)
    figures.footer(figure, record, words, words["band"])
    return figure
