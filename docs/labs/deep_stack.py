# %% [markdown] lang="zh" id="deep-stack"
# # 深层网络里的信号：八层之后就没了吗？
#
# 讲归一化，常见的开场是：堆八层 Linear + ReLU，打印每层输出的标准差，看它一路往零掉，然后说“信号消失了”；再加上 RMSNorm，标准差回到 1，问题解决。
#
# 这个实验把整件事重做一遍，每一步都先让你猜，再看真实的数。你会发现三件事：往下掉的原因是初始化；标准差并不等于信号；RMSNorm 固定了大小，却保不住这个 ReLU 网络里的信号，再加上残差连接（residual connection）、把归一化放在分支入口，才保得住。
#
# 每个数都由代码打印，多数用五个随机种子，写成“均值 ± 标准差”；曲线是种子 0。需要的只是 Python、PyTorch 和 Matplotlib，在 CPU 上不到一分钟就能跑完。

# %% [markdown] lang="en" id="deep-stack"
# # The signal in a deep stack: gone after eight layers?
#
# A common way to introduce normalization goes like this: stack eight layers of Linear + ReLU, print the standard deviation of each output, watch it fall towards zero, and say that "the signal is gone"; then add RMSNorm, the standard deviation is back at 1, and the problem is solved.
#
# This lab does all of it again. At each step you guess first and look at the real numbers second. You will find three things: what makes the numbers fall is the initialization; a standard deviation is not a signal; RMSNorm fixes the size but does not keep the signal of this ReLU stack, while with residual connections and the norm at the entrance of each branch it stays.
#
# Every number is printed by the code, most of them over five seeds as "mean ± standard deviation"; curves are seed 0. All you need is Python, PyTorch and Matplotlib; on a CPU it runs in under a minute.

# %%
import math

import matplotlib.pyplot as plt
import torch
from torch import nn

from snippets.rms_norm.reference import rms_norm

WIDTH, INPUTS, SEEDS = 512, 64, range(5)


def over_seeds(values):
    """values: one number a seed. 'mean ± standard deviation', two digits."""
    values = torch.tensor(values, dtype=torch.float64)
    mean, error = float(f"{values.mean():.2g}"), float(f"{values.std():.1g}")
    return f"{mean:g} ± {error:g}" if error > 1e-4 * mean else f"{mean:g}"


# %% [markdown] lang="zh"
# 四种初始化：PyTorch 的默认、He、Xavier，以及标准正态。后三种把偏置置零。

# %% [markdown] lang="en"
# Four initializations: PyTorch's default, He, Xavier and unit normal. The last three set the biases to zero.


# %%
def default(layer):
    """What nn.Linear does by itself: uniform on ±1/sqrt(WIDTH), biases too."""


def he(layer):
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)


def xavier(layer):
    nn.init.xavier_normal_(layer.weight)
    nn.init.zeros_(layer.bias)


def unit_normal(layer):
    nn.init.normal_(layer.weight)
    nn.init.zeros_(layer.bias)


# %% [markdown] lang="zh"
# 搭出各层，让输入走一遍，留下每一层的输出。一层怎样算由 `block` 决定，`plain` 是 Linear 加 ReLU。

# %% [markdown] lang="en"
# Build the layers, send the inputs through, and keep the output of each layer. What a layer computes is up to `block`; `plain` is Linear and ReLU.


# %%
def plain(layer, x):
    return torch.relu(layer(x))


def make(depth, initialize, seed):
    """Inputs (INPUTS, WIDTH), each coordinate N(0, 1), and the layers."""
    torch.manual_seed(seed)
    x = torch.randn(INPUTS, WIDTH)
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(depth)]
    for layer in layers:
        initialize(layer)
    return x, layers


def outputs(depth, initialize, block, seed):
    """The input and the output of every layer: depth + 1 tensors."""
    x, layers = make(depth, initialize, seed)
    states = [x]
    with torch.no_grad():
        for layer in layers:
            states.append(block(layer, states[-1]))
    return states


