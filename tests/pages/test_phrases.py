"""Sentences with numbers that nobody measured or cited, and true ones that may pass."""

import pytest

from tests.pages import numbers
from tests.pages.test_numbers import claims_about_the_world, violations

# Said of a method without a fact or a source.
ENGLISH = """
It is 3x faster. · It is 1.5× faster. · It is 2-3x faster. · It is 3 times as fast.
It is three times faster. · It is twice as fast. · A ten-fold gain. · A 10-fold one.
It saves 12.5 % of the time. · It saves 12 per cent. · It saves ten percent.
It takes 5 ms. · It takes 17µs. · It takes 3 seconds. · It reads at 4.8 TB/s.
It is an 80GB card. · It draws 700 W. · It runs at 1,980 MHz. · It does 989 TFLOPS.
It makes 120 tokens/s. · | kernel | 5 ms | · ## Why 2x { #why }
It is twice the speed of LayerNorm. · It is twice as accurate.
It runs at double the speed. · It doubles the throughput. · It triples the throughput.
It halves the time. · It takes half the time. · It takes a third of the time.
It saves a quarter of the memory. · It is two orders of magnitude faster.
It is 10^3 faster. · It is faster by a factor of 7.8.
It is faster by a factor of eight. · The speed-up is 7.8.
The speedup is 7.8 on an A100. · The ratio is 1.53. · The loss falls from 3.41 to 2.17.
Perplexity drops to 11.8. · Accuracy is 0.92. · BLEU rises by 0.7 points.
It takes 5 milliseconds. · It takes 5 msec. · It takes 17 microseconds.
It takes 3 hrs. · It takes two minutes. · It takes ten seconds. · It reads 3 gigabytes.
It reads 4.8 terabytes a second. · It uses 80 gigs. · It does 989 teraflops.
It makes 1.2M tokens a day. · It costs $40,000. · It costs 3 million dollars.
One run in five diverges. · 9 of 10 runs diverge.
Ninety-five out of a hundred seeds train. · It is 50 percentage points better.
It is 7.8 X faster. · It is 7.8-times faster. · It is eight times LayerNorm's speed.
It is hundreds of times faster. · It is several-fold faster.
It uses 1/3 of the time. · It uses ⅓ of the time. · The gradient norm is 4e-5.
The correlation is .98. · p < 0.01.
It takes 5&nbsp;ms. · It is 3&times; faster. · It saves 40\u00a0%. · It saves 40\u202f%.
It is <b>3</b>x faster. · It is 3\u200bx faster. · It is ３x faster.
It is `3x` faster. · It takes `5 ms`. · It is $3\\times$ faster. · It saves $40\\%$.
[see](page.md "3x faster, 40 %") · <img src="a.png" alt="3x faster">
It is [% if true %]3[% endif %]x faster. · It is [[ 1 + 2 ]]x faster.
One source says so [[ cite.a2020b ]]. It is 3x faster.
One source says so [[ cite.a2020b ]]; ours takes 5 ms.
It runs 40 % quicker. · Training is sped up 2.3-fold. · Memory drops by 30 percent.
It needs three quarters of the memory. · It cuts the cost in half. · It halves latency.
It quadruples the throughput. · Throughput doubled. · The run time tripled.
It is five times faster than LayerNorm. · It is fifty times slower.
It takes 250 microseconds. · It takes forty milliseconds. · It lasts six hours.
It needs 12 GiB. · It needs 12 gibibytes. · It moves 3 TB per second at 1.2 TB/s.
Its error is 0.003. · The loss is 2.31 nats. · It scores 71.4 on MMLU.
Two of five seeds diverge. · Three out of ten runs fail at this rate.
It is an order of magnitude cheaper. · It is thousands of times faster.
It is a factor of two. · It draws 300 watts. · It costs €12,000. · It is 95% as fast.
It reaches 0.5 of the bandwidth. · Its gradient norm is 1/8 of that at the same cost.
RMSNorm leads by 7 points. · BLEU rises by two points. · It wins 7 to 1.
Its odds are seven to two. · A ratio of 7 to 3. · It is ahead in a 7:1 ratio.
It takes an eighth of the time. · It needs a seventh of the memory.
It is faster by 1.2e3. · It needs sixty per cent of the steps. · It runs in two hours.
"""
CHINESE = """
它快 3 倍。 · 它快3倍。 · 它快两倍。 · 它快十几倍，其实是三点五倍。
省下 12.5% 的时间。 · 省下百分之十。 · 高出 3 个百分点。 · 用时 5 毫秒。
用时 17 µs。 · 跑了 3 秒。 · 显存 141 GB，带宽 4.8 TB/s。 · 功耗 700 W。
它的速度翻倍。 · 它的速度翻了三番。 · 它快叁倍。 · 它只用一半的时间。 · 时间减半。
省下三成时间。 · 省下三分之一的时间。 · 时间是原来的 1/3。 · 快两个数量级。
加速比为 7.8。 · 加速比是七点八。 · 损失从 3.41 降到 2.17。 · 困惑度为 11.8。
准确率 0.92。 · 用时五秒。 · 用时三个小时。 · 用时 3 个小时。 · 显存 80 吉字节。
每秒 120 个 token。 · 每秒三百万个 token。 · 吞吐 1.2 万 token/秒。
五次里有一次发散。 · 十有八九会发散。 · 快 7.8 X。 · 高 3 个点。 · 高三个点。
成本 30 万美元。 · 成本四十万美元。 · 九成的时间在访存。 · 九成九的时间在访存。
误差不到千分之一。 · 误差不到万分之三。 · 快 ３ 倍。 · 快 3&nbsp;倍。 · 省 40\u3000%。
快`3 倍`。 · 省 $40\\%$。 · [看](page.md "快 3 倍") · <img src="a.png" alt="快 3 倍">
前一句有引用 [[ cite.a2020b ]]。它快 3 倍。
一处有引用 [[ cite.a2020b ]]；我们快 3 倍。
显存省下四分之一。 · 显存减半。 · 吞吐翻番。 · 吞吐翻了一番。 · 训练时间加倍。
快了一个数量级。 · 快几个数量级。 · 它快好几倍。 · 它慢二十倍。 · 快 1.5 倍。
用时两分钟。 · 训练了十小时。 · 用时三毫秒。 · 延迟 20 微秒。 · 耗时 20 ms。
七成的时间在等显存。 · 六成以上的时间。 · 百分之五的显存。 · 成本降了 30%。
损失为 2.31。 · 误差是 0.003。 · 相关系数 0.98。 · 梯度范数是 4e-5。
十次里三次发散。 · 贵三倍。 · 速度是它的 1/2。 · 速度只有一半。 · 省下两美元。
高 0.7 个点。 · 只差零点三。 · 慢了二成。 · 功耗 300 瓦。 · 需要 12 GiB。
领先 7 个点。 · 提高了两个点。 · 胜负是 7 比 1。 · 七比一。 · 快慢之比为 7:1。
提速 2.5×。 · 提速 40 ％。 · 每秒 3 万字节。 · 显存用量是五分之二。
"""
TRUE = """
float32 and bfloat16 are formats; fp8 has 8 bits.
A 7B model with 4096 features, 32 layers and 1e-6 inside the root.
Python 3.11 in 2026, torch 2.13.0, in the 1990s and the 2020s.
It takes [[ facts.speed.ln ]] µs, [[ facts.speed.ratio ]] times as long.
It is [[ facts.speed.share ]] % of the step and [[ facts.speed.x ]]× faster.
The paper reports 7 % to 64 % less time [[ cite.zhang2019rms ]].
See e.g. the table, where 3.5x is cited, [[ cite.a2020b ]].
The code says `x * 2`, the formula $2x + 1$.
A 3x3 kernel, 4096 × 4096 weights, a vector of 0s and 1s.
Run it three times; several times; 20 times with other seeds.
An A100-80GB, an H100-SXM5-80GB and eq. 4 of section 3.
Read [50 % more](https://example.org/95%25) of what it says [[ cite.a2020b ]].
It doubles the traffic; half of the features are zero.
Two thousand tokens, step 3 of 5.
Bars are the 95 % interval of the median, the 95 % confidence interval.
The upper half of the layers; a half step; the second half of the model.
Section 4.2, Llama 3.1, Qwen2.5, SD 3.5 and Table 2.
AdamW with weight decay 0.1 and a learning rate of 0.002.
A model of 2.7 billion parameters, 1.5 million bytes.
ReLU leaves half of the mean square. · The third term is zero.
Layers 4 to 6, from 3 to 1, one to one. · Look at one point.
It reads the row twice and writes it once. · Every second layer has a norm.
One of the two norms goes. · A factor of the gain. · The order of the layers.
横线是中位数的 95% 区间，即 95 % 置信区间。 · float32 与 bfloat16 是格式；fp8 有 8 位。
7B 模型有 4096 维、32 层，根号里是 1e-6。
2026 年的 Python 3.11，第 3 步，共 5 个种子。
它用时 [[ facts.speed.ln ]] 微秒，是前者的 [[ facts.speed.ratio ]] 倍。
占一步的 [[ facts.speed.share ]]%，快 [[ facts.speed.x ]] 倍。
论文报告省下 7% 到 64% 的时间 [[ cite.zhang2019rms ]]。
3x3 的卷积核，4096 × 4096 的权重。 · 四的倍数，成倍增长，倍增，整数倍。
跑三次，换 20 个种子。 · 十个特征里有一半是零，三层网络，两种写法。
A100-80GB 是显卡的名字。 · 引用在句中（[[ cite.a2020b ]]）：快 3 倍。
指数为 15。 · 学习率为 0.002，权重衰减 0.1。 · 27 亿参数，1.25 亿参数。
第一成立，第二不成立。 · 一半的特征是零。 · 前一半的层。 · 它由三部分组成，各成一层。
五个点是分数。 · 收敛到一个点。 · 16 比特，第一比第二好。
同一个数量级。 · 见 4.2 节、表 2。 · 二选一。 · 百分比。 · 一点也不难。
"""
PRINTED = """
measured on an H200: RMSNorm 7.8x faster · RMSNorm is 3 times faster · 5.3 ms
H100: 2.1x · speed-up: 7.8 · 120 tokens/s · 快 3 倍 · A100 LayerNorm 17.2%
"""
PRINTED_TRUE = """
x         0.500   1.000 · largest difference 1.2e-07 · grad norm 3.1 · fp8 e4m3
bytes: 3 · error 0.3% · layers 12, d 256
"""


