"""One look for all figures, and SVG files that fit a page.

A figure is drawn with the fixed colours below; `save` then replaces each hex
by a CSS variable with the hex as its fallback, so that an inline SVG follows
the site's light and dark scheme. Files are the same bytes on every run. Only
`new_figure`, the drawing helpers and `save` need matplotlib: the site's build
asks for paths and digests without it.
"""

import contextlib
import hashlib
import io
import json
import logging
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

from scripts.measure import digest as code
from scripts.measure import series_colours, svg
from scripts.measure.records import (
    ROOT,
    Record,
    RecordError,
    dumps,
    load_experiment,
    write_whole,
)

FIGURES = ROOT / "docs" / "figures"
FONT_FILE = ROOT / "docs" / "theme" / "fonts" / "NormsFigureSC.ttf"
FONTS = ["DejaVu Sans", "Norms Figure SC"]

# The light scheme's values; each becomes var(--figure-NAME, hex) in the file.
INK = "#1f2328"  # text, axes
MUTED = "#59636e"  # ticks, footer, reference lines
GRID = "#d1d9e0"
PANEL = "#eef1f4"  # boxes behind text, shaded ranges
SERIES = ("#0072b2", "#c44e00", "#00845f", "#b5548f", "#7a7000", "#5b6bb0")
RAMP = ("#3d8fc4", "#1f6fa8", "#0f4f80", "#072f52")  # of ordered quantities
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", (0, (5, 1.5)), (0, (1.2, 1.4)), (0, (5, 1.5, 1.2, 1.5)), "--", "-.")
COLOURS = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PANEL: "panel",
    **{value: str(i) for i, value in enumerate(SERIES, start=1)},
    **{value: f"ramp-{i}" for i, value in enumerate(RAMP, start=1)},
}

SIZE = (5.0, 4.2)  # inches: text of 10 px at 390 px wide, of 16 px at 600 px
TEXT, SMALL = 10.5, 8.5  # points
EDGE = 0.08  # inches around everything

FOOTER = {
    "zh": {
        "and": "、",
        "end": "。",
        "join": "；",
        "colon": "：",
        "threads": "{} 个线程",
        "clock": "SM {} MHz",
        "driver": "驱动 {}",
        "seeds": "随机种子 {}",
        "seed": "单个随机种子 {}",
        "date": "{} 测量",
        "partial": "没有测完：{1} 步里测了 {0} 步",
        "trial": "试运行，不是记录",
        "stale": "测量代码已改动：这份数据早于当前代码",
    },
    "en": {
        "and": ", ",
        "end": ".",
        "join": "; ",
        "colon": ": ",
        "threads": "{} threads",
        "clock": "SM {} MHz",
        "driver": "driver {}",
        "seeds": "seeds {}",
        "seed": "single seed {}",
        "date": "measured {}",
        "partial": "unfinished: {0} of {1} steps",
        "trial": "trial run, not a record",
        "stale": "The measured code has changed since: these data are older than it",
    },
}


def style(series: int | str) -> dict:
    """Colour, marker and line of a series: colour is never the only cue.

    By its place, or by the name of a thing that has its own colour in every figure.
    """
    i = (
        series_colours.PLACES[series]
        if isinstance(series, str)
        else series % len(SERIES)
    )
    return {"color": SERIES[i], "marker": MARKERS[i], "linestyle": LINES[i]}


def ramp(place: int) -> dict:
    """As `style`, of ordered quantities: one hue, light to dark."""
    return style(place) | {"color": RAMP[place % len(RAMP)]}


# Words ----------------------------------------------------------------------


class _Strict(dict):
    def __missing__(self, name: str) -> str:
        raise RecordError(f"words use the fact {name!r}, which facts() does not give")


def fill(words: dict, facts: dict[str, str]) -> dict:
    """Words with their ``{fact}`` placeholders filled in."""
    return {
        key: fill(value, facts)
        if isinstance(value, dict)
        else value.format_map(_Strict(facts))
        for key, value in words.items()
    }


def words_for(record: Record, lang: str, facts: dict | None = None) -> dict:
    """An experiment's words in one language, filled from the record's facts."""
    module = load_experiment(record.experiment)
    facts = module.facts(record) if facts is None else facts
    return {**fill(module.WORDS[lang], facts), "lang": lang}


def language(words: dict) -> str:
    """``zh`` or ``en``: what the words say they are, or look like."""
    if "lang" in words:
        return words["lang"]
    return "zh" if re.search("[\u4e00-\u9fff]", words.get("title", "")) else "en"


# Paths and digests: no matplotlib -------------------------------------------


def figure_path(experiment: str, machine: str, lang: str) -> Path:
    """Where the figure stands: docs/figures/<machine>/<experiment>.<lang>.svg."""
    return FIGURES / machine / f"{experiment}.{lang}.svg"


