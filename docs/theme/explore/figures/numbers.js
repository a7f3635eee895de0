// What five number formats make of a row, and what three cast orders make of RMSNorm.

import { ORDERS, rmsNorm } from "../engine/cast_orders.js";
import { FORMATS, encode, fields, round } from "../engine/formats.js";
import { choice, define, digits, slider } from "./element.js";

const MOST = 8; // features of a row

const WORDS = {
  en: {
    caption:
      "Type a row, choose ε and a format: what is stored, and what RMSNorm gives in three cast orders.",
    row: "one row",
    scale: "times",
    eps: "ε",
    gain: "gain γ",
    format: "kept in",
    bits: "Bits of x",
    largest: "The largest x of the row in five formats",
    normed: (format) => `RMSNorm of the row, kept in ${format}`,
    exact: "exact",
    naive: "no upcast",
    llama: "Llama, T5",
    gemma: "Gemma, torch",
    mean: "mean + ε",
    off: "Llama and T5 cast, then multiply by the gain; Gemma and torch's own operator multiply, then cast. ≠: not the number of this format nearest to the exact result.",
    stored: (format, x, square, eps) =>
      `In ${format} x is ${x}, its square ${square}, ε ${eps}.`,
    outputs: (exact, naive, llama, gemma) =>
      `RMSNorm of the row is ${exact}. No upcast: ${naive}. Llama's order: ${llama}. Gemma's order: ${gemma}.`,
    comma: ", ",
    unread: (parts) => `Not read: ${parts}. `,
    most: (count) => `The first ${count} are read.`,
  },
  zh: {
    caption:
      "输入一行，选 ε 和格式：看各个数存成什么，三种转换顺序各把 RMSNorm 算成什么。",
    row: "一行",
    scale: "乘以",
    eps: "ε",
    gain: "增益 γ",
    format: "存放格式",
    bits: "x 的各个位",
    largest: "这一行里最大的 x，用五种格式存放",
    normed: (format) => `这一行的 RMSNorm，以 ${format} 存放`,
    exact: "精确值",
    naive: "不提升精度",
    llama: "Llama、T5",
    gemma: "Gemma、torch",
    mean: "均值 + ε",
    off: "Llama、T5 先转换，再乘增益；Gemma 和 torch 自带的算子先乘增益，再转换。≠：不是该格式里最接近精确值的数。",
    stored: (format, x, square, eps) => `用 ${format}，x 存成 ${x}，它的平方是 ${square}，ε 是 ${eps}。`,
    outputs: (exact, naive, llama, gemma) =>
      `这一行的 RMSNorm 是 ${exact}。不提升精度：${naive}。Llama 的顺序：${llama}。Gemma 的顺序：${gemma}。`,
    comma: "、",
    unread: (parts) => `没有读懂：${parts}。`,
    most: (count) => `只读前 ${count} 个。`,
  },
};

const OPENING = { row: "300, 1, -200, 2", scale: "0", eps: "-6", gain: "1", format: "float16" };
const PRESETS = [
  {
    claim: "overflow-in-rms-norm-gives-nan",
    verdict: "wrong",
    state: OPENING,
    en: "A square that overflows gives NaN",
    zh: "平方上溢，得到 NaN",
    shows: {
      en: "Without an upcast the square is infinite, 1/RMS is 0, and so is every output. No NaN: that takes an infinity stored in the row itself.",
      zh: "不提升精度时平方是无穷大，1/RMS 是 0，所有输出也都是 0，没有 NaN。行里自己存着无穷大，才会得到 NaN。",
    },
  },
  {
    claim: "the-sum-of-squares-is-what-overflows",
    verdict: "holds-when",
    state: { ...OPENING, row: "200, 200, -200, 150" },
    en: "It is the sum that overflows",
    zh: "上溢的是平方和",
    shows: {
      en: "Not in torch: every square fits, their sum would not, but torch adds in float32 and the mean fits.",
      zh: "在 torch 里不是：每个平方都放得下，和放不下，但 torch 用 float32 相加，均值又放得下。",
    },
  },
  {
    claim: "a-tiny-epsilon-prevents-division-by-zero",
    verdict: "holds-when",
    state: { ...OPENING, row: "1e-4, 1e-4, -1e-4, 1e-4", eps: "-8" },
    en: "Any ε prevents division by zero",
    zh: "有 ε 就不会除以零",
    shows: {
      en: "Only where ε is stored: this one is 0 in float16, as are the squares, and the output is infinite.",
      zh: "要 ε 存得下才行：float16 里这个 ε 是 0，平方也是 0，输出成了无穷大。",
    },
  },
  {
    claim: "bfloat16-makes-the-upcast-unnecessary",
    verdict: "holds-when",
    state: { ...OPENING, row: "1.2, -0.4, 0.7, 2.1", gain: "1.3", format: "bfloat16" },
    en: "bfloat16 needs no upcast",
    zh: "bfloat16 不必提升精度",
    shows: {
      en: "Not for its range: nothing overflows. For accuracy it does: without an upcast more outputs miss the nearest number.",
      zh: "论范围不必：没有上溢。论精度要：不提升精度时，更多的输出不是最接近的数。",
    },
  },
  {
    claim: "the-order-of-cast-and-gain-does-not-matter",
    verdict: "holds-when",
    state: { ...OPENING, row: "1.2, -0.4, 0.7, 2.1, -1.3, 0.2", gain: "1.3", format: "bfloat16" },
    en: "Cast order does not matter",
    zh: "转换顺序无所谓",
    shows: {
      en: "Only while the gain is one: here the two orders differ in the last bit, and the later cast is the nearer one.",
      zh: "只在增益等于 1 时成立：这里两种顺序在最后一位上不同，后转换的更接近精确值。",
    },
  },
  {
    claim: "float32-rms-norm-cannot-overflow",
    verdict: "holds-when",
    state: { ...OPENING, row: "3e19, 1, -2, 0.5", format: "float32" },
    en: "float32 cannot overflow",
    zh: "float32 不会上溢",
    shows: {
      en: "Only up to a point: this square is infinite in float32 as well, and the row is 0 in every order.",
      zh: "有限度：这个数的平方在 float32 里也是无穷大，三种做法整行都是 0。",
    },
  },
];

