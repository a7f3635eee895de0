"""Which numbers in a text nobody measured or cited.

Looked at are decimals, factors, per cents, numbers with a unit, fractions, multiples
and orders of magnitude, in digits or in words. A fact is measured; a citation frees
its clause, up to a semicolon. Fractions and multiples in words count beside what is
measured in runs and on machines: half of the features is free. So are sizes, years,
versions, names (float32, 7B, A100-80GB), code and formulas, unless these hold nothing
but such a number.
"""

import html
import re
import unicodedata
from itertools import pairwise

from tests.pages.reading import CITE

DIGITS = r"(?<![\d.(])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
WORD = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty"
    "|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|dozen"
    "|hundreds|thousands|dozens|several|ninety-five"
)
DIGIT = "[零一二三四五六七八九]"
HAN = f"[零〇一二两三四五六七八九十百千万亿壹贰叁肆伍陆柒捌玖拾几数Ⅰ-Ⅻ]+(?:点{DIGIT}+)?"
COUNT = rf"(?:{DIGITS}|\b(?:{WORD}))"
HAN_COUNT = rf"(?:{DIGITS}\s?[万亿]?|{HAN})\s?个?"
AGAINST = rf"(?:(?![01]\ to){DIGITS}|\b(?!one\b)(?:{WORD}))"  # of N to M
SECONDS = r"(?:milli|micro|nano)?seconds?|minutes?|hours?|days?|weeks?|m?secs?|hrs?"
SIZES = (
    r"(?:kilo|mega|giga|tera|peta|kibi|mebi|gibi|tebi)(?:bytes?|flops?|watts?)"
    r"|gigs?|watts?|dollars?|degrees"
)
UNIT = r"""
    \ ?[%‰] | [\s-]?per[\s-]?cent(?:age)?(?![a-z]) | \s?个?百分点
  | \s?倍(?!数) | [\s-]?fold\b | \ ?[xX×](?![A-Za-z0-9_])(?!\s*[\d\ue000-\ue003])
  | [\s-]?(?:secs?|mins?|h)(?![A-Za-z0-9_-]) | [\s-][mnuµμ]?s(?![A-Za-z0-9_-])
  | [mnuµμ]?s(?![A-Za-z0-9_])
  | \s?(?:毫秒|微秒|纳秒|秒|分钟|小时|吉字节|兆字节|千字节|美元)
  | \s?[KMGTP]i?B(?:/s|ps)?(?![A-Za-z0-9_])
  | \s?[KMGTP]?FLOP(?:s|S)?(?:/s)?(?![A-Za-z0-9_])
  | \s?[kKMB]?\ ?tokens?\ ?(?:/s|/秒|\ (?:per|a|every|each)\ (?:second|day|hour)|\ 每秒)
  | \s?(?:[kM]?W|[kMG]?Hz|瓦|°C|℃)(?![A-Za-z0-9_])
"""
TIMES = r"[\s-]times\s+(?:as|the|that|of|its|more|less|\w+er|\w+'s)\b"
NUMBER = re.compile(
    rf"""{DIGITS}(?:{UNIT}) | {COUNT}(?:{TIMES})
  | {COUNT}[\s-](?:[GT]PU[\s-])?(?:{SECONDS}|{SIZES})(?![\w-])
  | [×xX]\s?{DIGITS}(?=\s(?:as|faster|slower|less|more|cheaper|longer)\b)
  | \b(?:{WORD})(?:[\s-]?fold\b | [\s-]per[\s-]?cent(?:age)?\b)
  | (?<!整){HAN}\s?倍(?!数) | {HAN}秒
  | (?!一个){HAN_COUNT}(?:\s?[GT]PU\s?)?(?:百分点|毫秒|微秒|小时|分钟|吉字节|美元)
  | 半个?(?:小时|分钟|秒)|用了{HAN_COUNT}天|打[\d.一二三四五六七八九]+折
  | 用时{HAN_COUNT}秒 | 每秒\s?{HAN_COUNT}\s?(?:token|词|字节)
  | 百分之\s?[\d零一二三四五六七八九十百]+ | 十有八九
  | (?:[一二两三四五六七八九]|\d\s)成[一二三四五六七八九半]?(?=[的，。、；以多时左])
  | (?:[高低涨跌差赢输好多少升降]|领先|落后|提高|提升)了?\s?(?:{DIGITS}|{HAN})\s?个点
  | {DIGITS}\s?个点 | {COUNT}[\s-](?:percentage[\s-])?points\b
  | (?<!from\ ){AGAINST}\ to\ (?:1|one)(?![\w.]) | (?<![\d:]){DIGITS}:1(?![\d.:])
  | \b(?:wins?|won|beats?|loses?|lost|ahead|ratio|odds)\b[^.,;]{{0,30}}?
    {AGAINST}\ to\ {COUNT}
  | (?<!第)(?:{DIGITS}|{DIGIT}|十)\s?(?:比|∶)\s?(?:\d|{DIGIT}|十)
  | (?<!同)(?:[一两几三四五]|\d)\s?个?数?量级 | \borders?[\s-]of[\s-]magnitude
  | \b(?:by\ )?a\ factor\ of\ (?:{DIGITS}|(?:{WORD})\b)
  | (?:\$|US\$|€){DIGITS} | {DIGITS}\ (?:million|billion)\ dollars | {HAN}点{DIGIT}+
  | \b(?:dozens|hundreds|thousands)\ of\ times | {DIGITS}\s?[万亿]?\s?token/秒
  | \b[Oo]ne\ \w+\ (?:in|out\ of)\ (?:{WORD})\b
  | [一二两三四五六七八九十]次里有?[一二两三四五六七八九十]次
  | \b(?:p|P)\s?[<=]\s?0?\.\d+
  """,
    re.VERBOSE,
)
# A decimal that counts millions is a size.
DECIMAL = re.compile(
    r"(?<![\w.,:§-])(?:\d[\d,]*)?\.\d+(?:e-?\d+)?"
    r"(?![\w]|\.\d| [mb]illion (?!doll)| ?[万亿](?!美)| ?节)"
)
# Words that make a fraction or a multiple, and a size without a unit.
PART = re.compile(
    rf"""(?<!upper\ )(?<!lower\ )(?<!left\ )(?<!shared\ )(?<!this\ )(?<!deeper\ )
    \b(?:twice|thrice|half|halves|halved|halving|doubl(?:e|es|ed|ing)
        |(?:trip|quadrup)l(?:e|es|ed|ing)
        |(?:an?|one|two|three|four|five|six|seven|eight|nine)[\s-](?:third|quarter|fifth|sixth
            |seventh|eighth|ninth|tenth|twentieth|hundredth|thousandth)s?)\b
  | (?<![\w/.-])\d+[/\u2044]\d+(?![\w/]) | 10\^[-−]?\d+ | \b\d[\d.]*e[+-]?\d+\b
  | \b(?:{WORD}|\d+)\ (?:in|(?:out\ )?of)\ (?:{WORD}|\d+|a\ hundred)\b
  | \b(?:{WORD}|\d+)\ \w+\ (?:out\ of|in\ every)\ (?:every\ )?(?:{WORD}|\d+)\b
  | [\d一二两三四五六七八九十百千万]+分之\s?[\d零一二三四五六七八九十百]+
  | (?<!哪)一半|半数|过半|双倍|减半|加倍|翻倍|翻番|翻了?[一两二三四五]番""",
    re.VERBOSE | re.IGNORECASE,
)
# What is measured in runs and on machines.
MEASURED = re.compile(
    r"\b(?:run)?times?\b(?! (?:that|with|over|in a row|more))|\bspeed(?!s? of light)"
    r"|\bfast|\bslow|throughput|latency|\bmemory\b"
    r"|\bbandwidth|\bcosts?\b|\bexpens|\bcheap|\baccura|\bperplexity|\bBLEU\b"
    r"|\bgradient norm\b|\berrors?\b|\bcorrelation\b|\bruns?\b|\bseeds?\b|diverge"
    r"|时间|用时|耗时|速度|吞吐|延迟|显存|内存|成本|困惑度|准确率|相关系数|(?<!更)快|慢|贵|发散|梯度范数|误差|种子",
    re.IGNORECASE,
)
NAME = re.compile(r"[A-Za-z_][\w.-]*$", re.ASCII)  # what makes 80GB a part of a name
NAMED = re.compile(  # what a version or a number of a section belongs to
    r"(?:torch|[Pp]ython|Llama|Qwen|GLM|Gemma|Mistral|DeepSeek|Kimi|OLMo|Phi|MiniMax|Command|"
    r"Ministral|Granite|Falcon|Grok|Jamba|Nemotron|ERNIE|Hunyuan|InternLM|Baichuan|Yi|SmolLM|"
    r"[Ss]ections?|§|第|CUDA|PyTorch|Triton|triton|[Tt]ransformers|BY|version|Version|版本|Eq\.|Table|Fig\.|"
    r"[Ff]igure|GPT|Step|NumPy|MkDocs|JAX|[Aa]ppendix|附录|表|图|V|v|节|式|SD|wav2vec|"
    r"capability|计算能力|boost:) ?(?:\d+\.\d+(?: ?(?:and|to|or|,|、|和|到|–|-) ?))?$"
)
SETTING = re.compile(  # chosen, not found
    r"(?:weight decay|momentum|\brate|deviation|RMS|warm-up|dropout"
    r"|权重衰减|动量|学习率|标准差|RMS 为) ?[为取]?(?:of|to)? ?$"
)
LEVEL = re.compile(  # a 95 % interval: a convention, not a result
    r"%(?: confidence)?\s?(?:interval|quantile|level|(?:的|置信)?(?:区间|分位|水平))"
)
DECADE = re.compile(r"(?:1[89]|20)\d0s|[01]s")  # the 1990s; zeros and ones
STOP = re.compile(
    r"(?<!e\.g\.)(?<!i\.e\.)(?<!et al\.)(?<!vs\.)(?<!cf\.)(?<!Eq\.)(?<!eq\.)"
    r"(?<!Sec\.)(?<!Fig\.)(?<!No\.)(?<=[.!?])[\"'”)]*\s+|[。！？；][”）]*|;\s"
)
UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
ALIKE = str.maketrans("✕✖⨯хХ", "×××xX")  # the last two are Cyrillic
ESCAPE = re.compile(r"\\(?=[^\w\s])")
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
ODD = re.compile(r"[^\x00-\x7f\u4e00-\u9fff\ue000-\ue004，。；：、（）！？“”《》—…]")