def figure_digest(record: Record, lang: str, facts: dict | None = None) -> str:
    """The digest of everything that a figure shows or is drawn with.

    Who has the record's ``facts`` hands them over: they need not be found again.
    """
    words = words_for(record, lang, facts)
    parts = [
        record.path.read_text(encoding="utf-8") if record.path else dumps(record),
        json.dumps(words, ensure_ascii=False, sort_keys=True),
        code.part_digest(record.experiment, ("plot",)),
        code.file_digest(Path(__file__)),
        code.file_digest(Path(svg.__file__)),
        code.file_digest(Path(series_colours.__file__)),
        str(code.is_stale(record)),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[: code.DIGITS]


# Drawing --------------------------------------------------------------------


def _prepare() -> None:
    """Set matplotlib up: no window, one font, no default colour of its own."""
    import matplotlib
    from matplotlib import font_manager

    # The Chinese font has one weight; a bold title falls back to it.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    known = {font.name for font in font_manager.fontManager.ttflist}
    if FONT_FILE.exists() and FONTS[1] not in known:
        font_manager.fontManager.addfont(FONT_FILE)
        known.add(FONTS[1])
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "font.family": [name for name in FONTS if name in known],
            "font.size": TEXT,
            "axes.titlesize": TEXT,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.labelsize": TEXT,
            "xtick.labelsize": TEXT - 0.5,
            "ytick.labelsize": TEXT - 0.5,
            "legend.fontsize": TEXT - 0.5,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.edgecolor": MUTED,
            "axes.facecolor": "none",
            "axes.titlecolor": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.linewidth": 0.8,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.prop_cycle": matplotlib.cycler(
                color=SERIES, marker=MARKERS, linestyle=LINES
            ),
            "grid.color": GRID,
            "grid.linewidth": 0.7,
            "xtick.color": MUTED,
            "ytick.color": MUTED,
            "xtick.labelcolor": INK,
            "ytick.labelcolor": INK,
            "lines.linewidth": 1.8,
            "lines.markersize": 5.5,
            "lines.markeredgewidth": 0,
            "patch.edgecolor": INK,
            "patch.facecolor": SERIES[0],
            "hatch.color": INK,
            "boxplot.boxprops.color": INK,
            "legend.frameon": False,
            "legend.labelcolor": INK,
            "legend.handlelength": 2.4,
            "legend.borderaxespad": 0,
            "figure.facecolor": "none",
            "figure.edgecolor": "none",
            "savefig.facecolor": "none",
            "savefig.edgecolor": "none",
            "savefig.bbox": None,
        }
    )


@contextlib.contextmanager
def _glyphs():
    """A character that no font has is an error, once the font was cut."""
    with warnings.catch_warnings():
        action = "error" if FONT_FILE.exists() else "ignore"
        warnings.filterwarnings(action, message="Glyph .* missing")
        yield


def new_figure(
    words: dict,
    record: Record,
    rows: int = 1,
    columns: int = 1,
    height: float = SIZE[1],
    **subplots: object,
):
    """A figure with its title set: (figure, axes) as plt.subplots gives them.

    Call `footer` once everything is drawn; `save` writes the file.
    """
    _prepare()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE[0], height), layout="constrained")
    FigureCanvasAgg(figure)  # measures text; the file is SVG
    axes = figure.subplots(rows, columns, **subplots)
    figure.norms = {"words": words, "record": record, "title": 0.0, "footer": 0.0}
    figure.norms["title"] = _write(figure, words["title"], top=True, weight="bold")
    _fit(figure)
    return figure, axes


def _width(text: str, fontsize: float, weight: str = "normal", **_: object) -> float:
    """The width of one line of text as SVG lays it out, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=fontsize, weight=weight)
    with _glyphs():
        return text_to_path.get_text_width_height_descent(text, font, False)[0] / 72


# No break before these, nor after an opening bracket.
HAN = "\u2e80-\u9fff\uff00-\uffef"  # characters and full-width punctuation
CLOSING = "，。；：、）》”’！？%,.;:)]"


def _pieces(text: str) -> list[str]:
    """Text cut where a line may break: after spaces, between Han characters."""
    pieces = re.findall(
        r"[\u2e80-\u9fff\uff00-\uffef]|[^\s\u2e80-\u9fff\uff00-\uffef]+ ?|\s", text
    )
    joined: list[str] = []
    for piece in pieces:
        if joined and (piece[0] in CLOSING or joined[-1][-1] in "（《“‘(["):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def wrap(text: str, inches: float, fontsize: float, **font: object) -> list[str]:
    """Text as lines no wider than asked, Chinese or English."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in _pieces(paragraph):
            if line and _width((line + piece).rstrip(), fontsize, **font) > inches:
                lines.append(line.rstrip())
                line = piece.lstrip()
            else:
                line += piece
        lines.append(line.rstrip())
    return lines


