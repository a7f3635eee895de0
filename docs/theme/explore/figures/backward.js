// A gradient of three features as an arrow: what of it each norm sends back.

import { backward, forward, shared } from "../engine/norms.js";
import { choice, define, digits, slider } from "./element.js";
import { angle, arrow, beside, between, disc, drawing, grip, length, placed, short, sum, table } from "./space.js";

const WORDS = {
  en: {
    caption: "A gradient on its way back. Drag the tip of dy, or use the sliders, and see what each norm sends on as dx.",
    one: "dy₁",
    two: "dy₂",
    three: "dy₃",
    times: "x times",
    gain: "gain γ₃",
    eps: "ε",
    statistics: "statistics",
    followed: "gradient follows them",
    cut: "detached",
    vector: "arrow",
    features: "features",
    length: "length",
    sum: "sum",
    angle: "angle to x",
    input: "dy",
    layer: "dx, LayerNorm",
    rms: "dx, RMSNorm",
    scales: (deviation, rms) => `LayerNorm divides by ${deviation}, RMSNorm by ${rms}.`,
    legend:
      "Every gradient starts at the origin here; the gain multiplies dy first. RMSNorm takes out what lies along x and leaves the plane across x. LayerNorm takes out what all features share as well: of three directions one line is left. The rest is divided by the scale of x.",
    of: (name, features, length, sum, angle) => `${name}: ${features}, length ${length}, sum ${sum}, angle to x ${angle}`,
    comma: ", ",
    stop: ". ",
  },
  zh: {
    caption: "一个往回传的梯度。拖动 dy 的箭头尖或滑块，看每种归一化传回去的 dx 是什么。",
    one: "dy₁",
    two: "dy₂",
    three: "dy₃",
    times: "x 乘以",
    gain: "增益 γ₃",
    eps: "ε",
    statistics: "统计量",
    followed: "梯度经过它们",
    cut: "detach",
    vector: "箭头",
    features: "各特征",
    length: "长度",
    sum: "和",
    angle: "与 x 夹角",
    input: "dy",
    layer: "dx，LayerNorm",
    rms: "dx，RMSNorm",
    scales: (deviation, rms) => `LayerNorm 除以 ${deviation}，RMSNorm 除以 ${rms}。`,
    legend:
      "这里的梯度都从原点画起，先乘增益。RMSNorm 去掉沿 x 的部分，剩下的落在与 x 垂直的平面里；LayerNorm 还去掉各特征共有的部分，三个方向只剩一条直线。剩下的再除以 x 的尺度。",
    of: (name, features, length, sum, angle) => `${name}：${features}，长度 ${length}，和 ${sum}，与 x 夹角 ${angle}`,
    comma: "、",
    stop: "。",
  },
};

const TOKEN = [0.8, -0.6, 1.8];
const OPENING = { one: "-0.6", two: "1", three: "1.4", times: "0", gain: "1", eps: "-5", statistics: "followed" };
const PRESETS = [
  {
    claim: "gradients-keep-their-size",
    verdict: "wrong",
    state: { ...OPENING, times: "1" },
    en: "A larger x gets the same gradient",
    zh: "x 变大，梯度不变",
    shows: {
      en: "With x twice as long the outputs are the same, and both gradients are half as long.",
      zh: "x 加长一倍，输出不变，两个梯度却都短了一半。",
    },
  },
  {
    claim: "the-root-may-be-detached",
    verdict: "wrong",
    state: { ...OPENING, one: "0.8", two: "-0.6", three: "1.8", statistics: "cut" },
    en: "The RMS may be a constant on the way back",
    zh: "反向传播时 RMS 可以当常数",
    shows: {
      en: "This dy points along x, and a longer x has the same output. The true gradient is zero; with the RMS detached all of dy comes through.",
      zh: "这个 dy 与 x 同向，而 x 再长输出也不变，真正的梯度是零。把 RMS detach，dy 就整个传了回去。",
    },
  },
  {
    claim: "the-statistics-may-be-detached",
    verdict: "wrong",
    state: { ...OPENING, statistics: "cut" },
    en: "Mean and variance may be detached",
    zh: "均值和方差可以 detach",
    shows: {
      en: "Detached, LayerNorm only divides. The gradient no longer sums to zero: it asks x for a shift and a stretch that change no output.",
      zh: "detach 之后，LayerNorm 只剩除法。梯度的和不再是零：它要求 x 平移、伸缩，可输出并不会因此改变。",
    },
  },
  {
    claim: "the-gradient-is-orthogonal-to-the-input",
    verdict: "holds-when",
    state: { ...OPENING, one: "0.6", two: "-1", three: "1.2", times: "-2", eps: "-1" },
    en: "LayerNorm's gradient is orthogonal to x",
    zh: "LayerNorm 的梯度与 x 正交",
    shows: {
      en: "Only while ε is small beside the variance: this ε lets a part along x through. Lower it, and the angle is a right one again.",
      zh: "ε 比方差小得多时才成立：这里的 ε 放过了沿 x 的一部分。把它调小，夹角就又是直角。",
    },
  },
];