def visible(text: str) -> str:
    """As it looks: no tags and entities, plain blanks and digits, nothing unseen."""
    text = html.unescape(TAG.sub("", text)) if "<" in text or "&" in text else text
    return ESCAPE.sub("", ODD.sub(_folded, UNSEEN.sub("", text)))


def _folded(match: re.Match) -> str:
    character = match[0].translate(ALIKE)
    label = match.string[match.end() :][:1] == " "  # ③ a third arrow
    folds = unicodedata.category(character) in ("Zs", "Nd") + ("No",) * (not label)
    folds = folds or character in "½⅓⅔¼¾⅕⅛％﹪Ｘｘ㎱㎲㎳㎅㎆㎇"
    return unicodedata.normalize("NFKC", character) if folds else character


def clauses(text: str) -> list[tuple[int, str]]:
    """(offset, clause) of a paragraph."""
    ends = [match.end() for match in STOP.finditer(text)]
    bounds = [0, *ends, len(text)]
    return [(a, text[a:b]) for a, b in pairwise(bounds)]


def found(
    text: str, proof: frozenset[float] = frozenset(), whole: bool = False
) -> list[tuple[int, str]]:
    """(offset, number) of each number in a paragraph that is neither fact nor cited.

    proof, whole  what bears out a number, see ``borne_out``
    """
    said = []
    for start, clause in clauses(text):
        if CITE in clause:
            continue
        hits = [m for m in NUMBER.finditer(clause) if not _is_free(clause, m)]
        hits += [m for m in DECIMAL.finditer(clause) if not _is_version(clause, m)]
        if MEASURED.search(clause):
            hits += PART.finditer(clause)
        hits = [m for m in hits if not borne_out(m[0], clause[m.end() :], proof, whole)]
        said += [(start + m.start(), " ".join(m[0].split())) for m in hits]
    return sorted(set(said))