def _write(
    figure, text: str, *, top: bool, size: float = TEXT, **font: object
) -> float:
    """Write wrapped lines at the figure's top or bottom; their height, inches."""
    width, height = figure.get_size_inches()
    lines = wrap(text, width - 2 * EDGE, size, **font)
    step = size * 1.4 / 72
    for i, line in enumerate(lines):
        down = EDGE + (i + 0.8) * step
        y = height - down if top else EDGE + (len(lines) - 1 - i + 0.25) * step
        figure.text(
            EDGE / width,
            y / height,
            line,
            fontsize=size,
            va="baseline",
            in_layout=False,
            **font,
        )
    return len(lines) * step + EDGE


def _fit(figure) -> None:
    """Leave room for title and footer."""
    width, height = figure.get_size_inches()
    title, footer_height = figure.norms["title"], figure.norms["footer"]
    bottom = (footer_height + EDGE) / height
    top = 1 - (title + EDGE) / height
    figure.get_layout_engine().set(
        rect=(EDGE / width, bottom, 1 - 2 * EDGE / width, top - bottom),
        w_pad=0.02,
        h_pad=0.02,
    )


def legend(target, handles=None, labels=None, columns: int = 2, **options):
    """A frameless legend above the plot: it covers no data.

    ``target`` is an Axes without a title, or a Figure: then the legend stands
    once, under the figure's title.
    """
    if hasattr(target, "subplots"):
        if handles is None:
            handles, labels = target.axes[0].get_legend_handles_labels()
        rows = -(-len(handles) // columns)
        width, height = target.get_size_inches()
        down = target.norms["title"] + EDGE / 2
        target.norms["title"] += rows * TEXT * 1.5 / 72
        drawn = target.legend(
            handles,
            labels,
            loc="upper left",
            bbox_to_anchor=(EDGE / width, 1 - down / height),
            ncols=columns,
            borderpad=0,
            **options,
        )
        drawn.set_in_layout(False)
        _fit(target)
        return drawn
    if handles is None:
        handles, labels = target.get_legend_handles_labels()
    return target.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0, 1.01),
        ncols=columns,
        **options,
    )


def label_ends(ax, labels: Sequence[tuple[float, str, str]], x: float = 1.01) -> None:
    """Direct labels right of the axes, pushed apart until none overlap.

    Each label is (y in data units, text, colour). Call it after the limits
    are final.
    """
    figure = ax.figure
    height = ax.get_window_extent().height / figure.dpi * 72
    if figure.get_layout_engine() is not None:
        height *= 0.8  # the layout takes some of it later
    gap = TEXT * 1.15 / height
    at = [
        (ax.transAxes.inverted().transform(ax.transData.transform((0, y)))[1], i)
        for i, (y, _, _) in enumerate(labels)
    ]
    at.sort()
    places = [y for y, _ in at]
    for _ in range(200):
        moved = False
        for i in range(len(places) - 1):
            lack = gap - (places[i + 1] - places[i])
            if lack > 1e-6:
                places[i] -= lack / 2
                places[i + 1] += lack / 2
                moved = True
        if not moved:
            break
    for place, (_, i) in zip(places, at, strict=True):
        _, text, colour = labels[i]
        ax.text(
            x, place, text, color=colour, transform=ax.transAxes, ha="left", va="center"
        )


