"""The picture of a page where somebody links to it: its title beside its drawing.

Drawn where the site is published (a card needs an absolute address): 1200 x 630
pixels, in the light scheme's colours, into assets/cards/.
"""

import io
import re
from pathlib import Path

from scripts.measure import figures
from scripts.site.pages import page_parts
from scripts.site.pictures import diagram
from scripts.site.reading.files import read_text

SIZE = (12.0, 6.3)  # inches, of 100 pixels
DPI = 100
PAPER, ACCENT = "#fcfbf8", "#a8410b"
LEFT, TOP = 0.7, 0.75  # inches from the edges
DRAWN = re.compile(r"\[\[ *diagrams\.(\w+) *\]\]")
COLOURS = 48  # of the palette that the file keeps


def address(page, config) -> str | None:
    """The card's absolute address, None where the site is not published."""
    if not page_parts.published(config.site_url or ""):
        return None
    return f"{config.site_url.rstrip('/')}/{_path(page)}"


def _path(page) -> str:
    name = page.file.src_uri.rsplit(".", 1)[0].replace("/", "-")
    return f"assets/cards/{name}.png"


def write(config) -> None:
    """All pages' cards, once the site stands."""
    if not page_parts.published(config.site_url or ""):
        return
    for page in config.extra["nav_object"].pages:
        target = Path(config.site_dir) / _path(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(of_page(page, config))


def of_page(page, config) -> bytes:
    """The card of one page as PNG."""
    drawn = None
    if page.file.src_uri.endswith(".md"):
        drawn = DRAWN.search(read_text(Path(page.file.abs_src_path)))
    title = page.meta.get("title", page.title)
    below = "" if drawn else page.meta.get("description", "")
    language = config.theme["language"]
    return draw(title, below, config.site_name, drawn and drawn[1], language)


def draw(
    title: str, below: str, site: str, drawing: str | None, language: str
) -> bytes:
    """A card as PNG: the site's name, the title, and a diagram or a description."""
    figures._prepare()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width, height = SIZE
    figure = Figure(figsize=SIZE, dpi=DPI, facecolor=PAPER)
    FigureCanvasAgg(figure)

    def write(text: str, up: float, size: float, colour: str = figures.INK, **font):
        figure.text(
            LEFT / width, up / height, text, fontsize=size, color=colour, **font
        )

    write(site, height - TOP, 20, ACCENT, weight="bold")
    room = width - 2 * LEFT
    if drawing:
        room = 4.9
        picture = _picture(drawing, language, (5.2, height - 1.2))
        tall, wide = picture.shape[0], picture.shape[1]
        x = round((width - LEFT / 2) * DPI) - wide
        figure.figimage(picture, x, round((height * DPI - tall) / 2))
    size = 44
    while size > 24 and len(figures.wrap(title, room, size, weight="bold")) > 4:
        size -= 2
    step = size * 1.3 / 72
    lines = figures.wrap(title, room, size, weight="bold")
    up = height / 2 + (len(lines) / 2 - 0.8) * step
    for line in lines:
        write(line, up, size, weight="bold")
        up -= step
    for line in figures.wrap(below, room, 20)[:3] if drawable(below) else ():
        write(line, up, 20, figures.MUTED)
        up -= 20 * 1.5 / 72
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, facecolor=PAPER)
    return _small(out)


def drawable(text: str) -> bool:
    """Whether the figures' fonts have every character: a card shows no empty box."""
    figures._prepare()
    try:
        figures._width(text, 20)
    except UserWarning:
        return False
    return True


def _picture(name: str, language: str, room: tuple[float, float]):
    """A diagram's pixels, as large as the room in inches lets it be."""
    import numpy

    module = diagram.load(name)
    canvas = module.draw(module.WORDS[language])
    scale = min(room[0] / canvas.width, room[1] / canvas.height)
    canvas.figure.set_dpi(DPI * scale)
    canvas.figure.canvas.draw()
    return numpy.asarray(canvas.figure.canvas.buffer_rgba()) / 255


def _small(png: io.BytesIO) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    image = Image.open(png).convert("RGB").quantize(COLOURS)
    image.save(out, format="PNG", optimize=True)
    return out.getvalue()