def numbers_of(*texts: str) -> frozenset[float]:
    """All numbers of code or of what it prints."""
    return frozenset(
        float(n.replace("_", "").replace(",", ""))
        for text in texts
        for n in LITERAL.findall(text)
    )


def borne_out(
    number: str, after: str, proof: frozenset[float], whole: bool = False
) -> bool:
    """Whether a decimal or a per cent is one of these numbers, rounded.

    whole  takes whole numbers too, in digits or words; halves and thirds by 2 and 3
    """
    digits = re.match(r"[\d.,]+(?:e[+-]?\d+)?", number)
    if not digits:
        said = {float(VALUES[word]) for word in VALUES if word in number.lower()}
        return whole and not proof.isdisjoint(said | {1 / value for value in said})
    exact = "." in digits[0] or "e" in digits[0]
    per_cent = bool(re.search("[%‰]|per.?cent", number + after[:2]))
    if not exact and not per_cent and not whole:
        return False
    value = float(digits[0].strip(".,").replace(",", ""))
    figures = len(re.sub(r"e.*|\D", "", digits[0]).lstrip("0")) or 1
    if per_cent and not exact and not whole:  # 40 % is a share of code, no size
        proof = frozenset(known for known in proof if known < 1)
    hundred = 1000 if "‰" in number else 100
    scales = (1, hundred) if per_cent else (1, 1e-9 if "billion" in after[:9] else 1)
    return any(
        f"{known * scale:.{figures - 1}e}" == f"{value:.{figures - 1}e}"
        for known in proof
        for scale in scales
    )