const scaled = (v, factor) => v.map((a) => a * factor);

/**
 * dy and dx of both norms: features, length, sum, angle to x in degrees; the scale that a
 * norm divides by; and where dy comes by on its way: the gain, then what is taken out.
 */
function compute(state) {
  const x = scaled(TOKEN, 2 ** state.times);
  const dy = [state.one, state.two, state.three].map(Number);
  const gain = [1, 1, Number(state.gain)];
  const told = (v, rest) => {
    const angle = length(v) < 1e-6 * length(dy) ? NaN : between(v, x);
    return { v, length: length(v), sum: sum(v), angle, ...rest };
  };
  const sent = (name) => {
    const spec = { cells: shared(name, [1, 1, 3]), gain, eps: 10 ** state.eps, centred: name === "layer" };
    const saved = forward(Float32Array.from(x), spec);
    if (state.statistics === "cut") spec.fixed = saved;
    const dx = Array.from(backward(Float32Array.from(dy), spec, saved).dx);
    const scale = 1 / saved.r[0];
    const gained = dy.map((v, i) => v * gain[i]);
    const flat = gained.map((v) => v - sum(gained) / 3);
    const taken = spec.fixed ? [] : [...(name === "layer" ? [flat] : []), scaled(dx, scale)];
    return told(dx, { name, scale, path: [dy, gained, ...taken, dx] });
  };
  return [told(dy, { name: "input" }), sent("layer"), sent("rms")];
}

function view(state, words) {
  const all = compute(state);
  const [dy, layer, rms] = all;
  const origin = [0, 0, 0];
  const path = ({ path }) => path.slice(1).map((to, i) => arrow(path[i], to, "drop"));
  const drawn = drawing([dy.v, layer.v, rms.v], [
    disc([1, 1, 1], [1, 1, 1], "plane"),
    disc(TOKEN, [1, 1, 1], "across"),
    arrow([-1.2, -1.2, -1.2], [1.6, 1.6, 1.6], "ones"),
    arrow(origin, TOKEN, "token"),
    ...path(layer),
    ...path(rms),
    arrow(origin, layer.v, "layer"),
    arrow(origin, rms.v, "rms"),
    arrow(origin, dy.v, "input"),
    beside(TOKEN, "token", "x", 0),
    beside(layer.v, "layer", "LN", 7),
    beside(rms.v, "rms", "RMS", 2),
    beside(dy.v, "input", "dy", -3),
    grip(dy.v),
  ]);
  const heads = [[words.sum, ({ sum }) => short(sum)], [words.angle, ({ angle: found }) => angle(found)]];
  return (
    `${drawn}<div>${table(heads, all, words)}<p class="row">${words.scales(short(layer.scale), short(rms.scale))}</p><p class="legend">${words.legend}</p></div>`
  );
}

function says(state, words) {
  const all = compute(state);
  const told = all.map(({ name, v, length, sum, angle: found }) =>
    words.of(words[name], v.map(short).join(words.comma), short(length), short(sum), angle(found)),
  );
  return [...told, words.scales(short(all[1].scale), short(all[2].scale))].join(words.stop);
}

/** The tip of dy at a place of the drawing. */
function dragged(state, x, y) {
  const moved = placed(compute(state)[0].v, x, y).map((v) => Math.min(2, Math.max(-2, v)).toFixed(1));
  return { one: moved[0], two: moved[1], three: moved[2] };
}

define({
  name: "backward",
  opening: OPENING,
  words: WORDS,
  presets: PRESETS,
  controls: (words) =>
    ["one", "two", "three"].map((name) => slider(name, words[name], -2, 2, 0.1, OPENING[name])).join("") +
    slider("times", words.times, -4, 3, 1, OPENING.times) +
    slider("gain", words.gain, 0.2, 2, 0.1, OPENING.gain) +
    slider("eps", words.eps, -8, 0, 1, OPENING.eps) +
    choice("statistics", words.statistics, [["followed", words.followed], ["cut", words.cut]], OPENING.statistics),
  shown: {
    ...Object.fromEntries(["one", "two", "three", "gain"].map((name) => [name, (state) => digits(Number(state[name]))])),
    times: ({ times }) => digits(2 ** times, 3),
    eps: ({ eps }) => digits(10 ** eps),
  },
  dragged,
  compute,
  view,
  says,
});
