"""A number in a sentence was measured (a fact) or is cited.

The law looks at numbers with a unit, at factors and at per cents. Sizes, years,
versions, names (float32, 7B, A100-80GB), code and formulas are free.
"""

import re
from itertools import pairwise

import pytest

from tests.pages.reading import CITE, paragraphs

DIGITS = r"(?<![\d.])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
UNIT = r"""
    \ ?[%‰％] | [\s-]?per[\s-]?cent(?![a-z]) | \s?个?百分点
  | \s?倍(?!数) | [\s-]?fold\b | \ ?[x×](?![A-Za-z0-9_])(?!\s*[\d\ue000-\ue003])
  | \s+times\s+(?:as|the|that|its|more|less|\w+er)\b
  | [\s-]?(?:[mnuµμ]?s|sec(?:ond)?s?|min(?:ute)?s?|h(?:ours?)?|days?)(?![A-Za-z0-9_])
  | \s?(?:毫秒|微秒|纳秒|秒|分钟|小时|天)
  | \s?[KMGTP]i?B(?:/s|ps)?(?![A-Za-z0-9_])
  | \s?[KMGTP]?FLOP(?:s|S)?(?:/s)?(?![A-Za-z0-9_])
  | \s?tokens?(?:/s|/秒|\ per\ second|\ 每秒)
  | \s?(?:[kM]?W|[kMG]?Hz|watts?|瓦|°C|℃)(?![A-Za-z0-9_])
"""
WORD = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
    "|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|dozen"
)
HAN = "[零一二两三四五六七八九十百千万]+(?:点[零一二三四五六七八九]+)?"
NUMBER = re.compile(
    rf"""{DIGITS}(?:{UNIT})
  | \b(?:{WORD})(?:[\s-]?fold\b | [\s-]per[\s-]?cent\b
      | \s+times\s+(?:as|the|that|its|more|less|\w+er)\b)
  | \btwice\s+as\s+(?:fast|slow|long|quick|large|big|high|many|much|expensive|cheap)
  | {HAN}\s?(?:倍(?!数)|个?百分点|毫秒|微秒) | 百分之[\d零一二三四五六七八九十百]+
    """,
    re.VERBOSE,
)
NAME = re.compile(r"[A-Za-z_][\w.-]*$", re.ASCII)  # what makes 80GB a part of a name
LEVEL = re.compile(  # a 95 % interval: a convention, not a result
    r"%(?: confidence)?\s?(?:interval|quantile|level|(?:的|置信)?(?:区间|分位|水平))"
)
DECADE = re.compile(r"(?:1[89]|20)\d0s|[01]s")  # the 1990s; zeros and ones
STOP = re.compile(
    r"(?<!e\.g\.)(?<!i\.e\.)(?<!et al\.)(?<!vs\.)(?<!cf\.)(?<!Eq\.)(?<!eq\.)"
    r"(?<!Sec\.)(?<!Fig\.)(?<!No\.)(?<=[.!?])[\"'”)]*\s+|[。！？][”）]*"
)


def violations(text: str) -> list[str]:
    """'line: what' for each number that nobody measured or cited."""
    found = []
    for paragraph in paragraphs(text):
        for start, sentence in sentences(paragraph.text):
            if CITE in sentence:
                continue
            for match in NUMBER.finditer(sentence):
                if not is_free(sentence, match):
                    line = paragraph.line_of(start + match.start())
                    number = " ".join(match[0].split())
                    found.append(f"{line}: {number!r} is neither a fact nor cited")
    return found


def sentences(text: str) -> list[tuple[int, str]]:
    """(offset, sentence) of a paragraph."""
    ends = [match.end() for match in STOP.finditer(text)]
    bounds = [0, *ends, len(text)]
    return [(a, text[a:b]) for a, b in pairwise(bounds)]


def is_free(sentence: str, match: re.Match) -> bool:
    """Part of a name (A100-80GB), a decade, the level of an interval."""
    return bool(
        NAME.search(sentence[: match.start()])
        or DECADE.fullmatch(match[0])
        or LEVEL.match(sentence, match.end() - 1)
    )


def test_pages(spoken, obeyed):
    obeyed(f"{spoken.where}:{v}" for v in violations(spoken.text))


