// One row of attention: a query, six keys, and what keeps its logits in bounds.

import { exp, log, turned } from "../engine/elementary.js";
import { choice, define, digits, slider } from "./element.js";

const WORDS = {
  en: {
    caption: "A query and six keys of one head. Drag the query's tip: its direction says which key it likes, its length how sharply. Then try a remedy.",
    angle: "query's angle",
    grown: "both matrices",
    remedy: "remedy",
    none: "none",
    norm: "QK-Norm",
    cap: "soft cap",
    clip: "QK-Clip at 100",
    gain: "gains",
    ceiling: "cap",
    key: "key",
    logit: "logit",
    weight: "weight",
    times: (v) => `times ${v}`,
    row: (entropy, most, slope) => `Entropy ${entropy} of at most ${most}; slope of the weights ${slope}.`,
    of: (key, logit, weight) => `key ${key}: logit ${logit}, weight ${weight}`,
    legend:
      "A head of 64 features. At first each arrow has length 4; QK-Norm gives it length 8, the ring. The slope is the size of the softmax's Jacobian, seen from the logits before the cap: at zero no gradient comes through. The gains are one number here, on queries and on keys.",
    comma: "; ",
    stop: ". ",
  },
  zh: {
    caption: "一个头里的一个查询和六个键。拖动查询的箭头尖：方向决定它喜欢哪个键，长度决定有多偏心。再选一种办法试试。",
    angle: "查询的角度",
    grown: "两个矩阵",
    remedy: "办法",
    none: "不处理",
    norm: "QK-Norm",
    cap: "软上限",
    clip: "QK-Clip，阈值 100",
    gain: "增益",
    ceiling: "上限",
    key: "键",
    logit: "logit",
    weight: "权重",
    times: (v) => `乘以 ${v}`,
    row: (entropy, most, slope) => `熵 ${entropy}（最大 ${most}），权重的斜率 ${slope}。`,
    of: (key, logit, weight) => `键 ${key}：logit ${logit}，权重 ${weight}`,
    legend:
      "一个头有 64 个特征。刚开始时每个箭头长 4；QK-Norm 把它变成长 8，也就是那个圈。斜率是 softmax 对 logit（加软上限之前）的雅可比矩阵的大小；斜率为零，梯度就传不过去。这里的增益只有一个数，查询和键各乘一次。",
    comma: "；",
    stop: "。",
  },
};