def _is_free(clause: str, match: re.Match) -> bool:
    """Part of a name (A100-80GB), a decade, the level of an interval."""
    return bool(
        NAME.search(clause[: match.start()])
        or DECADE.fullmatch(match[0])
        or LEVEL.match(clause, match.end() - 1)
    )


def _is_version(clause: str, match: re.Match) -> bool:
    before = clause[: match.start()]
    return bool(NAMED.search(before) or SETTING.search(before))


LITERAL = re.compile(r"(?<![\w.])\d[\d_,]*(?:\.\d+)?(?:e[+-]?\d+)?")
VALUES = {"half": 2, "halve": 2, "twice": 2, "doubl": 2, "third": 3, "quarter": 4}
VALUES |= {
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
}
VALUES |= {"ten": 10, "hundred": 100, "thousand": 1000, "两": 2, "半": 2, "三": 3}
VALUES |= {"四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10, "百": 100}
VALUES |= {"千": 1000}
BARE = re.compile(  # code or a formula that is nothing but a number with its unit
    rf"\$?\s*(?:\\(?:approx|sim|ge|le)\b\s*)?(?:{DIGITS}\s*(?:\\times|\\%|\\,?\\text\{{?(?:ms|s)\}}?)|{DIGITS}(?:{UNIT}))\s*\$?",
    re.VERBOSE,
)


def is_bare(inside: str) -> bool:
    return bool(BARE.fullmatch(inside.strip("` ")))
