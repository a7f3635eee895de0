"""Where float16 overflows as weights or the stream grow, and who prevents it.

A stack of attention and feed-forward branches with ReLU runs in float16 under
Pre-Norm and in a sandwich, each with plain attention and with PB-Relax. A
factor grows on all matrices of the branches, on the matrices that write to the
stream only, or on the stream that goes in. Every tensor is stored in float16;
products accumulate in float32 and are rounded once, norms and softmax compute in
float32, as torch's kernels on a CPU do. The same rounded weights and inputs in
float64 say what the values should have been.

A row is one forward pass. `infinite` and `nan` are the shares of such numbers
at four places, over all layers: the product of queries and keys, the hidden
vector of the feed-forward network, the branch's output in front of any exit
norm, and the stream, at the start and behind each sum. `beyond` is the share of
float64 values there that float16 cannot hold, and `first` the place of the first
number that is not finite, in the order of the computation (null: none).
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step
from scripts.measure.spread import integer

PLACES = ("logits", "hidden", "output", "stream")
METHODS = {  # name: (sandwich, PB-Relax)
    "pre": (False, False),
    "sandwich": (True, False),
    "pre_relaxed": (False, True),
    "sandwich_relaxed": (True, True),
}
SWEEPS = {  # name: endings of the parameters that the factor multiplies
    "weights": ("query", "key", "value", "output", "up", "down"),
    "writers": ("output", "down"),
    "stream": (),
}
LARGEST = 65504.0  # of float16
RELAX = 32.0  # CogView's alpha
SEEDS = tuple(range(5))
METHOD = (
    "one forward pass at initialization, random inputs of RMS 1, no mask; tensors "
    "stored in float16, products accumulated in float32, norms and softmax computed "
    "in float32; float64 with the same rounded weights as reference"
)
SIZES = {
    "tiny": dict(d=32, layers=2, batch=1, time=16, per_decade=1),
    "small": dict(d=64, layers=12, batch=4, time=32, per_decade=6),
    "full": dict(d=1024, layers=24, batch=8, time=256, per_decade=6),
}
DECADES = 4.5


def factors(size: str) -> list[float]:
    """From 1, evenly spaced in the logarithm."""
    each = SIZES[size]["per_decade"]
    return [10 ** (i / each) for i in range(int(DECADES * each) + 1)]


def make_blocks(size: str, sandwich: bool, sweep: str, factor: float, seed: int):
    """The site's stack in float64, some of its matrices multiplied."""
    import torch

    from snippets.sandwich_norm.blocks import SandwichNorm
    from snippets.sandwich_norm.stacks import PreNorm, stack

    setting = SIZES[size]
    placement = SandwichNorm if sandwich else PreNorm
    blocks = stack(placement, setting["layers"], setting["d"], seed=seed)
    endings = tuple(f"{name}.weight" for name in SWEEPS[sweep])
    with torch.no_grad():
        for name, parameter in blocks.named_parameters():
            if endings and name.endswith(endings):
                parameter *= factor
    return blocks


def attention(branch, x, relaxed: bool, note):
    """The branch's attention written out, so that its logits can be seen."""
    import torch

    from snippets.sandwich_norm.pb_relax import relaxed_softmax

    q, k = branch.queries_and_keys(x)
    v = branch.split(branch.value(x))
    root = q.shape[-1] ** 0.5
    if relaxed:
        note("logits", (q / (RELAX * root)) @ k.mT)
        weights = relaxed_softmax(q, k, RELAX)
    else:
        logits = q @ k.mT
        note("logits", logits)
        weights = torch.softmax(logits / root, dim=-1)
    return branch.output((weights @ v).transpose(1, 2).flatten(start_dim=2))


def forward(blocks, x, relaxed: bool, note):
    """The stream behind all blocks; note(place, tensor) sees all that is stored."""
    import torch

    note("stream", x)
    for block in blocks:
        seen = block.pre(x)
        if hasattr(block.branch, "up"):
            hidden = torch.relu(block.branch.up(seen))
            note("hidden", hidden)
            y = block.branch.down(hidden)
        else:
            y = attention(block.branch, seen, relaxed, note)
        note("output", y)
        x = x + (block.post(y) if hasattr(block, "post") else y)
        note("stream", x)
    return x


class Counts:
    """Numbers of each kind at each place, and where the first one broke."""

    def __init__(self) -> None:
        self.total = dict.fromkeys(PLACES, 0)
        self.infinite, self.nan, self.beyond = (
            dict.fromkeys(PLACES, 0) for _ in range(3)
        )
        self.first = None

    def __call__(self, place, tensor) -> None:
        infinite, nan = tensor.isinf().sum().item(), tensor.isnan().sum().item()
        self.total[place] += tensor.numel()
        self.infinite[place] += infinite
        self.nan[place] += nan
        self.beyond[place] += (tensor.abs() > LARGEST).sum().item()
        if self.first is None and infinite + nan:
            self.first = place

    def shares(self, of: dict) -> list[float]:
        return [of[place] / self.total[place] for place in PLACES]