const parts = (text) => text.split(/[\s,，、]+/).filter(Boolean);
const parsed = (text) => {
  const found = parts(text).map(Number);
  const row = found.filter((v) => !Number.isNaN(v)).slice(0, MOST);
  return row.length ? row : [0];
};

/** What of a typed row was not read. */
const unread = ({ row }, words) => {
  const typed = parts(row);
  const strange = typed.filter((part) => Number.isNaN(Number(part)));
  const over = typed.length - strange.length - MOST;
  return [
    strange.length ? words.unread(strange.slice(0, MOST).join(words.comma)) : "",
    over > 0 ? words.most(MOST) : "",
  ].join("");
};

/** All numbers of a state. */
function compute({ row: text, scale, eps: power, gain: one, format: name }) {
  const row = parsed(text).map((v) => Math.fround(v * 2 ** scale));
  const eps = Number(`1e${power}`);
  const x = row.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
  const stored = Object.entries(FORMATS).map(([name, format]) => {
    const kept = round(x, format);
    return {
      name,
      bits: fields(encode(x, format), format),
      x: kept,
      square: round(Math.fround(kept * kept), format),
      eps: round(eps, format),
    };
  });
  const format = FORMATS[name];
  const gain = row.map(() => Number(one));
  const orders = Object.keys(ORDERS).map((order) => ({
    order,
    ...rmsNorm(row, gain, { eps, order, format }),
  }));
  const kept = orders[0].row;
  const mean = kept.reduce((sum, v) => sum + v * v, 0) / kept.length + eps;
  const exact = kept.map((v) => (v * round(Number(one), format)) / Math.sqrt(mean));
  const nearest = exact.map((v) => round(v, format));
  return { row: kept, x, eps, stored, orders, mean, exact, nearest };
}

const cell = (v, right = v) => {
  const off = !Object.is(v, right) && v !== right;
  return `<td${off ? ' class="off"' : ""}>${digits(v)}${off ? " ≠" : ""}</td>`;
};

function view(state, words) {
  const { row, stored, orders, mean, exact, nearest } = compute(state);
  const bits = stored.map(({ name, bits, x, square, eps }) => {
    const [sign, exponent, fraction] = bits;
    const chosen = name === state.format ? ' class="chosen"' : "";
    return (
      `<tr${chosen}><th scope="row">${name}<code><i>${sign}</i> <b>${exponent}</b> ${fraction}</code></th>` +
      `${cell(x)}${cell(square)}${cell(eps)}</tr>`
    );
  });
  const heads = orders.map(({ order }) => `<th scope="col">${words[order]}</th>`);
  const means = orders.map(({ shifted }) => cell(shifted));
  const lines = row.map(
    (v, i) =>
      `<tr><th scope="row">${digits(v)}</th>${cell(exact[i])}` +
      `${orders.map(({ y }) => cell(y[i], nearest[i])).join("")}</tr>`,
  );
  return (
    `<table class="stored"><caption>${words.largest}</caption><thead><tr><th scope="col">${words.bits}</th>` +
    '<th scope="col">x</th><th scope="col">x²</th><th scope="col">ε</th></tr></thead>' +
    `<tbody>${bits.join("")}</tbody></table>` +
    `<table class="normed"><caption>${words.normed(state.format)}</caption><thead><tr><th scope="col">x</th>` +
    `<th scope="col">${words.exact}</th>${heads.join("")}</tr></thead><tbody>${lines.join("")}` +
    `<tr class="means"><th scope="row">${words.mean}</th>${cell(mean)}${means.join("")}</tr>` +
    `</tbody></table><p class="legend">${words.off}</p>`
  );
}

function says(state, words) {
  const { stored, orders, exact } = compute(state);
  const { x, square, eps } = stored.find(({ name }) => name === state.format);
  const list = (values) => values.map((v) => digits(v)).join(words.comma);
  return [
    words.stored(state.format, digits(x), digits(square), digits(eps)),
    words.outputs(list(exact), ...orders.map(({ y }) => list(y))),
  ].join(words.comma === "、" ? "" : " ");
}

define({
  name: "numbers",
  opening: OPENING,
  words: WORDS,
  presets: PRESETS,
  controls: (words) =>
    `<label class="wide"><span>${words.row}</span>` +
    `<input type="text" name="row" inputmode="text" value="${OPENING.row}" spellcheck="false"><span data-of="unread"></span></label>` +
    slider("scale", words.scale, -24, 16, 1, OPENING.scale) +
    slider("eps", words.eps, -12, -2, 1, OPENING.eps) +
    slider("gain", words.gain, 0.5, 2, 0.1, OPENING.gain) +
    choice("format", words.format, Object.keys(FORMATS).map((name) => [name, name]), OPENING.format),
  shown: {
    unread,
    scale: ({ scale }) => "2" + scale.replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]),
    eps: ({ eps }) => `1e${eps}`.replace("-", "−"),
    gain: ({ gain }) => gain,
  },
  compute,
  view,
  says,
});
