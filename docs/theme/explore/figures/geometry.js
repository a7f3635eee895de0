// A token of three features as an arrow: where LayerNorm and RMSNorm send it.

import { forward, shared } from "../engine/norms.js";
import { define, digits, slider } from "./element.js";
import { angle, arrow, between, disc, drawing, grip, length, placed, short, sphere, sum, table, tip } from "./space.js";

const WORDS = {
  en: {
    caption: "A token of three features as an arrow. Drag its tip, or use the sliders, and see where each norm sends it.",
    x: "x₁",
    y: "x₂",
    z: "x₃",
    add: "add to all",
    times: "times",
    gain: "gain γ₃",
    eps: "ε",
    vector: "arrow",
    features: "features",
    length: "length",
    mean: "mean",
    turned: "turned by",
    input: "x",
    layer: "LayerNorm",
    rms: "RMSNorm",
    legend:
      "The upright line is the all-ones direction. LayerNorm drops the arrow onto the plane across it, then both norms stretch it to length √3: LayerNorm to the circle, RMSNorm to the sphere. The gain then pulls on feature 3, and the sphere becomes an ellipsoid.",
    of: (name, features, length, turned) => `${name}: ${features}, length ${length}, turned by ${turned}`,
    comma: ", ",
    stop: ". ",
  },
  zh: {
    caption: "三个特征的 token 画成一个箭头。拖动箭头尖或滑块，看两种归一化各把它送到哪里。",
    x: "x₁",
    y: "x₂",
    z: "x₃",
    add: "全部加上",
    times: "全部乘以",
    gain: "增益 γ₃",
    eps: "ε",
    vector: "箭头",
    features: "各特征",
    length: "长度",
    mean: "均值",
    turned: "转过",
    input: "x",
    layer: "LayerNorm",
    rms: "RMSNorm",
    legend:
      "竖线是全 1 方向。LayerNorm 先让箭头落到与它垂直的平面上，然后两者都把箭头拉到长度 √3：LayerNorm 到圆上，RMSNorm 到球面上。最后增益拉动特征 3，球面变成椭球面。",
    of: (name, features, length, turned) => `${name}：${features}，长度 ${length}，转过 ${turned}`,
    comma: "、",
    stop: "。",
  },
};

const OPENING = { x: "2", y: "0.4", z: "1.2", add: "0", times: "0", gain: "1", eps: "-5" };
const PRESETS = [
  {
    claim: "layer-norm-keeps-the-direction",
    verdict: "holds-when",
    state: OPENING,
    en: "LayerNorm keeps the direction",
    zh: "LayerNorm 保持方向",
    shows: {
      en: "Only without a mean: dropping onto the plane has turned this arrow. RMSNorm has not.",
      zh: "均值为零时才成立：落到平面上，这个箭头就转了方向。RMSNorm 没有转它。",
    },
  },
  {
    claim: "rms-norm-keeps-the-direction",
    verdict: "holds-when",
    state: { ...OPENING, gain: "2" },
    en: "RMSNorm keeps the direction",
    zh: "RMSNorm 保持方向",
    shows: {
      en: "Only while all gains are equal: this gain has turned the output.",
      zh: "各个增益都相等时才成立：这个增益把输出转了方向。",
    },
  },
  {
    claim: "rms-norm-gives-unit-length",
    verdict: "wrong",
    state: { ...OPENING, add: "1" },
    en: "RMSNorm gives unit length",
    zh: "RMSNorm 得到单位长度",
    shows: {
      en: "The length is √d, here √3. The root mean square is one.",
      zh: "长度是 √d，这里是 √3；等于 1 的是均方根。",
    },
  },
  {
    claim: "no-information-is-lost",
    verdict: "wrong",
    state: { ...OPENING, times: "-1" },
    en: "No information is lost",
    zh: "不损失信息",
    shows: {
      en: "Half as long an arrow has the same output. The length is gone, with LayerNorm the mean as well.",
      zh: "箭头缩短一半，输出还是那个。长度丢了，LayerNorm 还丢了均值。",
    },
  },
  {
    claim: "layernorm-outputs-mean-zero-and-variance-one",
    verdict: "holds-when",
    state: { ...OPENING, times: "-5", eps: "-2" },
    en: "LayerNorm's variance is one",
    zh: "LayerNorm 的方差为 1",
    shows: {
      en: "Only while ε is small beside the variance: near the origin the output stays short of the circle.",
      zh: "ε 比方差小得多时才成立：靠近原点时，输出到不了圆上。",
    },
  },
];

