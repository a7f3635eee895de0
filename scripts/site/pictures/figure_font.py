"""Cut the figures' Chinese font: python -m scripts.site.pictures.figure_font SOURCE.ttf

matplotlib measures labels with docs/theme/fonts/NormsFigureSC.ttf; readers see
their own system's font. The file holds the 3755 characters of GB 2312 level 1 and
Chinese punctuation, so that labels can change without cutting it again. SOURCE is
Noto Sans SC Regular as TTF (npm package @expo-google-fonts/noto-sans-sc 0.4.3).
"""

import sys
from pathlib import Path

from scripts.site.reading.source import ROOT

TARGET = ROOT / "docs" / "theme" / "fonts" / "NormsFigureSC.ttf"
FAMILY = "Norms Figure SC"
PUNCTUATION = "，。：；！？、（）《》「」“”‘’……——·～％×µ"


def characters() -> str:
    """GB 2312 level 1 (rows 16 to 55) and the punctuation of Chinese labels."""
    cells = (bytes((0xA0 + r, 0xA0 + c)) for r in range(16, 56) for c in range(1, 95))
    return "".join(c.decode("gb2312", "ignore") for c in cells) + PUNCTUATION


def cut(source: Path, target: Path = TARGET) -> None:
    from fontTools import subset
    from fontTools.ttLib import TTFont

    options = subset.Options(
        hinting=False, layout_features=[], name_IDs=[0, 1, 2, 13, 14]
    )
    font = TTFont(source)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=characters())
    subsetter.subset(font)
    # The OFL reserves the name of the original for the original.
    for record in font["name"].names:
        if record.nameID in (1, 16):
            record.string = FAMILY
        elif record.nameID in (4, 6):
            record.string = FAMILY.replace(" ", "")
    font["head"].modified = font["head"].created
    font.recalcTimestamp = False
    font.save(target)


if __name__ == "__main__":
    cut(Path(sys.argv[1]))