const OPENING = { angle: "30", grown: "0", remedy: "none", gain: "1", cap: "50" };
const PRESETS = [
  {
    claim: "large-logits-kill-the-softmax-gradient",
    verdict: "holds",
    state: { ...OPENING, grown: "4" },
    en: "Large logits kill the softmax gradient",
    zh: "logit 太大，softmax 的梯度就没了",
    shows: {
      en: "One key has the whole weight, and the slope is zero. Move the matrices back slowly: on the way it is larger than at the start.",
      zh: "一个键拿走全部权重，斜率为零。把两个矩阵慢慢调回来：途中斜率比开头还大。",
    },
  },
  {
    claim: "pre-norm-keeps-attention-logits-in-bounds",
    verdict: "wrong",
    state: { ...OPENING, grown: "3" },
    en: "Pre-Norm keeps the logits in bounds",
    zh: "有 Pre-Norm，logit 就有界",
    shows: {
      en: "The norm comes before the two matrices. Both times 8, and every logit is multiplied by 64.",
      zh: "归一化在两个矩阵之前。两个矩阵同乘 8，每个 logit 都乘以 64。",
    },
  },
  {
    claim: "qk-norm-bounds-logits-by-the-root-of-the-width",
    verdict: "holds-when",
    state: { ...OPENING, grown: "3", remedy: "norm", gain: "3" },
    en: "With QK-Norm no logit exceeds √d",
    zh: "有 QK-Norm，logit 不超过 √d",
    shows: {
      en: "Whatever the matrices do, with gains of 1 no logit is above 8. Gains are learned, and gains of 3 multiply each logit by 9.",
      zh: "矩阵怎么变都没关系，增益是 1 时 logit 不超过 8。但增益要学：增益是 3，每个 logit 就乘以 9。",
    },
  },
  {
    claim: "a-cap-of-50-prevents-one-hot-attention",
    verdict: "wrong",
    state: { ...OPENING, angle: "215", grown: "3", remedy: "cap" },
    en: "A cap of 50 prevents one-hot attention",
    zh: "上限 50 防止注意力变成 one-hot",
    shows: {
      en: "This query likes one key alone: 50 against logits below zero is as one-hot as ever. Turn it to the crowd, and the cap flattens the row.",
      zh: "这个查询只喜欢一个键：50 对上一排负数，照样是 one-hot。把它转向键多的一边，上限才把这一行压平。",
    },
  },
  {
    claim: "soft-capping-truncates-logits",
    verdict: "wrong",
    state: { ...OPENING, grown: "2", remedy: "cap", cap: "30" },
    en: "Soft-capping truncates logits",
    zh: "软上限会截断 logit",
    shows: {
      en: "Nothing is cut off at 30: a smooth curve bends every logit a little, the larger the more.",
      zh: "30 处没有截断：一条光滑的曲线把每个 logit 都压一点，越大压得越多。",
    },
  },
  {
    claim: "qk-clip-adds-a-layer-to-the-model",
    verdict: "wrong",
    state: { ...OPENING, grown: "3", remedy: "clip" },
    en: "QK-Clip adds a layer to the model",
    zh: "QK-Clip 给模型加了一层",
    shows: {
      en: "It shrank the two matrices, until the largest logit of the row was 100. What the row then computes is plain attention.",
      zh: "它缩小的是两个矩阵，直到这一行最大的 logit 是 100。之后算的还是普通的注意力。",
    },
  },
];

const KEYS = [15, 40, 70, 100, 215, 330]; // degrees
const WIDTH = 64; // of the head
const START = 4; // length of every arrow at first; with an RMS of 1 it is 8
const THRESHOLD = 100; // of QK-Clip
const radians = (degrees) => (degrees * Math.PI) / 180;
const sum = (v) => v.reduce((a, b) => a + b, 0);

/** Logits, weights, entropy, and the Frobenius norm of the weights' slope. */
function compute(state) {
  const unit = Math.sqrt(WIDTH);
  const length = state.remedy === "norm" ? state.gain * unit : START * 2 ** state.grown;
  const raw = KEYS.map((key) => ((length * length) / unit) * turned(radians(state.angle - key))[0]);
  const most = Math.max(...raw);
  const cap = Number(state.cap);
  let [logits, slopes] = [raw, raw.map(() => 1)];
  if (state.remedy === "cap") {
    const tanh = raw.map((z) => 1 - 2 / (exp((2 * z) / cap) + 1));
    [logits, slopes] = [tanh.map((t) => cap * t), tanh.map((t) => 1 - t * t)];
  }
  const kept = state.remedy === "clip" && most > THRESHOLD ? THRESHOLD / most : 1;
  if (kept < 1) logits = raw.map((z) => z * kept);
  const top = Math.max(...logits);
  const parts = logits.map((z) => exp(z - top));
  const weights = parts.map((part) => part / sum(parts));
  const entropy = sum(weights.map((p) => (p > 0 ? -p * log(p) : 0)));
  const column = (p, i) => slopes[i] ** 2 * p * p * ((1 - p) ** 2 + sum(weights.map((w, k) => (k === i ? 0 : w * w))));
  const slope = Math.sqrt(sum(weights.map(column)));
  return { logits, weights, entropy, slope, kept };
}

const INNER = 20; // an arrow of length 4, in units of the drawing
const EACH = 8.5; // a factor of two
const RING = INNER + EACH; // length 8
const at = (angle, radius) => {
  const [cosine, sine] = turned(radians(angle));
  return [cosine * radius, -sine * radius].map((v) => v.toFixed(1));
};

function arrow(angle, radius, kind) {
  const [x, y] = at(angle, radius);
  return `<line x2="${x}" y2="${y}" class="${kind}"/><circle cx="${x}" cy="${y}" r="1.6" class="${kind}"/>`;
}

