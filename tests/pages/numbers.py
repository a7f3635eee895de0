"""Which numbers in a text nobody measured or cited.

Looked at are decimals, per cents, multiples and numbers with a unit, in digits. A fact
is measured; a citation frees its clause, up to a semicolon. Free are sizes, years,
versions and names (float32, 7B, A100-80GB), and what is code or a formula.
"""

import re
from itertools import pairwise

from tests.pages.page_prose import CITE

DIGITS = r"(?<![\d.(])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
# What follows the digits of a per cent, a multiple or a number with its unit.
UNIT = r"""
    \ ?[%‰％] | [\s-]?per[\s-]?cent(?:age)?(?![a-z]) | [\s-]percentage\ points\b
  | \s?个?百分点 | \s?倍(?!数) | [\s-]?fold\b
  | \ ?[xX×](?![A-Za-z0-9_])(?!\s*[\d\ue000-\ue003])
  | [\s-]times\s+(?:as|the|that|of|its|more|less|\w+er|\w+'s)\b
  | \s?(?:[mnuµμ]?s|secs?|mins?|h)(?![A-Za-z0-9_-])
  | [\s-](?:milli|micro|nano)?(?:seconds?|minutes?|hours?|days?)(?![\w-])
  | \s?个?(?:毫秒|微秒|纳秒|秒|分钟|小时)
  | \s?[KMGTP]i?B(?:/s|ps)?(?![A-Za-z0-9_]) | \s?(?:吉字节|兆字节|千字节)
  | \s?[KMGTP]?FLOP(?:s|S)?(?:/s)?(?![A-Za-z0-9_])
  | \s?[kKMB]?\ ?tokens?\ ?(?:/s|/秒|\ (?:per|a|every|each)\ (?:second|day|hour)|\ 每秒)
  | \s?(?:[kM]?W|[kMG]?Hz|瓦|°C|℃)(?![A-Za-z0-9_])
"""
NUMBER = re.compile(
    rf"""{DIGITS}(?:{UNIT}) | 百分之\s?\d+ | (?:\$|US\$|€){DIGITS}
  | [×xX]\s?{DIGITS}(?=\s(?:as|faster|slower|less|more|cheaper|longer)\b)
  | \b(?:by\ )?a\ factor\ of\ {DIGITS} | \bp\s?[<=]\s?0?\.\d+""",
    re.VERBOSE,
)
# A decimal that counts millions is a size.
DECIMAL = re.compile(
    r"(?<![\w.,:§-])(?:\d[\d,]*)?\.\d+(?:e-?\d+)?"
    r"(?![\w]|\.\d| [mb]illion (?!doll)| ?[万亿](?!美)| ?节)"
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
LITERAL = re.compile(r"(?<![\w.])\d[\d_,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def clauses(text: str) -> list[tuple[int, str]]:
    """(offset, clause) of a paragraph."""
    ends = [match.end() for match in STOP.finditer(text)]
    return [(a, text[a:b]) for a, b in pairwise([0, *ends, len(text)])]


def unproved(
    text: str, proof: frozenset[float] = frozenset(), whole: bool = False
) -> list[tuple[int, str]]:
    """(offset, number) of each number of a paragraph that is neither fact nor cited.

    proof, whole  what bears out a number, see ``borne_out``
    """
    found = set()
    for start, clause in clauses(text):
        if CITE in clause:
            continue
        hits = [m for m in NUMBER.finditer(clause) if not _is_free(clause, m)]
        hits += [m for m in DECIMAL.finditer(clause) if not _is_version(clause, m)]
        found |= {
            (start + m.start(), " ".join(m[0].split()))
            for m in hits
            if not borne_out(m[0], clause[m.end() :], proof, whole)
        }
    return sorted(found)


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

    whole  takes whole numbers too
    """
    digits = re.search(r"[\d.,]*\d(?:e[+-]?\d+)?", number)[0]
    exact = "." in digits or "e" in digits
    per_cent = bool(re.search("[%‰％]|per.?cent|百分", number + after[:2]))
    if not exact and not per_cent and not whole:
        return False
    value = float(digits.strip(".,").replace(",", ""))
    figures = len(re.sub(r"e.*|\D", "", digits).lstrip("0")) or 1
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
