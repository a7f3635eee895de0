"""The atlas's words in both languages."""

import html
import re

WORDS = {
    "en": {
        "architecture": "Architecture",
        "norm": "Norm",
        "placement": "Placement",
        "qk": "QK-Norm",
        "family": "Family",
        "gain": "Gain",
        "eps": "ε",
        "cast": "Rounds",
        "caption": "Norms by architecture, with the defaults of its class",
        "pre": "pre",
        "post": "post",
        "sandwich": "sandwich",
        "branch-output": "on the branch output",
        "pre-parallel": "pre, parallel",
        "residual-after-norm": "residual after the norm",
        "multi-stream": "several streams",
        "none": "none",
        "q, k, v": "q, k, v",
        "other": "other",
        "unresolved": "not resolved",
        "partial": "resolved in part",
        "no-gain": "no gain",
        "per-head-gain": "one w per head",
        "head": "per head",
        "heads": "over the heads",
        "projection": "whole projection",
        "before": "before RoPE",
        "after": "after RoPE",
        "no-rope": "no RoPE",
        "side": "{0}, {1}",
        "bias": "with bias",
        "no-bias": "no bias",
        "layer": "layer {0}",
        "layers": "layers {0}",
        "values": "Values",
        "lines": "block",
        "norms": "Norms",
        "caps": "Soft caps",
        "capped": {},
        "multipliers": "Multipliers",
        "functional": "Without a module",
        "unusual": "Unusual",
        "source": "Source",
        "overflow": "overflows in float16 at 300",
        "k-only": "k only",
        "sites": {
            **{"final": "final", "embedding": "embedding", "gated": "gated"},
            "head": "in the LM head",
        },
        "brackets": " ({0})",
        "comma": ", ",
        "semicolon": "; ",
        "colon": ": ",
        "stop": ".",
        "and": ", ",
        "latent-q": "latent of q",
        "latent-kv": "latent of k and v",
        "indexer-k": "indexer's k",
        "latents": "Latents",
        "block": "The block of {name}: {equations}",
        "released": "Model",
        "models": "Models by release, each with its source",
        "no-weights": "no weights",
        "notes": "Model by model, in the same order",
        "base": "base",
        "instruct": "instruct",
        "cited": "cited {0}",
        "families": "Ten families, each by one model",
        "biases": "Biases",
        "matrices": "matrices",
    },
    "zh": {
        "architecture": "架构",
        "norm": "归一化",
        "placement": "位置",
        "qk": "QK-Norm",
        "family": "系列",
        "gain": "增益",
        "eps": "ε",
        "cast": "舍入",
        "caption": "各架构的归一化（按类的默认配置）",
        "pre": "Pre",
        "post": "Post",
        "sandwich": "夹心",
        "branch-output": "分支输出处",
        "pre-parallel": "Pre，并行",
        "residual-after-norm": "残差取自归一化之后",
        "multi-stream": "多条残差流",
        "none": "无",
        "q, k, v": "q、k、v",
        "other": "其他",
        "unresolved": "未解出",
        "partial": "只解出一部分",
        "no-gain": "无增益",
        "per-head-gain": "每个头一个 w",
        "head": "逐头",
        "heads": "跨头",
        "projection": "整个投影",
        "before": "RoPE 之前",
        "after": "RoPE 之后",
        "no-rope": "无 RoPE",
        "side": "{0}，{1}",
        "bias": "有偏置",
        "no-bias": "无偏置",
        "layer": "第 {0} 层",
        "layers": "第 {0} 层",
        "values": "v",
        "lines": "块",
        "norms": "归一化层",
        "caps": "soft-cap",
        "capped": {"attention": "注意力", "final": "最终 logit", ", ": "、"},
        "multipliers": "系数",
        "functional": "没写成模块的归一化",
        "unusual": "不寻常之处",
        "source": "源码",
        "overflow": "float16 下输入 300 就溢出",
        "k-only": "只有 k",
        "sites": {
            **{"final": "最终", "embedding": "词嵌入", "gated": "门控"},
            "head": "在 LM 头里",
        },
        "brackets": "（{0}）",
        "comma": "、",
        "semicolon": "；",
        "colon": "：",
        "stop": "。",
        "and": "，",
        "latent-q": "q 的潜在向量",
        "latent-kv": "k 和 v 的潜在向量",
        "indexer-k": "索引器的 k",
        "latents": "潜在向量",
        "block": "{name} 的块：{equations}",
        "released": "模型",
        "models": "按发布时间排列的模型，各附出处",
        "no-weights": "未公开权重",
        "notes": "逐个模型，次序同上",
        "base": "基础版",
        "instruct": "指令版",
        "cited": "文献 {0}",
        "families": "十个系列，每个举一个模型",
        "biases": "偏置",
        "matrices": "矩阵",
    },
}