def plain_log(axis) -> None:
    """Ticks of a logarithmic axis as plain numbers: 0.1, 1, 10, 3000."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
    axis.set_minor_formatter(NullFormatter())


def _seed_words(seeds: list, words: dict) -> str | None:
    if not seeds:
        return None
    if len(seeds) == 1:
        return words["seed"].format(seeds[0])
    numbers = all(isinstance(s, int) for s in seeds)
    if numbers and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        return words["seeds"].format(f"{seeds[0]}–{seeds[-1]}")
    return words["seeds"].format(words["and"].join(map(str, seeds)))


def provenance_words(record: Record, lang: str) -> str:
    """Device, versions, date and seeds of a record, as one sentence."""
    words, made = FOOTER[lang], record.provenance
    device = made.get("device", {})
    parts = [device.get("name", record.machine)]
    if device.get("kind") == "gpu":
        if driver := device.get("driver"):
            parts.append(words["driver"].format(driver))
        if clock := device.get("clock_mhz"):
            parts.append(words["clock"].format(clock))
    elif threads := device.get("threads"):
        count = words["threads"].format(threads)
        parts.append(count.removesuffix("s") if threads == 1 else count)
    versions = [f"{k} {v}" for k, v in made.get("versions", {}).items()]
    if "python" in made:
        versions.append(f"Python {made['python']}")
    groups = [words["and"].join(parts), words["and"].join(versions)]
    if "date" in made:
        groups.append(words["date"].format(made["date"][:10]))
    if seeds := _seed_words(made.get("seeds", []), words):
        groups.append(seeds)
    if record.steps:
        groups.append(words["partial"].format(*record.steps))
    if record.size == "tiny":
        groups.append(words["trial"])
    return words["join"].join(group for group in groups if group) + words["end"]


def footer(figure, record: Record, words: dict, band: str = "") -> None:
    """Write inside the picture where, with what and when it was measured.

    ``band`` says, in the page's language, what a bar or shaded band means.
    """
    lang = language(words)
    text = provenance_words(record, lang)
    if band:
        text = f"{band}\n{text}"
    height = _write(figure, text, top=False, size=SMALL, color=MUTED)
    if "digest" in record.provenance and code.is_stale(record):
        # One line more, above the rest, in a colour that stands out.
        mark = FOOTER[lang]["stale"]
        figure.text(
            EDGE / SIZE[0],
            (height + 0.25 * SMALL * 1.4 / 72) / figure.get_size_inches()[1],
            mark,
            fontsize=SMALL,
            weight="bold",
            color=SERIES[1],
            va="baseline",
            in_layout=False,
        )
        height += SMALL * 1.4 / 72
    figure.norms["footer"] = height
    _fit(figure)


# Saving ---------------------------------------------------------------------

_HEX = re.compile(r"#[0-9a-fA-F]{6}\b")


def _themed(svg: str) -> str:
    """Colours as CSS variables, each with its hex as the fallback."""

    def variable(found: re.Match) -> str:
        colour = found[0].lower()
        if colour not in COLOURS:
            raise RecordError(f"figure uses {colour}, which is none of the site's")
        return f"var(--figure-{COLOURS[colour]}, {colour})"

    def in_style(found: re.Match) -> str:
        return _HEX.sub(variable, found[0])

    svg = re.sub(r'\b(fill|stroke)="(#[0-9a-fA-F]{6})"', r'style="\1: \2"', svg)
    return re.sub(r'style="[^"]*"', in_style, svg)


def _inline(drawn: str) -> str:
    """matplotlib's SVG document as one element; the page gives it its label."""
    drawn = re.sub(r"\A.*?(?=<svg\b)", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"<style\b.*?</style>\s*", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"<defs>\s*</defs>\s*", "", drawn)
    head, rest = re.match(r"(<svg\b[^>]*>)(.*)\Z", drawn, re.DOTALL).groups()
    head = re.sub(r'\s(width|height|version)="[^"]*"', "", head)
    head = head[:-1] + (
        ' role="img" style="stroke-linejoin: round; stroke-linecap: butt">'
    )
    return svg.slim(_themed(head + rest)) + "\n"


def check_colours(figure) -> None:
    """Raise RecordError where a thing is drawn in another colour than its own."""
    from matplotlib.colors import to_hex

    lines = [
        (line.get_label(), line.get_color())
        for axis in figure.axes
        for line in axis.get_lines()
    ]
    texts = [
        (text.get_text(), text.get_color())
        for axis in figure.axes
        for text in axis.texts
    ]
    boxes = [
        (group.get_label(), patch.get_facecolor())
        for axis in figure.axes
        for group in axis.containers
        for patch in getattr(group, "patches", ())
    ]
    drawn = [(str(label), to_hex(colour)) for label, colour in lines + texts + boxes]
    if wrong := series_colours.misplaced(drawn, SERIES):
        raise RecordError(f"one thing has one colour: {', '.join(wrong)}")


def svg_text(figure, salt: str) -> str:
    """The figure as SVG text, the same bytes on every run."""
    import matplotlib

    out = io.StringIO()
    with _glyphs(), matplotlib.rc_context({"svg.hashsalt": salt}):
        if figure.get_layout_engine() is not None:  # lay out once, then freeze
            figure.set_dpi(72)  # SVG's own
            figure.draw_without_rendering()
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            for axis in figure.axes:  # the solver's last digits differ from run to run
                axis.set_position([round(x, 9) for x in axis.get_position().bounds])
        figure.savefig(
            out,
            format="svg",
            metadata={"Date": None, "Creator": None},
        )
    return _inline(out.getvalue())


def save(figure, path: Path) -> Path:
    """Write the figure's SVG, whole or not at all."""
    path = Path(path)
    write_whole(path, svg_text(figure, f"{path.parent.name}-{path.stem}"))
    return path


def draw(record: Record, lang: str) -> Path:
    """Draw one record's figure in one language into docs/figures."""
    module = load_experiment(record.experiment)
    figure = module.plot(record, words_for(record, lang))
    check_colours(figure)
    path = figure_path(record.experiment, record.machine, lang)
    return save(figure, path)