const NAMES = ["input", "layer", "rms"];

/** Input and both outputs: features, length, mean, angle to the input in degrees. */
function compute(state) {
  const factor = 2 ** state.times;
  const x = [state.x, state.y, state.z].map((v) => factor * (Number(v) + Number(state.add)));
  const gain = [1, 1, Number(state.gain)];
  const eps = 10 ** state.eps;
  const normed = (name) => {
    const spec = { cells: shared(name, [1, 1, 3]), gain, eps, centred: name === "layer" };
    return Array.from(forward(Float32Array.from(x), spec).y);
  };
  return [x, normed("layer"), normed("rms")].map((v, i) => {
    return { name: NAMES[i], v, length: length(v), mean: sum(v) / 3, turned: between(v, x) };
  });
}

function view(state, words) {
  const [x, layer, rms] = compute(state);
  const origin = [0, 0, 0];
  const flat = x.v.map((v) => v - x.mean);
  const gain = [1, 1, Number(state.gain)];
  const ends = [-1, 1].map((side) => [0, 0, side * Math.sqrt(3) * gain[2]]); // the sphere's
  const drawn = drawing([x.v, layer.v, rms.v, ...ends], [
    sphere(gain),
    disc([1, 1, 1], gain, "plane"),
    arrow([-1.2, -1.2, -1.2], [1.6, 1.6, 1.6], "ones"),
    arrow(x.v, flat, "drop"),
    arrow(flat, layer.v, "drop"),
    arrow(origin, layer.v, "layer"),
    arrow(origin, rms.v, "rms"),
    arrow(origin, x.v, "input"),
    tip(layer.v, "layer", "LN", 3, 8),
    tip(rms.v, "rms", "RMS", -18, 2),
    tip(x.v, "input", "x", 4, 0),
    grip(x.v),
  ]);
  const heads = [[words.mean, ({ mean }) => short(mean)], [words.turned, ({ turned }) => angle(turned)]];
  return `${drawn}<div>${table(heads, [x, layer, rms], words)}<p class="legend">${words.legend}</p></div>`;
}

function dragged(state, x, y) {
  const moved = placed(compute(state)[0].v, x, y).map((v) => {
    const own = v / 2 ** state.times - Number(state.add);
    return Math.min(2, Math.max(-2, own)).toFixed(1);
  });
  return { x: moved[0], y: moved[1], z: moved[2] };
}

function says(state, words) {
  const told = compute(state).map(({ name, v, length, turned }) => {
    const features = v.map(short).join(words.comma);
    return words.of(words[name], features, short(length), angle(turned));
  });
  return told.join(words.stop) + words.stop.trim();
}

define({
  name: "geometry",
  opening: OPENING,
  words: WORDS,
  presets: PRESETS,
  controls: (words) =>
    ["x", "y", "z"].map((name) => slider(name, words[name], -2, 2, 0.1, OPENING[name])).join("") +
    slider("add", words.add, -2, 2, 0.1, OPENING.add) +
    slider("times", words.times, -8, 1, 1, OPENING.times) +
    slider("gain", words.gain, 0.2, 2, 0.1, OPENING.gain) +
    slider("eps", words.eps, -8, 0, 1, OPENING.eps),
  shown: {
    ...Object.fromEntries(
      ["x", "y", "z", "add", "gain"].map((name) => [name, (state) => digits(Number(state[name]))]),
    ),
    times: ({ times }) => digits(2 ** times, 3),
    eps: ({ eps }) => digits(10 ** eps),
  },
  dragged,
  compute,
  view,
  says,
});