function view(state, words) {
  const found = compute(state);
  const radius = INNER + EACH * state.grown;
  // QK-Clip multiplies both matrices by the root of what it keeps of the logits.
  const changed = state.remedy === "norm" ? RING : radius + (EACH * log(found.kept)) / log(4);
  const both = (angle, kind) =>
    changed === radius ? arrow(angle, radius, kind) : arrow(angle, radius, "raw") + arrow(angle, changed, kind);
  const keys = KEYS.map((angle, i) => {
    const [x, y] = at(angle, radius + 6);
    const target = `<circle cx="${x}" cy="${y}" r="8" class="target"/>`;
    return `<g data-key="${i}">${both(angle, "key")}${target}<text x="${x}" y="${y}">${i + 1}</text></g>`;
  });
  const [x, y] = at(state.angle, radius);
  const [u, w] = at(state.angle, radius + 7);
  const drawing =
    `<svg viewBox="-64 -64 128 128" aria-hidden="true"><circle r="${RING}" class="ring"/>${keys.join("")}` +
    `${both(Number(state.angle), "query")}<text x="${u}" y="${w}" class="query">q</text><circle cx="${x}" cy="${y}" class="grip"/></svg>`;
  const rows = found.logits.map((z, i) => {
    const share = (100 * found.weights[i]).toFixed(1);
    const bar = `<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width="${share}" height="8"/></svg>`;
    return (
      `<tr><th scope="row">${i + 1}</th><td>${digits(Number(z.toFixed(1)))}</td>` +
      `<td>${found.weights[i].toFixed(2)}</td><td>${bar}</td></tr>`
    );
  });
  const heads = [words.key, words.logit, words.weight].map((head) => `<th scope="col">${head}</th>`);
  return (
    `${drawing}<div><table class="weights"><thead><tr>${heads.join("")}<td></td></tr></thead><tbody>${rows.join("")}</tbody></table>` +
    `<p class="row">${told(found, words)}</p><p class="legend">${words.legend}</p></div>`
  );
}

const told = ({ entropy, slope }, words) =>
  words.row(entropy.toFixed(2), log(KEYS.length).toFixed(2), slope.toFixed(2));

function says(state, words) {
  const found = compute(state);
  const rows = found.logits.map((z, i) =>
    words.of(i + 1, digits(Number(z.toFixed(1))), found.weights[i].toFixed(2)),
  );
  return rows.join(words.comma) + words.stop + told(found, words);
}

/** The query's tip at a place of the drawing. */
function dragged(state, x, y) {
  const angle = (Math.round((Math.atan2(-y, x) * 36) / Math.PI) * 5 + 360) % 360;
  const grown = Math.round((2 * (Math.hypot(x, y) - INNER)) / EACH) / 2;
  return { angle: String(angle), grown: String(Math.min(4, Math.max(0, grown))) };
}

/** A click on a key turns the query to it. */
function picked(target) {
  const key = target.closest("[data-key]");
  return key && { angle: String(KEYS[key.dataset.key]) };
}

define({
  name: "attention",
  opening: OPENING,
  words: WORDS,
  presets: PRESETS,
  controls: (words) =>
    slider("angle", words.angle, 0, 355, 5, OPENING.angle) +
    slider("grown", words.grown, 0, 4, 0.5, OPENING.grown) +
    choice("remedy", words.remedy, ["none", "norm", "cap", "clip"].map((name) => [name, words[name]]), "none") +
    slider("gain", words.gain, 0.5, 4, 0.5, OPENING.gain) +
    slider("cap", words.ceiling, 10, 100, 10, OPENING.cap),
  shown: {
    angle: ({ angle }) => `${angle}°`,
    grown: ({ grown }, words) => words.times(digits(2 ** grown, 3)),
    gain: ({ gain }) => digits(Number(gain)),
    cap: ({ cap }) => cap,
  },
  idle: ({ remedy }) => ({ gain: remedy !== "norm", cap: remedy !== "cap" }),
  picked,
  dragged,
  compute,
  view,
  says,
});
