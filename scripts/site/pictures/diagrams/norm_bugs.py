"""Where the bugs of the museum sit along the path through a norm and its block."""

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "The path of a token through a norm, from top to bottom, "
        "and at each step the exhibits that go wrong there.",
        "alt": "Ten steps in a column, from the input down to the backward pass. "
        "Beside each step are the names of the bugs: most of them at the "
        "mean of squares and at the gain, but no step is free of them.",
        "input": "input x",
        "upcast": "widen",
        "mean": "mean of squares",
        "eps": "+ ε, 1/√",
        "scale": "times x",
        "gain": "times gain",
        "cast": "cast back",
        "block": "residual block",
        "scores": "attention scores",
        "backward": "backward pass",
        "input_bugs": "overwrites input",
        "upcast_bugs": "square then upcast",
        "mean_bugs": "statistic over time, two moments,\nacross heads, per shard",
        "eps_bugs": "eps hard coded",
        "scale_bugs": "divides by rsqrt,\nstrides ignored",
        "gain_bugs": "gain twice, one plus forgotten,\none plus rounds",
        "cast_bugs": "cast back forgotten",
        "block_bugs": "residual after norm,\nalpha on the branch",
        "scores_bugs": "cap never applied",
        "backward_bugs": "fast path only,\ngradient rounds",
    },
    "zh": {
        "caption": "一个 token 从上到下经过归一化的路径，"
        "每一步旁边是在那里出错的展品。",
        "alt": "一列十个步骤，从输入一直到反向传播。每个步骤旁边写着 bug 的名字："
        "均方和增益两处最多，但没有一步是干净的。",
        "input": "输入 x",
        "upcast": "提升精度",
        "mean": "均方",
        "eps": "+ ε，1/√",
        "scale": "乘 x",
        "gain": "乘增益",
        "cast": "转回原 dtype",
        "block": "残差块",
        "scores": "注意力分数",
        "backward": "反向传播",
        "input_bugs": "改写了输入",
        "upcast_bugs": "先平方后提升",
        "mean_bugs": "统计跨了时间，两个矩相减，\n统计跨了头，各分片自己统计",
        "eps_bugs": "ε 写死",
        "scale_bugs": "乘写成了除，\n无视步长",
        "gain_bugs": "增益乘了两遍，忘了加 1，\n加 1 时舍入",
        "cast_bugs": "忘了转回",
        "block_bugs": "残差取自归一化之后，\nα 乘到了分支上",
        "scores_bugs": "上限没有生效",
        "backward_bugs": "快速路径没有反向，\n梯度在求和时舍入",
    },
}
STEPS = [key for key in WORDS["en"] if f"{key}_bugs" in WORDS["en"]]
LEFT, WIDE, HIGH, STEP = 0.1, 1.6, 0.32, 0.46


def draw(words) -> Canvas:
    canvas = Canvas(width=5.0, height=len(STEPS) * STEP + 0.1)
    middle = LEFT + WIDE / 2
    right = LEFT + WIDE
    for row, step in enumerate(STEPS):
        y = canvas.height - 0.1 - HIGH - row * STEP
        inside = step not in ("block", "scores", "backward")
        edge = SERIES[0] if inside else MUTED
        canvas.box(LEFT, y, WIDE, HIGH, words[step], edge=edge, size=9.5)
        if row:
            canvas.arrow((middle, y + STEP), (middle, y + HIGH))
        level = y + HIGH / 2
        canvas.line([(right + 0.06, level), (right + 0.26, level)], colour=GRID)
        canvas.text(
            right + 0.34,
            level,
            words[f"{step}_bugs"],
            size=SMALL,
            align="left",
            colour=INK,
        )
    return canvas