# %% [markdown] lang="zh" id="standard-deviation"
# ## 1 · 标准差真的掉到零吗？
#
# 宽度 512，八层，`nn.Linear` 的默认初始化，输入的每个坐标服从标准正态分布。
#
# **先猜**：第八层输出的标准差是多少？是每层按同一个比例缩小，一直缩下去吗？

# %% [markdown] lang="en" id="standard-deviation"
# ## 1 · Does the standard deviation really fall to zero?
#
# Width 512, eight layers, the default initialization of `nn.Linear`, inputs with standard normal coordinates.
#
# **What do you expect?** What is the standard deviation after layer eight? Does it shrink by one ratio per layer, and go on shrinking?

# %%
runs = [outputs(8, default, plain, seed) for seed in SEEDS]
print("layer   std")
for depth in range(9):
    print(f"{depth:5}   {over_seeds([run[depth].std() for run in runs])}")

# %% [markdown] lang="zh" id="spread"
# **解读**：前几层确实在缩小，到第六层左右就停了，之后各层几乎一样。停下的地方不是零，而是一个下限。
#
# 这个下限可以推出来。默认初始化让权重和偏置都服从 $\pm 1/\sqrt{d}$ 之间的均匀分布，方差是 $1/(3d)$。设 $q$ 是某层输出的均方，那么下一层线性输出的方差是 $q/3 + 1/(3d)$，ReLU 留下均方的一半：
#
# $$q' = \frac{q}{6} + \frac{1}{6d}$$
#
# 每层把均方乘 $1/6$，再加上偏置的那一份。不动点是 $q = 1/(5d)$，全部来自偏置，与输入无关。
#
# ## 2 · 剩下的是信号吗？
#
# 把“大小”和“信号”分开量。信号是不同输入之间的差别：对每个神经元，看它在 64 个输入上的标准差，再对神经元取均方根（root mean square，RMS）。下面把它叫作离散度（spread）。如果它是零，网络对所有输入给出同一个向量，后面的层再也分不清它们。
#
# **先猜**：第八层的离散度占标准差的几成？

# %% [markdown] lang="en" id="spread"
# **Reading:** the first layers do shrink, but at about layer six it stops, and from then on one layer is much like the next. Not zero, but a floor.
#
# The floor can be derived. The default initialization draws weights and biases uniformly from $\pm 1/\sqrt{d}$, a variance of $1/(3d)$. Let $q$ be the mean square of a layer's output. Then the next layer's linear output has variance $q/3 + 1/(3d)$, and ReLU leaves half of the mean square:
#
# $$q' = \frac{q}{6} + \frac{1}{6d}$$
#
# Each layer multiplies the mean square by $1/6$ and adds the biases' share. The fixed point is $q = 1/(5d)$. All of it comes from the biases, none from the input.
#
# ## 2 · Is what is left a signal?
#
# Measure size and signal apart. The signal is the difference between inputs: for each unit take the standard deviation over the 64 inputs, then the root mean square over units. Call it the spread. If it is zero, the network gives the same vector for every input, and no later layer can tell them apart.
#
# **What do you expect?** Which part of the standard deviation at layer eight is spread?


# %%
def rms(h):
    return h.square().mean().sqrt().item()


def spread(h):
    """Difference between the rows of h (INPUTS, WIDTH), per unit, in RMS."""
    return h.var(dim=0).mean().sqrt().item()


print("layer   std              RMS              spread")
for depth in range(9):
    std = over_seeds([run[depth].std() for run in runs])
    size = over_seeds([rms(run[depth]) for run in runs])
    signal = over_seeds([spread(run[depth]) for run in runs])
    print(f"{depth:5}   {std:16} {size:16} {signal}")
print(f"floor of the RMS, sqrt(1/(5d)): {math.sqrt(1 / (5 * WIDTH)):.3g}")

