"""The report's words in both languages."""

WORDS = {
    "en": {
        "title": "Examined: {0}",
        "size": "{0} parameters; input {1}",
        "tokens": "tokens",
        "reals": "real numbers",
        "list": "`{0}`: {1} layers of {2}",
        "of": "Layers {n} of {0}",
        "of-one": "Layer {n} of {0}",
        "in": "layers {n}",
        "in-one": "layer {n}",
        "axes": "{0}: axes of the norm's input that its statistic runs over, from 0.",
        "past": "An output reads its own token and earlier ones.",
        "all": "An output reads all tokens, later ones too.",
        "some later": "An output reads some later tokens and not others.",
        "batch-norms": (
            "Placement: not read where BatchNorm stands ({0}): in evaluation it is a "
            "fixed scale and shift."
        ),
        "faults": "Faults",
        "no-faults": "No fault found.",
        "no-faults-read": "No fault found in what was read.",
        "remarks": "Remarks",
        "against": "Against {0}",
        "same": "The blocks and their norms agree.",
        "differs": "{0}: {1} here; {2} there",
        "not-shared": "The weights cannot be shared: {0}.",
        "missing": "its state dict lacks `{0}` or has it in another shape",
        "other-input": "it does not take this input",
        "own-agree": (
            "Each with its own weights: the outputs and the stream after every layer "
            "agree (apart by {0}, where rounding gives {1})."
        ),
        "own-output": (
            "Each with its own weights: the outputs agree (apart by {0}, where "
            "rounding gives {1})."
        ),
        "own-differ": (
            "Each with its own weights: the outputs differ by {0} of their size, where "
            "rounding gives {1}."
        ),
        "own-shapes": "Each with its own weights: the outputs have other shapes.",
        "own-layers": "Their layers do not correspond and were not compared.",
        "own-behind": "The stream agrees after every layer; what follows differs.",
        "own-before": "They differ before the first layer already, by {0}.",
        "own-first": (
            "The stream differs first after layer {0} (`{1}`): by {2} of its size, "
            "where rounding gives {3}."
        ),
        "own-input": (
            "Not compared with their own weights: the other does not take this input."
        ),
        "mapped": (
            "Stored tensors were matched by name ({0}), by value or place ({1}; unsure "
            "of them: {2}); left over: {3}."
        ),
        "exchanged": "Gains are exchanged: {0}.",
        "folded": "The gain went into all matrices that read it: {0}.",
        "left-out": "The gain of {0} was folded, but not into {1}, which reads it too.",
        "one-more": "The gain is one more than there: {0}. One added twice?",
        "one-less": "The gain is one less than there: {0}. One forgotten?",
        "offset-scaled": (
            "The matrices behind {0} were scaled, and w was divided, not 1 + w."
        ),
        "elsewhere": "The gain of {0} was scaled, but it is {1} that took the factor.",
        "unread-scale": "All matrices behind {0} were scaled, and its gain was not.",
        "other-gain": (
            "The gain differs, by up to {1} of it, and no matrix makes up for it: {0}."
        ),
        "values": "Stored values differ: {0}.",
        "first": (
            "With the same weights the first difference is in layer {0} (`{1}`): "
            "{2} of the stream, where rounding gives {3}."
        ),
        "first-module": "It begins in `{0}`: same input, another output.",
        "before": "With the same weights they differ before the first layer, by {0}.",
        "behind": "All layers agree with the same weights; what follows them differs.",
        "agree": "With the same weights every layer agrees up to rounding.",
        "limits": (
            "Probed on random weights, in evaluation, on a CPU; stored gains were read "
            "before. What did not run was not seen."
        ),
        "none": "none",
        "unread": "not read",
        "inside": "{0}",
        "outside": "{0} outside the root",
        "floor": "{0} as a floor",
        "yes": "yes",
        "no": "no",
        "comma": ", ",
        "fields": {
            "placement": "placement",
            "equations": "equations",
            "norm": "norm",
            "kind": "kind",
            "gain": "gain",
            "bias": "bias",
            "eps": "ε",
            "cast": "rounding",
            "fp16": "right in float16 at ±300",
            "qk": "QK-Norm",
        },
        "sites": {
            "attention-in": "before attention",
            "attention-out": "after attention",
            "ffn-in": "before the FFN",
            "ffn-out": "after the FFN",
            "mixer-in": "before the mixer",
            "mixer-out": "after the mixer",
            "shared-in": "before both branches",
            "final": "final",
            "embedding": "embedding",
            "other": "elsewhere",
        },
        "drawing": "The block: {0}",
    },
    "zh": {
        "title": "检查：{0}",
        "size": "{0} 个参数；输入 {1}",
        "tokens": "token",
        "reals": "实数",
        "list": "`{0}`：{1} 层 {2}",
        "of": "{0} 第 {n} 层",
        "of-one": "{0} 第 {n} 层",
        "in": "第 {n} 层",
        "in-one": "第 {n} 层",
        "axes": "{0}：统计量所跨的输入轴，从 0 数起。",
        "past": "每个输出只读自己和更早的 token。",
        "all": "每个输出读全部 token，包括后面的。",
        "some later": "输出读到后面的一部分 token，另一部分读不到。",
        "batch-norms": (
            "位置：BatchNorm 所在之处（{0}）读不出，"
            "它在 eval 模式下只是固定的缩放和平移。"
        ),
        "faults": "错误",
        "no-faults": "没有发现错误。",
        "no-faults-read": "读出的部分里没有发现错误。",
        "remarks": "备注",
        "against": "与 {0} 对比",
        "same": "块和其中的归一化都一致。",
        "differs": "{0}：{1}（本模型）；{2}（对方）",
        "not-shared": "权重不能共用：{0}。",
        "missing": "对方的 state dict 里没有 `{0}`，或形状不同",
        "other-input": "对方不接受这个输入",
        "own-agree": (
            "各用自己的权重：输出和每一层之后的残差流都一致（相差 {0}，舍入为 {1}）。"
        ),
        "own-output": "各用自己的权重：输出一致（相差 {0}，舍入为 {1}）。",
        "own-differ": "各用自己的权重：输出相差自身大小的 {0}，而舍入只有 {1}。",
        "own-shapes": "各用自己的权重：两个输出形状不同。",
        "own-layers": "两边的层对不上，没有逐层比较。",
        "own-behind": "每一层之后的残差流都一致，不同的是后面的部分。",
        "own-before": "第一层之前就已不同，相差 {0}。",
        "own-first": (
            "残差流从第 {0} 层（`{1}`）之后开始不同："
            "相差自身大小的 {2}，而舍入只有 {3}。"
        ),
        "own-input": "没有用各自的权重比较：对方不接受这个输入。",
        "mapped": (
            "存着的张量按名字对上 {0} 个，按数值或位置对上 {1} 个"
            "（其中 {2} 个没有把握），剩下 {3} 个。"
        ),
        "exchanged": "增益互换了：{0}。",
        "folded": "增益已并入读它的全部矩阵：{0}。",
        "left-out": "{0} 的增益并入了矩阵，却漏了同样读它的 {1}。",
        "one-more": "增益比对方大一：{0}。加一加了两次？",
        "one-less": "增益比对方小一：{0}。忘了加一？",
        "offset-scaled": "读 {0} 的矩阵缩放过，该除的是 1 + w，却只除了 w。",
        "elsewhere": "{0} 的增益缩放过，乘上这个系数的却是 {1}。",
        "unread-scale": "读 {0} 的矩阵都缩放过，它的增益却没有。",
        "other-gain": "增益不同，最多差 {1}，读它的矩阵没有抵消：{0}。",
        "values": "存着的数值不同：{0}。",
        "first": (
            "权重相同时，第一处差异在第 {0} 层（`{1}`）："
            "占残差流的 {2}，而舍入只有 {3}。"
        ),
        "first-module": "差异始于 `{0}`：输入相同，输出不同。",
        "before": "权重相同时，第一层之前就不同了，相差 {0}。",
        "behind": "权重相同时各层一致，不同的是最后一层之后。",
        "agree": "权重相同时，每一层都一致，只差舍入。",
        "limits": (
            "探测用的是随机权重、eval 模式、CPU；存着的增益在此之前已读过。"
            "没有跑到的部分看不见。"
        ),
        "none": "无",
        "unread": "未读出",
        "inside": "{0}",
        "outside": "根号外 {0}",
        "floor": "下限 {0}",
        "yes": "是",
        "no": "否",
        "comma": "、",
        "fields": {
            "placement": "位置",
            "equations": "方程",
            "norm": "归一化",
            "kind": "种类",
            "gain": "增益",
            "bias": "偏置",
            "eps": "ε",
            "cast": "舍入",
            "fp16": "float16 下输入 ±300 正确",
            "qk": "QK-Norm",
        },
        "sites": {
            "attention-in": "注意力之前",
            "attention-out": "注意力之后",
            "ffn-in": "FFN 之前",
            "ffn-out": "FFN 之后",
            "mixer-in": "混合层之前",
            "mixer-out": "混合层之后",
            "shared-in": "两个分支之前",
            "final": "最终",
            "embedding": "词嵌入",
            "other": "其他位置",
        },
        "drawing": "块：{0}",
    },
}