GOOD = [
    # English
    "float32 and bfloat16 are formats; fp8 has 8 bits.",
    "A 7B model with 4096 features, 32 layers and 1e-6 inside the root.",
    "Python 3.11 in 2026, torch 2.13.0, in the 1990s and the 2020s.",
    "It takes [[ facts.speed.ln ]] µs, [[ facts.speed.ratio ]] times as long.",
    "It is [[ facts.speed.share ]] % of the step and [[ facts.speed.x ]]× faster.",
    "The paper reports 7 % to 64 % less time [[ cite.zhang2019rms ]].",
    "See e.g. the table, where 3.5x is cited, [[ cite.a2020b ]].",
    "The code says `2x` and `5 ms`, the formula $2\\times$ or $95\\%$.",
    "A 3x3 kernel, 4096 × 4096 weights, a vector of 0s and 1s.",
    "Run it three times; several times; 20 times with other seeds.",
    "An A100-80GB, an H100-SXM5-80GB and eq. 4 of section 3.",
    "Read [50 % more](https://example.org/95%25) of what it says [[ cite.a2020b ]].",
    "It doubles the traffic; half of the features are zero.",
    "Two thousand tokens, 11 of 12 seeds, step 3 of 5.",
    "Bars are the 95 % interval of the median, the 95 % confidence interval.",
    # Chinese
    "横线是中位数的 95% 区间，即 95 % 置信区间。",
    "float32 与 bfloat16 是格式；fp8 有 8 位。",
    "7B 模型有 4096 维、32 层，根号里是 1e-6。",
    "2026 年的 Python 3.11，第 3 步，共 5 个种子。",
    "它用时 [[ facts.speed.ln ]] 微秒，是前者的 [[ facts.speed.ratio ]] 倍。",
    "占一步的 [[ facts.speed.share ]]%，快 [[ facts.speed.x ]] 倍。",
    "论文报告省下 7% 到 64% 的时间 [[ cite.zhang2019rms ]]。",
    "代码里写 `2x` 和 `5 ms`，公式里写 $2\\times$。",
    "3x3 的卷积核，4096 × 4096 的权重。",
    "四的倍数，成倍增长，倍增，几倍于此，数倍。",
    "跑三次，换 20 个种子。",
    "十个特征里有一半是零，三层网络，两种写法。",
    "A100-80GB 是显卡的名字。",
    "引用在句中（[[ cite.a2020b ]]）：快 3 倍。",
    "误差小于 0.001，指数为 15。",
]
BAD = [
    # English
    ("It is 3x faster.", "3x"),
    ("It is 1.5× faster.", "1.5×"),
    ("It is 2-3x faster.", "3x"),
    ("It is 3 times as fast.", "3 times as"),
    ("It is three times faster.", "three times faster"),
    ("It is twice as fast.", "twice as fast"),
    ("A ten-fold gain, a 10-fold one.", "ten-fold"),
    ("It saves 12.5 % of the time.", "12.5 %"),
    ("It saves 12 per cent.", "12 per cent"),
    ("It saves ten percent.", "ten percent"),
    ("It takes 5 ms.", "5 ms"),
    ("It takes 17µs.", "17µs"),
    ("It takes 3 seconds.", "3 seconds"),
    ("It reads at 4.8 TB/s from 141 GB.", "4.8 TB/s"),
    ("It is an 80GB card.", "80GB"),
    ("It draws 700 W at 1,980 MHz.", "700 W"),
    ("It does 989 TFLOPS.", "989 TFLOPS"),
    ("It makes 120 tokens/s.", "120 tokens/s"),
    ("One source says so [[ cite.a2020b ]]. It is 3x faster.", "3x"),
    ("| kernel | 5 ms |", "5 ms"),
    ("## Why 2x { #why }", "2x"),
    # Chinese
    ("它快 3 倍。", "3 倍"),
    ("它快3倍。", "3倍"),
    ("它快两倍。", "两倍"),
    ("它快十几倍，其实是三点五倍。", "三点五倍"),
    ("省下 12.5% 的时间。", "12.5%"),
    ("省下百分之十。", "百分之十"),
    ("高出 3 个百分点。", "3 个百分点"),
    ("用时 5 毫秒。", "5 毫秒"),
    ("用时 17 µs。", "17 µs"),
    ("跑了 3 秒。", "3 秒"),
    ("显存 141 GB，带宽 4.8 TB/s。", "141 GB"),
    ("功耗 700 W。", "700 W"),
    ("前一句有引用 [[ cite.a2020b ]]。它快 3 倍。", "3 倍"),
]


@pytest.mark.parametrize("text", GOOD)
def test_good(text):
    assert violations(text) == []


@pytest.mark.parametrize(("text", "number"), BAD)
def test_bad(text, number):
    assert f"1: {number!r} is neither a fact nor cited" in violations(text)


def test_the_line_is_that_of_the_number():
    text = "---\ntitle: T\n---\n\nFirst line,\nthen 3x\nfaster.\n"
    assert violations(text) == ["6: '3x' is neither a fact nor cited"]
    assert violations("---\ndescription: 3x faster.\n---\n")[0].startswith("2: ")
