"""Where an operator is: between a model, autograd, a compiler and the kernels."""

from scripts.site.pictures.diagram import INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": (
            "算子在哪一层。模型调用 autograd.Function，它调用两个算子，前向一个，反向"
            "一个。编译器和导出看到虚线为止：问形状，由 fake 回答；数是 kernel 算的，"
            "谁也不往里看。"
        ),
        "alt": (
            "从上到下：模型有一支箭头指向 autograd.Function，它再指向并排的两个算子，前"
            "向的和反向的。算子下面是一条虚线，标着“编译器、导出看到这里”。虚线以下，每"
            "个算子各指向两个框：fake，只给形状；kernel，算出数。"
        ),
        "model": "模型",
        "function": "autograd.Function",
        "forward": "前向算子",
        "backward": "反向算子",
        "fake": "fake\n形状",
        "kernel": "kernel\n数",
        "border": "编译器、导出看到这里",
        "graph": "梯度",
        "schema": "名字，schema",
    },
    "en": {
        "caption": (
            "Where the operator is. The model calls an autograd.Function, which "
            "calls two operators, one a direction. Compilers and exports see as far as "
            "the dashed line: they ask for shapes, and the fake answers; the numbers "
            "are the kernel's, and nobody looks into it."
        ),
        "alt": (
            "From top to bottom: the model has an arrow to autograd.Function, which "
            "has arrows to two operators side by side, forward and backward. Below "
            "them runs a dashed line, marked: compilers stop here. Below the "
            "line each operator has arrows to two boxes: the fake, for shapes, and the "
            "kernel, for numbers."
        ),
        "model": "model",
        "function": "autograd.Function",
        "forward": "forward operator",
        "backward": "backward operator",
        "fake": "fake\nshapes",
        "kernel": "kernel\nnumbers",
        "border": "compilers stop here",
        "graph": "gradients",
        "schema": "name, schema",
    },
}


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 3.1)
    canvas.box(1.7, 2.72, 1.6, 0.32, words["model"])
    canvas.arrow((2.5, 2.72), (2.5, 2.46), colour=INK)
    canvas.box(1.5, 2.1, 2.0, 0.36, words["function"], edge=SERIES[0])
    canvas.text(3.6, 2.28, words["graph"], align="left", size=SMALL, colour=MUTED)
    for x, name in ((0.1, "forward"), (2.62, "backward")):
        middle = x + 1.14
        canvas.arrow((2.5, 2.1), (2.5, 1.95), (middle, 1.95), (middle, 1.8), colour=INK)
        canvas.box(x, 1.24, 2.28, 0.56, edge=SERIES[1])
        canvas.text(middle, 1.64, words[name])
        canvas.text(middle, 1.4, words["schema"], size=SMALL, colour=MUTED)
        for start, part in ((x + 0.08, "fake"), (x + 1.2, "kernel")):
            canvas.arrow((start + 0.5, 1.24), (start + 0.5, 0.62), colour=INK)
            canvas.box(start, 0.08, 1.0, 0.54, words[part], size=SMALL)
    canvas.line([(0.1, 0.98), (4.9, 0.98)], lines="--")
    canvas.text(2.5, 0.83, words["border"], size=SMALL, colour=MUTED)
    return canvas