RULES = {
    "unreached": {
        "en": "no gradient reaches it, though its module runs",
        "zh": "所在模块跑到了，却没有梯度传到它",
    },
    "no-graph": {
        "en": (
            "the model runs without gradients, as for inference: those of the whole "
            "model were not checked"
        ),
        "zh": "模型关掉了梯度，像是只做推理：没有检查整个模型的梯度",
    },
    "dead": {
        "en": "a parameter of a norm without effect on its output",
        "zh": "归一化的参数对输出不起作用",
    },
    "detached": {
        "en": "the gradient leaves out the statistics, as if they were detached",
        "zh": "梯度没有经过统计量，像是做了 detach",
    },
    "in-place": {
        "en": "changes the tensor that it is given",
        "zh": "原地改写了传入的张量",
    },
    "eps-outside": {
        "en": "ε is added to the root, not under it (acts as {0})",
        "zh": "ε 加在根号外，而不在根号里（实际为 {0}）",
    },
    "eps-floor": {
        "en": "ε is a floor: only a root mean square below {0} feels it",
        "zh": "ε 是下限：均方根低于 {0} 才起作用",
    },
    "eps-none": {
        "en": "no ε acts: a row of zeros gives NaN or infinity",
        "zh": "没有 ε 在起作用：全零的行得到 NaN 或无穷大",
    },
    "eps-large": {"en": "a large ε, {0}", "zh": "ε 偏大：{0}"},
    "eps-half": {
        "en": "ε {0} vanishes in float16: a row of zeros gives NaN or infinity",
        "zh": "ε {0} 在 float16 下变成零：全零的行得到 NaN 或无穷大",
    },
    "half": {
        "en": "squares overflow in float16 for elements of 300",
        "zh": "元素为 300 时，平方在 float16 里溢出",
    },
    "over-batch": {
        "en": "statistics run over the batch: a sample feels the others",
        "zh": "统计量跨样本：一个样本受其他样本影响",
    },
    "over-tokens": {
        "en": "statistics run over the tokens as well: a token feels the others",
        "zh": "统计量还跨 token：一个 token 受其他 token 影响",
    },
    "wrong-axis": {
        "en": "normalizes along another axis than the features",
        "zh": "归一化没有沿特征轴",
    },
    "over-axes": {
        "en": "statistics run over axes {0} of its input",
        "zh": "统计量跨输入的第 {0} 轴",
    },
    "unbiased": {
        "en": "divides by n − 1: an unbiased variance",
        "zh": "方差除以 n − 1，用了无偏估计",
    },
    "factor": {
        "en": "gives {0} times what the plain formula gives",
        "zh": "输出是标准公式的 {0} 倍",
    },
    "unread": {
        "en": "a root of rows ({0}) that no probe tells; it may belong to a norm",
        "zh": "有一处按行开方的运算（{0}），探测没能认出来，可能属于某个归一化",
    },
    "scale-lost": {
        "en": "something here ({0}) removes the scale of the stream and was not read",
        "zh": "这里有一处（{0}）去掉了残差流的尺度，没有读出",
    },
    "cancels": {
        "en": "loses the variance of rows far off centre: E[x²] − E[x]² cancels",
        "zh": "行的均值远离零时丢掉方差：E[x²] − E[x]² 相互抵消",
    },
    "one-rounds": {
        "en": "1 + w is rounded to the dtype of w: in bfloat16 a small w is lost",
        "zh": "1 + w 按 w 的类型舍入：bfloat16 下小的 w 会丢掉",
    },
    "gain-near-one": {
        "en": "every w of 1 + w scatters around one. Does the file hold 1 + w?",
        "zh": "1 + w 的 w 全都在一附近。文件里存的已经是 1 + w 吗？",
    },
    "gain-constant": {
        "en": "gain is constant, in other layers it is trained. Was it not loaded?",
        "zh": "增益是常数，其他层的却训练过。没有加载上吗？",
    },
    "stream-scaled": {
        "en": "a Pre-Norm layer multiplies the stream by {0}: it grows with depth",
        "zh": "Pre-Norm 层的残差流乘了 {0}：随深度成倍增长",
    },
    "heads": {
        "en": "heads are cut or merged by a view where a transpose belongs",
        "zh": "拆分或合并头时只用了 view，少了 transpose",
    },
    "over-heads": {
        "en": "a statistic of q or k runs over the heads, not over one head's features",
        "zh": "q 或 k 的统计量跨了头，而不是在一个头的特征里",
    },
    "gain-zero": {
        "en": "gain w is all zeros: the branch is off. Was 1 + w meant?",
        "zh": "增益 w 全为零，分支被关掉。本意是 1 + w 吗？",
    },
    "gain-centred": {
        "en": "gain w scatters around zero. Was 1 + w meant?",
        "zh": "增益 w 在零两侧分布。本意是 1 + w 吗？",
    },
    "gain-two": {
        "en": "gain 1 + w with w all ones doubles. Was w meant?",
        "zh": "增益 1 + w 而 w 全为一，输出翻倍。本意是 w 吗？",
    },
    "branches-differ": {
        "en": "branches of a layer place their norms differently: {0}",
        "zh": "同一层的分支把归一化放在不同位置：{0}",
    },
    "layers-differ": {
        "en": "placement {0}, in other layers {1}",
        "zh": "位置是 {0}，其他层是 {1}",
    },
    "residual-normed": {
        "en": "the residual is taken behind the norm, so the stream itself is normed",
        "zh": "残差取自归一化之后，残差流本身被归一化",
    },
    "stream-normed": {
        "en": "the stream itself is normalized once more in a layer of normed branches",
        "zh": "分支已有归一化的层里，残差流本身又被归一化一次",
    },
    "twice": {"en": "a norm of a norm", "zh": "对归一化的结果再做归一化"},
    "no-final": {
        "en": "no norm between the last layer and the head",
        "zh": "最后一层和输出层之间没有归一化",
    },
    "ends-bare": {
        "en": "returns the stream as the last layer left it, not normed",
        "zh": "直接返回最后一层的残差流，没有归一化",
    },
    "idle": {"en": "a norm that is never called", "zh": "从未被调用的归一化"},
    "named-rms": {
        "en": "called {0}, but subtracts the mean",
        "zh": "名叫 {0}，却减去了均值",
    },
    "one-side": {
        "en": "only {0} of q and k is normed",
        "zh": "q 和 k 中只有 {0} 做了归一化",
    },
    "later-layer": {
        "en": "reads later tokens, where other layers do not",
        "zh": "读到后面的 token，而其他层不会",
    },
    "later-outside": {
        "en": "reads later tokens, though its attention does not",
        "zh": "读到后面的 token，而它的注意力不会",
    },
    "later-some": {
        "en": "reads some later tokens and not others: a mask off by one?",
        "zh": "读到后面的一部分 token：掩码错了一位？",
    },
    "later-causal": {"en": "reads later tokens", "zh": "读到后面的 token"},
    "unsteady": {
        "en": "changes from one evaluation to the next",
        "zh": "eval 模式下，每次结果不同或状态在变",
    },
    "batch": {
        "en": "a sample's output depends on the other samples",
        "zh": "一个样本的输出取决于其他样本",
    },
    "tokens-first": {
        "en": (
            "read with tokens on axis 0 and samples on axis 1, as with "
            "batch_first=False; were samples meant to be on axis 0, they feel each "
            "other"
        ),
        "zh": (
            "按第 0 轴是 token、第 1 轴是样本来读（batch_first=False 就是这样）；"
            "如果第 0 轴本该是样本，样本之间就互相影响"
        ),
    },
    "train": {
        "en": "acts differently in training and evaluation, dropout aside",
        "zh": "除 dropout 外，训练和 eval 的行为仍不同",
    },
}

PARTS = {"input": "输入", "gain": "增益", "bias": "偏置"}
for _en, _zh in PARTS.items():
    RULES |= {
        f"gradient-{_en}": {
            "en": f"the gradient of its {_en} is not what finite differences give",
            "zh": f"{_zh}的梯度与有限差分不符",
        },
        f"gradient-{_en}-scaled": {
            "en": (
                f"the gradient of its {_en} is {{0}} times what finite differences give"
            ),
            "zh": f"{_zh}的梯度是有限差分的 {{0}} 倍",
        },
        f"gradient-{_en}-none": {
            "en": f"no gradient comes out for its {_en}: no_grad inside?",
            "zh": f"{_zh}得不到梯度：里面用了 no_grad？",
        },
    }


def said(entry: list, language: str) -> tuple[str, list[str]]:
    """(what a rule says in words, the places) of one entry."""
    from scripts.site.atlas.words import WORDS as ATLAS

    rule, places, details = entry
    atlas = ATLAS[language]

    def word(text: str) -> str:
        parts = (part.split() for part in text.split(", "))
        return atlas["comma"].join(" ".join(atlas.get(p, p) for p in x) for x in parts)

    return RULES[rule][language].format(*(word(str(d)) for d in details)), places
