"""How tiles are spread over SMs, so that one is on its way while one is computed."""

from scripts.site.pictures.diagram import GRID, INK, MUTED, PANEL, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": (
            "内存怎样不闲着。左，前向：一块一个程序，两个程序共用一个 SM，一个在算"
            "，另一个的块在路上。右，反向：一个 SM 一个程序，走遍自己的块，两个缓"
            "冲区，一块在用，下一块在路上。"
        ),
        "alt": (
            "左右两格，上面各是内存里编号 0 到 7 的八块，颜色表示归哪个 SM。"
            "左格：SM 0 里程序 0 在算第 0 块，程序 2 的第 2 块在路上"
            "；SM 1 里程序 1 在算第 1 块，程序 3 的第 3 块在路上；第"
            " 4 到 7 块在等。右格：第 0、1 块已经算完；SM 0 里只有程序"
            " 0，一个缓冲区里的第 2 块在算，第 4 块正送往另一个缓冲区；SM "
            "1 里的程序 1 同样算第 3 块，第 5 块在路上。"
        ),
        "forward": "前向：两个程序",
        "backward": "反向：两个缓冲区",
        "memory": "内存里的块",
        "program": "程序 {}",
        "computes": "在算",
        "coming": "在路上",
    },
    "en": {
        "caption": (
            "How memory is kept busy. Left, forward: a program for each tile, two "
            "of them share an SM, and while one computes, the other's tile is on "
            "its way. Right, backward: one program an SM walks over its tiles with "
            "two buffers, one tile in use and the next on its way."
        ),
        "alt": (
            "Two panels, each with the tiles 0 to 7 in memory on top, coloured by "
            "the SM they go to. Left: in SM 0 program 0 computes tile 0 while tile "
            "2 is on its way to program 2; in SM 1 program 1 computes tile 1 while "
            "tile 3 is on its way to program 3; tiles 4 to 7 wait. Right: tiles 0 "
            "and 1 are done; in SM 0 there is program 0 alone, which computes tile "
            "2 from one buffer while tile 4 is on its way to the other; in SM 1 "
            "program 1 does the same with tiles 3 and 5."
        ),
        "forward": "forward: two programs",
        "backward": "backward: two buffers",
        "memory": "tiles in memory",
        "program": "program {}",
        "computes": "in use",
        "coming": "coming",
    },
}
TILES, WIDE, HIGH = 8, 0.28, 0.26
SM = 1.08  # inches wide


def tile(canvas: Canvas, x: float, y: float, number: int, state: str) -> None:
    """A tile, coloured by its SM: solid where it is at hand, open on its way."""
    colour = SERIES[number % 2]
    looks = {
        "here": {"fill": colour, "edge": INK, "colour": PANEL, "weight": "bold"},
        "coming": {"fill": PANEL, "edge": colour, "lines": "--"},
        "idle": {"fill": PANEL, "edge": GRID, "colour": MUTED},
    }[state]
    text = looks.pop("colour", INK), looks.pop("weight", "normal")
    canvas.box(x, y, WIDE, HIGH, round_by=0, **looks)
    middle = (x + WIDE / 2, y + HIGH / 2)
    canvas.text(*middle, str(number), size=SMALL, colour=text[0], weight=text[1])


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 3.1)
    for left, name, first in ((0.1, "forward", 0), (2.64, "backward", 2)):
        canvas.text(left, 2.96, words[name], align="left", weight="bold")
        canvas.text(left, 2.72, words["memory"], align="left", size=SMALL, colour=MUTED)
        for i in range(TILES):
            near = first <= i < first + 4
            state = ("here" if i < first + 2 else "coming") if near else "idle"
            tile(canvas, left + i * WIDE, 2.36, i, state)
        for sm in range(2):
            x = left + sm * (SM + 0.08)
            canvas.box(x, 0.06, SM, 1.86, fill="none")
            canvas.text(x + 0.08, 1.76, f"SM {sm}", align="left", weight="bold")
            for slot, word in enumerate(("computes", "coming")):
                y = 0.82 - slot * 0.7
                number = first + sm + 2 * slot
                if name == "forward":
                    canvas.box(x + 0.06, y, SM - 0.12, 0.66)
                    owner = words["program"].format(number)
                    canvas.text(x + 0.13, y + 0.5, owner, align="left", size=SMALL)
                elif not slot:
                    canvas.box(x + 0.06, 0.12, SM - 0.12, 1.36)
                    owner = words["program"].format(sm)
                    canvas.text(x + 0.13, y + 0.5, owner, align="left", size=SMALL)
                state = "coming" if slot else "here"
                tile(canvas, x + 0.13, y + 0.08, number, state)
                place = (x + 0.46, y + 0.08 + HIGH / 2)
                canvas.text(*place, words[word], align="left", size=SMALL)
            start = left + (number + 0.5) * WIDE
            end = x + SM / 2
            bend = [(start, 2.36), (start, 2.16), (end, 2.16), (end, 1.92)]
            canvas.arrow(*bend, colour=SERIES[sm])
    return canvas