CASTS = {
    "cast, then gain": {"en": "cast before the gain", "zh": "先转换类型再乘增益"},
    "gain in fp32, then cast": {
        "en": "cast after the gain",
        "zh": "先乘增益再转换类型",
    },
    "in fp32, then cast": {"en": "cast at the end", "zh": "最后转换类型"},
    "in fp32, not cast back": {"en": "stays float32", "zh": "结果保持 float32"},
    "root cast, then product": {
        "en": "inverse root cast before the product",
        "zh": "先转换 rsqrt 的类型，再相乘",
    },
    "in the input's dtype": {"en": "in the input's dtype", "zh": "始终用输入的类型"},
}
WIDER = {
    "en": "in the input's dtype; with a float32 gain, float32 out",
    "zh": "始终用输入的类型；增益为 float32 时输出 float32",
}
ROUNDS = {  # the same in a table's cell
    "cast, then gain": {"en": "before gain", "zh": "增益前"},
    "gain in fp32, then cast": {"en": "after gain", "zh": "增益后"},
    "in fp32, then cast": {"en": "at the end", "zh": "最后"},
    "in fp32, not cast back": {"en": "stays float32", "zh": "保持 float32"},
    "root cast, then product": {"en": "before the product", "zh": "相乘前"},
    "in the input's dtype": {"en": "everywhere", "zh": "每一步"},
}
ODD = {
    "en": {
        "one_plus": "gain 1 + w",
        "no_gain": "a norm without a gain",
        "groups": "statistics over groups of features",
        "kinds": "LayerNorm and RMSNorm in one block",
        "eps": "different epsilons: {0}",
        "rare_eps": "ε = {0}",
        "after_rope": "QK-Norm after RoPE",
        "projection": "QK-Norm over the whole projection",
        "v": "values are normalized too",
        "latent": "norms on the latents of attention",
        "indexer": "a norm on the indexer's key",
        "gated": "a gated norm",
        "factors": "a coefficient other than one in the equation",
        "no_final": "no final norm, and not Post-Norm",
        "embedding": "a norm on the embeddings",
        "overflow": "a norm that overflows in float16",
    },
    "zh": {
        "one_plus": "增益是 1 + w",
        "no_gain": "有不带增益的归一化",
        "groups": "按特征分组计算统计量",
        "kinds": "同一个块里既有 LayerNorm 又有 RMSNorm",
        "eps": "ε 不一致：{0}",
        "rare_eps": "ε = {0}",
        "after_rope": "QK-Norm 在 RoPE 之后",
        "projection": "QK-Norm 作用于整个投影",
        "v": "v 也做归一化",
        "latent": "注意力的潜在向量上有归一化",
        "indexer": "索引器的 k 上有归一化",
        "gated": "有门控归一化",
        "factors": "方程里有不等于一的系数",
        "no_final": "没有最终归一化，又不是 Post-Norm",
        "embedding": "词嵌入之后有归一化",
        "overflow": "有在 float16 下溢出的归一化",
    },
}