# %% [markdown] lang="zh" id="hundred-layers"
# **解读**：均方根停在推出来的下限上，离散度却没有停，每过一层都缩小到不足一半。到第八层，标准差里几乎只剩偏置，各个输入已经几乎重合。
#
# 所以那种演示量错了东西：它打印的标准差在第六层以后几乎不再变化，真正消失的量它没有打印。
#
# ## 3 · 一百层会怎样？
#
# **先猜**：一百层之后，标准差会小到 $10^{-10}$ 吗？离散度呢？如果去掉偏置又如何？

# %% [markdown] lang="en" id="hundred-layers"
# **Reading:** the RMS stops at the floor that we derived. The spread does not stop: each layer multiplies it by less than a half. At layer eight the standard deviation is almost all bias, and the inputs nearly coincide.
#
# So the demonstration measures the wrong thing. The standard deviation that it prints hardly changes after layer six, and what really vanishes it does not print.
#
# ## 3 · And a hundred layers?
#
# **What do you expect?** Is the standard deviation as small as $10^{-10}$ after a hundred layers? And the spread? And without biases?


# %% alt_zh="对数纵轴的折线图，横轴是层数 0 到 100。默认初始化的 RMS 在几层之内落到一条水平线并一直停在那里；离散度沿直线下降许多个数量级，到底部后因 float32 的舍入而变平；去掉偏置后，RMS 也沿直线下降，不再有下限。" alt_en="Lines on a logarithmic axis over layers 0 to 100. With the default initialization the RMS falls to a level within a few layers and stays there; the spread falls along a straight line by many orders of magnitude and flattens at the bottom, where float32 rounding takes over; without biases the RMS falls along a straight line too and has no floor."
def no_bias(layer):
    nn.init.zeros_(layer.bias)


deep = [outputs(100, default, plain, seed) for seed in SEEDS]
bare = [outputs(100, no_bias, plain, seed) for seed in SEEDS]
print("after 100 layers")
print("  default:   std", over_seeds([run[-1].std() for run in deep]))
print("  default:   spread", over_seeds([spread(run[-1]) for run in deep]))
print("  no biases: std", over_seeds([run[-1].std() for run in bare]))

figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
axes.semilogy([rms(h) for h in deep[0]], "C0", label="RMS, default")
axes.semilogy([spread(h) for h in deep[0]], "C1", label="spread, default")
axes.semilogy([rms(h) for h in bare[0]], "C2--", label="RMS, no biases")
axes.set(xlabel="layer", ylabel="size (log scale)", ylim=(1e-12, 10))
axes.legend()
plt.show()

# %% [markdown] lang="zh" id="initialization"
# **解读**：一百层之后标准差和八层时差不多，离 $10^{-10}$ 远得很。一路掉下去的是离散度：到图中那条线变平的地方，剩下的只是 float32 的舍入噪声。去掉偏置，标准差才会像那种说法讲的那样按指数下降。
#
# “深了就消失”和“大小降到下限”是两件事。下面换掉初始化，看看它们还在不在。
#
# ## 4 · 是深度的错，还是初始化的错？
#
# ReLU 留下均方的一半，所以每层均方乘 $d\sigma_w^2/2$：默认 $1/6$，Xavier $1/2$，[He](https://arxiv.org/abs/1502.01852) 恰好是 $1$，权重取 $\mathcal N(0,1)$ 则是 $d/2$。
#
# 另一种流传的解释是：“$\mathcal N(0,1)$ 的权重使 $\mathrm{std}(y) = \mathrm{std}(x)\sqrt{d_\text{in}/d_\text{out}}$”。正确的倍数是 $\sqrt{d_\text{in}}\,\sigma_w$，与 $d_\text{out}$ 无关。
#
# **先猜**：四种初始化在第八层的均方根各是多少？