def run(size: str, method: str, sweep: str, seed: int) -> list[dict]:
    """One forward pass for each factor."""
    import torch

    from snippets.rms_norm.reference import rms_norm

    setting = SIZES[size]
    sandwich, relaxed = METHODS[method]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = [setting[name] for name in ("batch", "time", "d")]
    generator = torch.Generator().manual_seed(1000 + seed)
    x = rms_norm(torch.randn(shape, dtype=torch.float64, generator=generator))
    rows = []
    for factor in factors(size):
        blocks = make_blocks(size, sandwich, sweep, factor, seed).to(device).half()
        start = (x * factor if sweep == "stream" else x).to(device).half()
        half, wide = Counts(), Counts()
        with torch.no_grad():
            forward(blocks, start, relaxed, half)
            forward(blocks.double(), start.double(), relaxed, wide)
        rows.append(
            {
                "method": method,
                "sweep": sweep,
                "seed": seed,
                "d": setting["d"],
                "layers": setting["layers"],
                "factor": factor,
                "first": half.first,
                "infinite": half.shares(half.infinite),
                "nan": half.shares(half.nan),
                "beyond": wide.shares(wide.beyond),
            }
        )
    return rows


def measure(size: str) -> list[Step]:
    """One step is one method under one growing factor."""
    return [
        Step(
            {"method": method, "sweep": sweep, "seed": seed},
            partial(run, size, method, sweep, seed),
        )
        for seed in SEEDS
        for sweep in SWEEPS
        for method in METHODS
    ]


# What was asked, and how it was held equal ---------------------------------


def _runs(record) -> list[Run]:
    """Stacks as drawn; arms are compared within what the factor multiplies."""
    return [
        Run(row["method"], row["seed"], (row["sweep"],), width=row["d"], steps=0)
        for row in record.select(factor=1.0)
    ]


DESIGN = Design(
    says=("at_initialization",),
    arms=tuple(METHODS),
    runs=_runs,
    **design_words(__file__),
)


# What the page says -------------------------------------------------------

SHOWN = 100  # the factor on all matrices that the page looks at


def _lost(row: dict, place: str) -> float:
    i = PLACES.index(place)
    return row["infinite"][i] + row["nan"][i]


def _factor(value: float) -> str:
    return integer(float(f"{value:.2g}"))


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.995 else "100%"


def facts(record) -> dict[str, str]:
    from statistics import median

    first = record.rows[0]
    seeds = sorted({row["seed"] for row in record.rows})
    found = {
        "seeds": str(len(seeds)),
        "d": str(first["d"]),
        "branches": str(2 * first["layers"]),
        "shown": str(SHOWN),
    }
    for sweep in SWEEPS:
        for method in METHODS:
            name = f"{sweep}_{method}"
            rows = record.select(sweep=sweep, method=method)
            breaks = []
            for seed in seeds:
                broken = [r for r in rows if r["seed"] == seed and r["first"]]
                breaks.append(min(broken, key=lambda row: row["factor"], default=None))
            seen = [row for row in breaks if row]
            least = min((row["factor"] for row in seen), default=None)
            found[f"{name}_breaks"] = _factor(least) if least else "–"
            for place in PLACES:
                count = sum(row["first"] == place for row in seen)
                found[f"{name}_first_{place}"] = str(count)
    for method in METHODS:
        rows = [
            row
            for row in record.select(sweep="weights", method=method)
            if abs(row["factor"] / SHOWN - 1) < 1e-3
        ]
        for i, place in enumerate(PLACES):
            beyond = median(row["beyond"][i] for row in rows)
            lost = median(_lost(row, place) for row in rows)
            found[f"{method}_{place}_beyond"] = _percent(beyond)
            found[f"{method}_{place}_lost"] = _percent(lost)
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from statistics import median

    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from scripts.measure import figures

    figure, axes = figures.new_figure(
        words, record, rows=3, columns=2, height=5.8, sharey=True
    )
    panels = [("weights", method) for method in METHODS]
    panels += [("writers", "pre"), ("writers", "sandwich")]
    ticks = {"weights": (100, 300, 1000), "writers": (5000, 10000, 20000)}
    limits = {"weights": (40, 1500), "writers": (4000, 36000)}
    for axis, (sweep, method) in zip(axes.flat, panels, strict=True):
        rows = record.select(sweep=sweep, method=method)
        least, most = limits[sweep]
        inside = sorted({r["factor"] for r in rows if least <= r["factor"] <= most})

        def line(value, label, rows=rows, inside=inside, axis=axis, **drawn):
            values = [
                median(100 * value(row) for row in rows if row["factor"] == factor)
                for factor in inside
            ]
            shown = [v if v > 0 else float("nan") for v in values]
            axis.plot(inside, shown, label=label, **drawn)

        line(
            lambda row: _lost(row, "stream"),
            words["lost"],
            color=figures.MUTED,
            linewidth=4,
            marker="",
            alpha=0.45,
        )
        for i, place in enumerate(PLACES):
            if place == "hidden":  # nothing beyond float16 in these panels
                continue
            line(lambda row, i=i: row["beyond"][i], words[place], **figures.style(i))
        title = words[method]
        axis.set_title(f"{title}: {words['writers']}" if sweep == "writers" else title)
        axis.set_xscale("log")
        axis.set_xlim(least, most)
        axis.xaxis.set_major_locator(FixedLocator(ticks[sweep]))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: _factor(v)))
        axis.tick_params(left=False, bottom=False)
    for axis in axes[:, 0]:
        axis.set_ylabel(words["share"])
        axis.set_yscale("log")
        axis.set_ylim(1e-3, 200)
        axis.yaxis.set_major_locator(FixedLocator((0.001, 0.1, 10, 100)))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    for axis in axes[2]:
        axis.set_xlabel(words["factor"])
    figures.legend(figure)
    figures.footer(figure, record, words, words["band"])
    return figure
