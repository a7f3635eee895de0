"""How long a page is to a reader who opens nothing: screens, and numbers in prose."""

from dataclasses import dataclass

WINDOW = {"width": 1440, "height": 900}
TOPICAL = (
    "foundations",
    "rmsnorm",
    "placement",
    "attention",
    "frontier",
    "kernels",
    "claims",
)
MAX_SCREENS, MAX_SCREENS_OF_A_CHAPTER = 12, 5
MAX_SCREENS_WITH_FORK = 7  # of a page whose deeper sections are folded
# One number in so many characters at most: denser Chinese prose is read as a table.
CHARACTERS_A_NUMBER = 40

SEEN = r"""() => {
  const article = document.querySelector('article');
  const shown = selector =>
    [...article.querySelectorAll(selector)].filter(e => e.checkVisibility());
  const words = e => {
    const copy = e.cloneNode(true);
    copy.querySelectorAll('.katex, pre, table, ul, ol').forEach(e => e.remove());
    return copy.textContent;
  };
  const prose = shown('p, li').filter(e => !e.closest('table, figure')).map(words);
  const lines = e => {
    const copy = e.cloneNode(true);  // remarks mount in it while one counts
    copy.querySelectorAll('.md-annotation').forEach(e => e.remove());
    return copy.textContent.trim().split('\n').length;
  };
  const code = shown('.highlight:not(.language-text) pre').map(lines);
  return {
    pixels: article.getBoundingClientRect().height,
    prose: prose.join('\n'),
    forked: Boolean(document.getElementById('deeper')),
    code: code.reduce((sum, lines) => sum + lines, 0),
  };
}"""
# A digit in a name, float16 or GPT-2, is no number, and 1e-5 is one.
NUMBERS = r"""text => (text.match(
  /(?<![A-Za-z\d.])(?<![A-Za-z]-)\d+(?:[.,]\d+)*(?:e-?\d+)?/g) || []).length"""


@dataclass(frozen=True)
class Length:
    """What is seen of a page with everything folded left shut."""

    path: str
    screens: float
    characters: int
    numbers: int
    code: int
    forked: bool = False

    def __str__(self) -> str:
        return (
            f"{self.screens:4.1f} screens, {self.characters} characters, "
            f"{self.numbers} numbers, {self.code} lines of code: {self.path}"
        )

    def problems(self) -> list[str]:
        found = []
        most = MAX_SCREENS_WITH_FORK if self.forked else MAX_SCREENS
        most = MAX_SCREENS_OF_A_CHAPTER if is_chapter(self.path) else most
        if self.screens > most:
            found.append(f"longer than {most} screens: {self}")
        prose = self.path.startswith("zh/") and not is_chapter(self.path)
        if prose and self.numbers * CHARACTERS_A_NUMBER > self.characters:
            found.append(
                f"more than one number in {CHARACTERS_A_NUMBER} characters: {self}"
            )
        return found


def is_topical(path: str) -> bool:
    """Whether a page teaches a topic, as en/rmsnorm/speed/, or settles claims."""
    return path.split("/")[1] in TOPICAL


def is_chapter(path: str) -> bool:
    """Whether a page is of the course, which counts by hand and is short."""
    return path.split("/")[1] == "learn"


def measure(page, path: str) -> Length:
    """The length of a page as it was opened; its window is WINDOW afterwards."""
    page.set_viewport_size(WINDOW)
    page.evaluate("() => document.fonts.ready.then(() => 0)")
    seen = page.evaluate(SEEN)
    return Length(
        path,
        seen["pixels"] / WINDOW["height"],
        len("".join(seen["prose"].split())),
        page.evaluate(NUMBERS, seen["prose"]),
        seen["code"],
        seen["forked"],
    )