# %% [markdown] lang="en" id="initialization"
# **Reading:** after a hundred layers the standard deviation is about what it was after eight, and nowhere near $10^{-10}$. What falls all the way is the spread: where its line turns flat, only float32 rounding noise is left. Without biases the standard deviation does fall exponentially, as the story has it.
#
# "Depth makes it vanish" and "the size falls to a floor" are two things. Change the initialization and see whether they stay.
#
# ## 4 · Is it the depth, or the initialization?
#
# ReLU leaves half of the mean square, so each layer multiplies the mean square by $d\sigma_w^2/2$: $1/6$ by default, $1/2$ for Xavier, exactly $1$ for [He](https://arxiv.org/abs/1502.01852), and $d/2$ for weights from $\mathcal N(0,1)$.
#
# Another explanation in circulation is that "weights from $\mathcal N(0,1)$ give $\mathrm{std}(y) = \mathrm{std}(x)\sqrt{d_\text{in}/d_\text{out}}$". The right factor is $\sqrt{d_\text{in}}\,\sigma_w$, whatever $d_\text{out}$ is.
#
# **What do you expect?** Which RMS do the four initializations have at layer eight?

# %% alt_zh="对数纵轴的折线图，横轴是层数 0 到 8，四条线是四种初始化的 RMS。He 是水平线；Xavier 缓慢直线下降；默认初始化下降更快，最后几层变平；标准正态直线上升许多个数量级。" alt_en="Lines on a logarithmic axis over layers 0 to 8, one RMS line for each of four initializations. He is level; Xavier falls slowly along a straight line; the default falls faster and flattens in the last layers; unit normal rises along a straight line by many orders of magnitude."
figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
print("             RMS at layer 8    spread / RMS")
for initialize in (default, xavier, he, unit_normal):
    runs = [outputs(8, initialize, plain, seed) for seed in SEEDS]
    size = over_seeds([rms(run[-1]) for run in runs])
    share = over_seeds([spread(run[-1]) / rms(run[-1]) for run in runs])
    print(f"{initialize.__name__:12} {size:17} {share}")
    axes.semilogy([rms(h) for h in runs[0]], "o-", label=initialize.__name__)
axes.set(xlabel="layer", ylabel="RMS of the output (log scale)")
axes.legend()
plt.show()