def sentences(text: str) -> list[str]:
    return [
        one.strip() for line in text.split("\n") for one in line.split(" · ") if one
    ]


@pytest.mark.parametrize("text", sentences(ENGLISH) + sentences(CHINESE))
def test_refused(text):
    assert violations(text)


@pytest.mark.parametrize("text", sentences(TRUE))
def test_true(text):
    assert violations(text) == []


@pytest.mark.parametrize("text", sentences(PRINTED))
def test_printed(text):
    assert claims_about_the_world(text)


@pytest.mark.parametrize("text", sentences(PRINTED_TRUE))
def test_printed_and_true(text):
    assert not claims_about_the_world(text)


@pytest.mark.parametrize(
    "head", ["time (ms)", "bandwidth, GB/s", "用时（毫秒）", "speed-up", "share (%)"]
)
def test_a_unit_in_the_head_of_a_table(head):
    table = f"| norm | {head} |\n|---|---|\n| LayerNorm | 5 |\n"
    assert violations(table) == ["3: '5' in a column with a unit"]
    assert not violations(table.replace("5", "[[ facts.a.b ]]"))
    assert not violations(table.replace("5", "5 [[ cite.a2020b ]]"))
    assert not violations(table.replace(head, "layers"))


@pytest.mark.parametrize(
    ("text", "proof", "whole", "free"),
    [
        ("It is 0.71.", "x == 0.7071", False, True),
        ("It is 0.72.", "x == 0.7071", False, False),
        ("It is 0.004 %.", "3.9e-5 < share", False, True),
        ("It saves 40 %.", "share == 0.4", False, True),
        ("It saves 40 %.", "features = 40", False, False),
        ("A mean of 6.7 billion.", "6_738_415_616", False, True),
        ("It is 3 times as large.", "3", False, False),
        ("It is 3 times as large.", "assert y == 3 * x", True, True),
        ("它大九倍。", "assert y == 9 * x", True, True),
        ("它大八倍。", "assert y == 9 * x", True, False),
        ("A thousand times smaller.", "1e-3 * x", True, True),
    ],
)
def test_what_code_bears_out(text, proof, whole, free):
    assert (violations(text, numbers.numbers_of(proof), whole) == []) == free


def test_the_line_is_that_of_the_number():
    text = "---\ntitle: T\n---\n\nFirst line,\nthen 3x\nfaster.\n"
    assert violations(text) == ["6: '3x' is neither a fact nor cited"]
    assert violations("---\ndescription: 3x faster.\n---\n")[0].startswith("2: ")