# Why something was not resolved: what the record says, in words for people. What
# stands in brackets is kept, placements in it are put in words.
REASONS = (
    (
        r"the layer's other stream",
        {
            "en": "the layer's other stream, of another length, has no equation",
            "zh": "这一层还有一条长度不同的流，没有读出它的方程",
        },
    ),
    (
        r"not done after (.+) s",
        {"en": "not done after {0} s", "zh": "{0} 秒内没有跑完"},
    ),
    (
        r"needs more than (.+) MiB",
        {"en": "needs more than {0} MiB of memory", "zh": "需要超过 {0} MiB 的内存"},
    ),
    (
        r"ImportError: .*requires the (\w+) library.*",
        {
            "en": "needs the library `{0}`, which was not installed",
            "zh": "需要库 `{0}`，测量时没有安装",
        },
    ),
    (
        r"output not matched",
        {
            "en": "what the block returns is no sum of tensors seen on the way",
            "zh": "块的输出不是途中所见张量之和",
        },
    ),
    (
        r"not matched: (.+)",
        {
            "en": "no combination of the tensors seen gives these: {0}",
            "zh": "所见张量的组合都对不上：{0}",
        },
    ),
    (
        r"no graph shows what .*",
        {
            "en": "runs without a graph, so what its branches read is not seen",
            "zh": "前向时不建计算图，看不到分支读了什么",
        },
    ),
    (
        r"the list's modules add nothing to a residual stream themselves",
        {
            "en": "no module holds a whole layer: its parts stand in separate lists",
            "zh": "没有模块装着完整的一层，各部分分散在几个列表里",
        },
    ),
    (
        r"no list of blocks with one residual stream",
        {
            "en": "no list of blocks with a residual stream",
            "zh": "找不到带残差流的块列表",
        },
    ),
    (
        r"not run: layer (.+)",
        {
            "en": "text alone does not reach layer {0}",
            "zh": "只输入文本走不到第 {0} 层",
        },
    ),
    (
        r"branches differ: (.+)",
        {"en": "branches differ: {0}", "zh": "各分支不同：{0}"},
    ),
    (
        r"norms whose input was not matched: (.+)",
        {
            "en": "norms that read no tensor seen: {0}",
            "zh": "有归一化层的输入对不上：{0}",
        },
    ),
    (
        r"norms without a place in the equations: (.+)",
        {
            "en": "norms without a place in the equations: {0}",
            "zh": "有归一化层不在方程里：{0}",
        },
    ),
    (
        r"norms that never ran: (.+)",
        {"en": "norms that never ran: {0}", "zh": "有归一化层没有跑到：{0}"},
    ),
    (
        r"roots that no probe tells: (.+)",
        {
            "en": "roots of rows that the probes do not tell: {0}",
            "zh": "有按行开方的运算，探测没能认出是哪种归一化：{0}",
        },
    ),
    (
        r"the process (?:died with status (\S+)|that runs the tasks ended)",
        {"en": "the process died", "zh": "进程中途退出"},
    ),
    (
        r"\w+: (?:Class validation error [^:]*: \w+: )?(.+)",
        {
            "en": "does not run as a tiny text-only instance: `{0}`",
            "zh": "缩小后，只输入文本时无法运行（`{0}`）",
        },
    ),
)


def reason_words(reason: str, language: str) -> str:
    """Why something was not resolved, in one line of Markdown."""
    for pattern, said in REASONS:
        if found := re.fullmatch(pattern, reason):
            words = WORDS[language]
            kept = (found[1] or "" if found.groups() else "").replace("`", "")
            if pattern.startswith("branches"):
                parts = (part.split() for part in kept.split(", "))
                kept = words["comma"].join(f"{n} {words.get(p, p)}" for n, p in parts)
            return said[language].format(kept)
    return html.escape(reason)


def cast_words(cast: str, language: str) -> str:
    """Where a norm rounds, and the dtype that comes out, in words."""
    order, arrow, dtype = cast.partition(" → ")
    if order == "in the input's dtype" and dtype == "float32":
        return WIDER[language]
    return CASTS.get(order, {}).get(language, order) + arrow + dtype


def rounds_words(cast: str, language: str) -> str:
    """Where a norm rounds to its input's dtype, for a table's cell."""
    order = cast.partition(" → ")[0]
    return ROUNDS.get(order, {}).get(language, order)


def gain_words(gain: str, words: dict) -> str:
    """A gain's form: w, 1 + w, one a head, or that there is none."""
    said = {"none": words["no-gain"], "w per head": words["per-head-gain"]}
    return said.get(gain, gain.replace("+", " + "))


def decimal(value: float) -> str:
    """A number as people write it: 1e-6, 1.5625e-7, 0.0625."""
    return f"{value:g}".replace("e-0", "e-")