x = torch.randn(INPUTS, WIDTH)
for out in (WIDTH // 4, WIDTH, 4 * WIDTH):
    ratio = (x @ torch.randn(WIDTH, out)).std() / x.std()
    print(f"N(0, 1) weights, {WIDTH} -> {out:4}: std grows by {ratio:.0f}")

# %% [markdown] lang="zh" id="gradients"
# **解读**：同样的八层，同样的 ReLU，没有任何归一化，可以缩小，可以持平，也可以爆炸。决定它的是每层放大多少，不是深度。He 初始化下，大小从一开始就没有变。
#
# 再看最后一列。Xavier、He、标准正态这三种初始化的均方根相差许多个数量级，离散度占均方根的比例却一样，因为没有偏置时，整体放大或缩小不改变输入之间的相对差别。这个比例也低于 1：ReLU 的输出都不小于零，各个输入的输出因此有一个共同的分量，每过一层都再多一点。记住它，第 7 步要用。
#
# ## 5 · 梯度呢？
#
# 损失取 `output.sum()`，看每层权重梯度的范数。
#
# **先猜**：默认初始化下，第一层和最后一层的梯度相差多少个数量级？换成 He 呢？

# %% [markdown] lang="en" id="gradients"
# **Reading:** the same eight layers, the same ReLU and no normalization at all can shrink, stay level or explode. The gain per layer decides, not the depth. With He initialization the size does not change to begin with.
#
# Now the last column. Xavier, He and unit normal are orders of magnitude apart, yet their spread is the same share of the RMS: without biases, a common scale does not change how the inputs differ. The share is also below 1. ReLU outputs are never negative, so all inputs get a common component, and each layer adds to it. Keep this in mind for step 7.
#
# ## 5 · What about gradients?
#
# The loss is `output.sum()`; look at the norm of each layer's weight gradient.
#
# **What do you expect?** By how many orders of magnitude do the first and the last layer differ with the default initialization? And with He?


# %%
def gradient_norms(depth, initialize, block, seed):
    """Norm of the gradient of output.sum() for the weight of each layer."""
    h, layers = make(depth, initialize, seed)
    for layer in layers:
        h = block(layer, h)
    h.sum().backward()
    return [layer.weight.grad.norm().item() for layer in layers]


def gradient_table(depth, cases, shown):
    for name, initialize, block in cases:
        runs = [gradient_norms(depth, initialize, block, s) for s in SEEDS]
        print(f"{name}: first / last =", over_seeds([r[0] / r[-1] for r in runs]))
        for layer in shown:
            print(f"  layer {layer:3}  ", over_seeds([r[layer - 1] for r in runs]))


gradient_table(8, [("default", default, plain), ("He", he, plain)], (1, 4, 7, 8))

# %% [markdown] lang="zh" id="rms-norm"
# **解读**：默认初始化下，靠前的层梯度确实小，但只差大约两个数量级，远没有常见的插图那么夸张。He 初始化下首尾是同一个量级，同样没有归一化。
#
# ## 6 · 加上 RMSNorm，标准差是 1 吗？
#
# 回到默认初始化，在每层里放一个[没有增益的 RMSNorm](https://arxiv.org/abs/1910.07467)。先试 Linear → RMSNorm → ReLU，再试 Linear → ReLU → RMSNorm。
#
# **先猜**：每层输出的标准差和均方根各是多少？

# %% [markdown] lang="en" id="rms-norm"
# **Reading:** with the default initialization the early layers do get small gradients, but by about two orders of magnitude, far from what the usual picture draws. With He the first and the last are of one size, again with no normalization.
#
# ## 6 · Add RMSNorm: is the standard deviation 1?
#
# Back to the default initialization, with an [RMSNorm without gain](https://arxiv.org/abs/1910.07467) in each layer. First Linear → RMSNorm → ReLU, then Linear → ReLU → RMSNorm.
#
# **What do you expect?** Which standard deviation and which RMS does each layer put out?


# %%
def norm_then_relu(layer, x):
    return torch.relu(rms_norm(layer(x)))


def relu_then_norm(layer, x):
    return rms_norm(torch.relu(layer(x)))


print("                  layer   std              RMS")
for block in (norm_then_relu, relu_then_norm):
    runs = [outputs(8, default, block, seed) for seed in SEEDS]
    for depth in (1, 4, 8):
        std = over_seeds([run[depth].std() for run in runs])
        size = over_seeds([rms(run[depth]) for run in runs])
        print(f"{block.__name__:15} {depth:7}   {std:16} {size}")
print(f"sqrt(1/2 - 1/(2 pi)) = {math.sqrt(1 / 2 - 1 / (2 * math.pi)):.3f}")
print(f"sqrt(1 - 1/pi)       = {math.sqrt(1 - 1 / math.pi):.3f}\n")

cases = [("norm, then ReLU", default, norm_then_relu)]
gradient_table(8, cases, (1, 4, 7, 8))

# %% [markdown] lang="zh" id="merged-inputs"
# **解读**：两种写法的标准差都不是 1。RMSNorm 固定的是均方根，而且只在它自己的输出处：
#
# - RMSNorm 之后均方根是 $1$。再过 ReLU，剩下的均方是 $1/2$，均值是 $1/\sqrt{2\pi}$，所以标准差是 $\sqrt{1/2 - 1/(2\pi)}$。
# - ReLU 在前时，RMSNorm 的输出均方根恰好是 $1$，但均值不是零，所以标准差是 $\sqrt{1 - 1/\pi}$。
#
# 从第一层到第八层，数值基本持平，梯度也比同样初始化、不加归一化时平得多。这正是归一化做到的：每层的大小不再取决于初始化。
#
# ## 7 · 大小稳住了，信号呢？
#
# 现在堆一百层 Linear → RMSNorm → ReLU。均方根每层都是 $\sqrt{1/2}$。
#
# **先猜**：一百层之后，64 个不同的输入还有多少差别？

# %% [markdown] lang="en" id="merged-inputs"
# **Reading:** neither order gives a standard deviation of 1. RMSNorm fixes the RMS, and only at its own output:
#
# - After RMSNorm the RMS is $1$. ReLU then leaves a mean square of $1/2$ and a mean of $1/\sqrt{2\pi}$, hence a standard deviation of $\sqrt{1/2 - 1/(2\pi)}$.
# - With ReLU first, RMSNorm's output has an RMS of exactly $1$ but a mean that is not zero, hence a standard deviation of $\sqrt{1 - 1/\pi}$.
#
# From layer one to layer eight the numbers are level, and the gradients are far more level than with the default initialization alone. That is what normalization does: the size of a layer no longer depends on the initialization.
#
# ## 7 · The size is safe. Is the signal?
#
# Now stack a hundred layers of Linear → RMSNorm → ReLU. The RMS is $\sqrt{1/2}$ at every one.
#
# **What do you expect?** How different are the 64 inputs after a hundred layers?


# %%
def cosine(h):
    """Mean cosine between pairs of different rows of h."""
    unit = h / h.norm(dim=1, keepdim=True)
    return ((unit.sum(0).square().sum() - INPUTS) / (INPUTS * (INPUTS - 1))).item()


normed = [outputs(100, default, norm_then_relu, seed) for seed in SEEDS]
print("layer   RMS              spread / RMS     cosine of two inputs")
for depth in (1, 2, 5, 10, 30, 100):
    size = over_seeds([rms(run[depth]) for run in normed])
    share = over_seeds([spread(run[depth]) / rms(run[depth]) for run in normed])
    angle = torch.tensor([cosine(run[depth]) for run in normed]).mean()
    print(f"{depth:5}   {size:16} {share:16} {angle:.3f}")

# %% [markdown] lang="zh" id="residual"
# **解读**：每层的大小都一样，各个输入却并成了一个方向。RMSNorm 只除以一个数，它不改变向量的方向，所以拉不开两个夹角已经很小的向量。每过一次 ReLU，两个输入的夹角就小一点；反复一百次，网络给所有输入的几乎是同一个向量。这类“相关系数趋于 1”的现象，在[随机网络的理论](https://arxiv.org/abs/1611.01232)里已经研究得很清楚。
#
# 所以“有了归一化，再深也稳定”只说对了一半：稳定的是大小。
#
# ## 8 · 残差连接做了什么？
#
# 用同样的零件，把残差流（residual stream）留给输入自己：$x \leftarrow x + \mathrm{Linear}(\mathrm{ReLU}(\mathrm{RMSNorm}(x)))$，He 初始化，也就是 [ResNet](https://arxiv.org/abs/1512.03385) 以来的残差写法加上 Pre-Norm。分支的输入每次都归一化过，所以每个分支给残差流加上大约 $1$ 的方差，均方根应当按 $\sqrt{1+\ell}$ 增长。
#
# 再加一个对照：有残差连接，没有归一化。
#
# **先猜**：一百层之后，离散度占均方根的比例是多少？去掉归一化又如何？首尾两层的梯度呢？

# %% [markdown] lang="en" id="residual"
# **Reading:** every layer has the same size, and the inputs have merged into one direction. RMSNorm divides by one number and does not turn a vector, so it cannot pull apart two vectors that point the same way. Each ReLU makes the angle between two inputs a little smaller; after a hundred of them the network gives nearly the same vector to every input. Such "correlations that go to 1" are well understood in the [theory of random networks](https://arxiv.org/abs/1611.01232).
#
# So "with normalization any depth is stable" is half right: what is stable is the size.
#
# ## 8 · What does the residual connection do?
#
# Use the same parts, but leave the main road to the input itself: $x \leftarrow x + \mathrm{Linear}(\mathrm{ReLU}(\mathrm{RMSNorm}(x)))$ with He initialization, which is the residual form known since [ResNet](https://arxiv.org/abs/1512.03385) with Pre-Norm. A branch sees normalized input every time, so each adds a variance of about $1$ to the residual stream, and the RMS should grow like $\sqrt{1+\ell}$.
#
# As a control, there is a stack with the residual connection and no norm.
#
# **What do you expect?** Which share of the RMS is spread after a hundred layers? Which one without the norm? And how do the gradients of the first and the last layer compare?


# %%
def residual(layer, x):
    return x + layer(torch.relu(rms_norm(x)))


def residual_only(layer, x):
    return x + layer(torch.relu(x))


stream = [outputs(100, he, residual, seed) for seed in SEEDS]
print("layer   RMS              sqrt(1 + layer)   spread / RMS")
for depth in (1, 10, 30, 100):
    size = over_seeds([rms(run[depth]) for run in stream])
    share = over_seeds([spread(run[depth]) / rms(run[depth]) for run in stream])
    print(f"{depth:5}   {size:16} {math.sqrt(1 + depth):<17.2g} {share}")

# %% [markdown] lang="zh"
# 再与两个对照比：只有归一化，只有残差连接。最后两张小表是首、中、末三层的梯度。

# %% [markdown] lang="en"
# Beside it the two controls: the norm alone, and the residual connection alone. The last two small tables are gradients of the first, the middle and the last layer.

# %%
bare = [outputs(100, he, residual_only, seed) for seed in SEEDS]
print("layer 100             RMS              spread / RMS     cosine")
arms = {"norm, no residual": normed, "residual, no norm": bare}
for name, runs in (arms | {"norm and residual": stream}).items():
    last = [run[100] for run in runs]
    size = over_seeds([rms(h) for h in last])
    share = over_seeds([spread(h) / rms(h) for h in last])
    angle = sum(cosine(h) for h in last) / len(last)
    print(f"{name:21} {size:16} {share:16} {angle:.3f}")
cases = [("norm, no residual", default, norm_then_relu)]
cases += [("norm and residual", he, residual)]
gradient_table(100, cases, (1, 50, 100))

# %% [markdown] lang="zh"
# 离散度占比随层数的变化，五种网络画在一起；先打印的，是没有归一化的 He 网络在第一百层的余弦：

# %% [markdown] lang="en"
# The share of the spread over the layers, all five networks in one picture; printed first is the cosine at layer 100 with He and no norm:

# %% alt_zh="对数纵轴的折线图，横轴是层数 0 到 100，纵轴是离散度与 RMS 之比。默认初始化、没有归一化的线直线下降许多个数量级；He 初始化的线下降得慢得多，后来变平；RMSNorm 的线同样慢，但一直在降；有残差连接、没有归一化的线与 He 那条线相近；两者都有的线从 1 略微下降，之后始终保持在同一个数量级，是五条里最高的。" alt_en="Lines on a logarithmic axis over layers 0 to 100; the vertical axis is spread divided by RMS. The line of the default initialization without a norm falls straight by many orders of magnitude; the line of He initialization falls far more slowly and flattens later; the line of RMSNorm is as slow but keeps falling; the line with residual connections and no norm lies near that of He; the line with both falls a little below 1, then stays within the same order of magnitude and is the highest of the five."
level = outputs(100, he, plain, 0)
print(f"He, no norm, layer 100: cosine of two inputs {cosine(level[-1]):.3f}")
figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
for name, states in (
    ("default, no norm", deep[0]),
    ("He, no norm", level),
    ("default, RMSNorm", normed[0]),
    ("He, residual, no norm", bare[0]),
    ("He, RMSNorm, residual", stream[0]),
):
    axes.semilogy([spread(h) / rms(h) for h in states], label=name)
axes.set(xlabel="layer", ylabel="spread / RMS (log scale)", ylim=(1e-8, 3))
axes.legend()
plt.show()

# %% [markdown] lang="zh" id="exercises"
# **解读**：均方根按 $\sqrt{1+\ell}$ 增长，因为残差流本身没有归一化。可是每个输入自己的那部分一直留在残差流里，离散度占的比例只是慢慢下降。
#
# 只有残差连接还不够。没有归一化，每个分支都和残差流本身一样大，方差每层翻一番：均方根大得离谱，各个输入也几乎并到一起，和没有残差连接的 He 差不多。归一化让分支相对残差流越来越小，残差连接让输入一直留在残差流里。
#
# 图里没有归一化的 He 那条线后来变平了，但这不是好消息：两个输入的夹角余弦同样趋于 1，剩下的只是长度的差别。RMSNorm 把长度也统一了，所以它的线继续下降。
#
# 梯度的结果出人意料：没有残差连接时，首尾两层的梯度也只差大约一个数量级，完全看不出所有输入已经并到一起。损失对全部输入求和，所有输入共有的那个方向就足以传回梯度。所以单看梯度的范数，发现不了信号已经没了；要看离散度。
#
# 所以在这里两者缺一不可。归一化还有一个好处，本实验没有测，因为这里只看初始化：有了归一化，分支输入的大小不必靠初始化来调，训练中权重变了，分支输入的大小也还是固定的。
#
# ## 改一改，再跑一遍
#
# 1. 把 `residual` 里的 ReLU 换成 `torch.tanh`，再画最后一张图。分支的输出不再有共同分量，离散度的比例会怎样？
# 2. 把归一化移到相加之后：`rms_norm(x + layer(torch.relu(x)))`，也就是 Post-Norm。均方根是多少？离散度的比例更像上面哪一行？
# 3. 在第 7 步的 `norm_then_relu` 里，用 `he` 代替 `default`。没有偏置之后，各个输入并拢得更快、更慢，还是差不多？运行之前先想想：RMSNorm 对权重的整体大小做了什么。

# %% [markdown] lang="en" id="exercises"
# **Reading:** the RMS grows like $\sqrt{1+\ell}$, since nothing normalizes the main road itself. But each input's own part stays in the sum, and the share of the spread falls only slowly.
#
# The residual connection alone is not enough. Without the norm each branch is as large as the stream itself and doubles its variance: the RMS becomes enormous, and the inputs nearly merge, about as they do with He and no residual connection. The norm keeps the branch small beside the stream, and the residual connection keeps the input in the sum.
#
# In the picture the line of He without a norm turns flat, but that is no good news: there, too, the cosine of two inputs goes to 1, and what is left is a difference in length. RMSNorm makes the lengths equal as well, so its line goes on falling.
#
# The gradients hold a surprise. Without residual connections, too, the first and the last differ by no more than about one order of magnitude, and nothing in them tells that all inputs have merged. The loss sums over all inputs, and the direction that they share is enough to carry a gradient back. A gradient norm alone does not show that the signal is gone; the spread does.
#
# So it takes both here. One more merit is not measured in this lab, which looks at initialization only: with a norm the size of a branch's input need not be tuned by initialization, and still holds when training has changed the weights.
#
# ## Change this and run again
#
# 1. Replace ReLU in `residual` by `torch.tanh` and draw the last picture again. The branch has no common component any more. What happens to the share of the spread?
# 2. Move the norm after the sum: `rms_norm(x + layer(torch.relu(x)))`, which is Post-Norm. What is the RMS? Which of the rows above does the share of the spread resemble?
# 3. Use `he` instead of `default` for `norm_then_relu` in step 7. Without biases, do the inputs merge faster, more slowly, or about as before? Before you run it, think about what RMSNorm does to the overall size of the weights.
