// Which cells of a batch share a statistic: move one value and see which outputs move.

import { Random } from "../engine/random.js";
import { forward, shared } from "../engine/norms.js";
import { choice, define, digits, slider } from "./element.js";

const SHAPE = [2, 5, 4]; // sequences, positions, features
const [N, L, C] = SHAPE;
const PADS = 2; // at the end of the second sequence
const EPS = 1e-5;
const MOVED = 0.005; // what two decimals show

const WORDS = {
  en: {
    caption:
      "A batch of two sequences: choose a cell, move its value, and see whose output moves in each norm.",
    input: "The batch: two sequences, positions across, features down",
    sequence: (n) => `sequence ${n + 1}`,
    place: (n, l, c) => `sequence ${n + 1}, position ${l + 1}, feature ${c + 1}`,
    padding: "padding",
    value: "its value",
    sequences: "batch",
    both: "two sequences",
    one: "one sequence",
    counted: "counted in the statistics",
    masked: "left out by a mask",
    train: "BatchNorm, train",
    eval: "BatchNorm, eval",
    layer: "LayerNorm",
    rms: "RMSNorm",
    instance: "InstanceNorm",
    group: "GroupNorm, 2 groups",
    legend: "Outlined: shares its statistic with the chosen cell. Filled: its output has moved. In eval mode BatchNorm has mean 0 and variance 1 here.",
    moved: (count, tokens, earlier) =>
      count === 0
        ? "no output moves"
        : `${count} ${count > 1 ? "move" : "moves"}, ${tokens ? `in ${tokens} other token${tokens > 1 ? "s" : ""}` : "in this token only"}${earlier ? ", earlier ones too" : ""}`,
    chosen: (place, from, to) => `${place}, moved from ${from} to ${to}`,
    colon: ": ",
    comma: ", ",
    stop: ". ",
  },
  zh: {
    caption: "两个序列组成的 batch：选一个格子，移动它的值，看每种归一化里谁的输出跟着变。",
    input: "这个 batch：两个序列，横向是位置，纵向是特征",
    sequence: (n) => `序列 ${n + 1}`,
    place: (n, l, c) => `序列 ${n + 1}，位置 ${l + 1}，特征 ${c + 1}`,
    padding: "填充",
    value: "它的值",
    sequences: "batch",
    both: "两个序列",
    one: "一个序列",
    counted: "计入统计量",
    masked: "用掩码排除",
    train: "BatchNorm，训练",
    eval: "BatchNorm，推理",
    layer: "LayerNorm",
    rms: "RMSNorm",
    instance: "InstanceNorm",
    group: "GroupNorm，2 组",
    legend: "描边：与选中的格子共用统计量。填色：输出变了。推理（eval）时的 BatchNorm 在这里取均值 0、方差 1。",
    moved: (count, tokens, earlier) =>
      count === 0
        ? "没有输出改变"
        : `${count} 个值变了，${tokens ? `波及另外 ${tokens} 个 token` : "只在这个 token 里"}${earlier ? "，包括更早的" : ""}`,
    chosen: (place, from, to) => `${place}，从 ${from} 变到 ${to}`,
    colon: "：",
    comma: "，",
    stop: "。",
  },
};

const at = (n, l, c) => (n * L + l) * C + c;
const isPadding = (i) => Math.floor(i / C) >= N * L - PADS;

// Numbers of the seed, to one decimal; padding is zero.
const draw = new Random(4);
const START = Float32Array.from({ length: N * L * C }, (_, i) => {
  const value = Math.round(draw.normal() * 15) / 10 || 0; // no -0
  return isPadding(i) ? 0 : value;
});

const OPENING = { cell: String(at(0, 4, 1)), value: "4", batch: "2", padding: "counted" };
const PRESETS = [
  {
    claim: "the-causal-mask-keeps-a-decoder-causal",
    verdict: "holds-when",
    state: OPENING,
    en: "A causal mask keeps a decoder causal",
    zh: "有因果掩码就看不到未来",
    shows: {
      en: "Not with BatchNorm in training: the last position has moved the earlier ones. With LayerNorm it holds.",
      zh: "训练中的 BatchNorm 不行：最后一个位置动了，更早的位置也跟着变。换成 LayerNorm 就成立。",
    },
  },
  {
    claim: "layer-norm-sees-one-token",
    verdict: "holds",
    state: { ...OPENING, cell: String(at(1, 1, 2)), value: "-4" },
    en: "LayerNorm sees one token",
    zh: "LayerNorm 只看一个 token",
    shows: {
      en: "Only the four outputs of this token have moved, and the same with RMSNorm.",
      zh: "只有这个 token 的四个输出变了，RMSNorm 也一样。",
    },
  },
  {
    claim: "groupnorm-and-instancenorm-ignore-the-batch",
    verdict: "holds",
    state: { ...OPENING, cell: String(at(1, 0, 0)), value: "4" },
    en: "GroupNorm and InstanceNorm ignore the batch",
    zh: "GroupNorm 和 InstanceNorm 不依赖 batch",
    shows: {
      en: "No output of the other sequence has moved. But positions of the same sequence have.",
      zh: "另一个序列的输出没有变。但同一序列的其他位置变了。",
    },
  },
  {
    claim: "padding-is-why-text-dropped-batchnorm",
    verdict: "wrong",
    state: { ...OPENING, cell: String(at(1, 4, 0)), value: "4", padding: "masked" },
    en: "Padding rules BatchNorm out",
    zh: "有填充就用不了 BatchNorm",
    shows: {
      en: "With a mask, padding moves no real token. Count it, and it does.",
      zh: "有掩码时，填充不影响真实的 token；把它计入，就有影响。",
    },
  },
  {
    claim: "decoding-with-a-batch-of-one-breaks-batchnorm",
    verdict: "wrong",
    state: { ...OPENING, batch: "1" },
    en: "A batch of one breaks BatchNorm",
    zh: "batch 为 1 时 BatchNorm 失效",
    shows: {
      en: "In eval mode nothing is shared, whatever the batch. In training one sequence still has five values a feature.",
      zh: "eval 模式下什么也不共用，和 batch 大小无关。训练时，一个序列里每个特征也还有五个值。",
    },
  },
];

const SHOWN = ["train", "eval", "layer", "rms", "group", "instance"];

/** Outputs (N, L, C) of one norm, and which cells share a statistic with which. */
function normed(name, x, sequences, masked) {
  const norm = { train: "batch", eval: "batch" }[name] ?? name;
  const cells = shared(norm, [sequences, L, C]);
  const spec = { cells, gain: new Float32Array(C).fill(1), eps: EPS, centred: name !== "rms" };
  if (name === "eval") {
    const constant = (v) => new Float64Array(C).fill(v);
    spec.fixed = { mean: constant(0), variance: constant(1) };
  } else if (masked && cells.count !== sequences * L) {
    spec.counted = Array.from(x, (_, i) => !isPadding(i)); // not where tokens stand alone
  }
  return { cells: cells.of, counted: spec.counted, y: forward(x, spec).y };
}

/** For each norm: cells that share the chosen one's statistic, how far outputs moved. */
function compute({ cell, value, batch, padding }) {
  const sequences = Number(batch);
  const before = START.slice(0, sequences * L * C);
  const chosen = Number(cell) % before.length; // of one sequence: the same place in it
  const after = before.slice();
  after[chosen] = Number(value);
  const norms = SHOWN.map((name) => {
    const masked = padding === "masked";
    const { cells, counted, y } = normed(name, after, sequences, masked);
    const old = normed(name, before, sequences, masked).y;
    const part = (i) => cells[i] === cells[chosen] && (!counted || counted[i]);
    const together = Array.from(y, (_, i) => name !== "eval" && part(chosen) && part(i));
    const by = Array.from(y, (v, i) => Math.abs(v - old[i]));
    const moved = by.flatMap((d, i) => (d > MOVED ? [i] : []));
    const tokens = new Set(moved.map((i) => Math.floor(i / C)));
    tokens.delete(Math.floor(chosen / C));
    const [first, mine] = [Math.floor(chosen / (L * C)) * L, Math.floor(chosen / C)];
    const earlier = [...tokens].some((t) => t >= first && t < mine);
    return { name, together, by, moved, tokens: tokens.size, earlier };
  });
  return { sequences, chosen, before, after, norms };
}

const SIDE = 10; // of a cell, in units of the drawing
const GAP = 6; // between sequences

function panel({ name, together, by, moved, tokens, earlier }, chosen, sequences, words) {
  const marks = together.map((same, i) => {
    const [n, l, c] = [Math.floor(i / (L * C)), Math.floor(i / C) % L, i % C];
    const [x, y] = [n * (L * SIDE + GAP) + l * SIDE + 1, c * SIDE + 1];
    const kind = [same && "same", isPadding(i) && "pad", i === chosen && "chosen"].filter(Boolean);
    const strength = by[i] > MOVED ? Math.min(1, 0.3 + by[i]).toFixed(2) : 0;
    return (
      `<rect x="${x}" y="${y}" width="8" height="8" class="${kind.join(" ")}" ` +
      `fill-opacity="${strength}"/>`
    );
  });
  const width = sequences * L * SIDE + (sequences - 1) * GAP;
  const told = words.moved(moved.length, tokens, earlier);
  return (
    `<div><b>${words[name]}</b><svg viewBox="0 0 ${width} ${C * SIDE}" aria-hidden="true" ` +
    `style="max-width:${width / 8}rem">${marks.join("")}</svg><span>${told}</span></div>`
  );
}

function view(state, words) {
  const { chosen, sequences, norms } = compute(state);
  const panels = norms.map((norm) => panel(norm, chosen, sequences, words));
  return `<div class="norms">${panels.join("")}</div><p class="legend">${words.legend}</p>`;
}

const place = (i, words) => words.place(Math.floor(i / (L * C)), Math.floor(i / C) % L, i % C);

function says(state, words) {
  const { chosen, before, after, norms } = compute(state);
  const told = norms.map(
    ({ name, moved, tokens, earlier }) =>
      words[name] + words.colon + words.moved(moved.length, tokens, earlier),
  );
  const where = words.chosen(place(chosen, words), digits(before[chosen]), digits(after[chosen]));
  return [where, ...told].join(words.stop) + words.stop.trim();
}

/** The batch as radio buttons: arrow keys go from cell to cell, along a token. */
function grid(words) {
  const cells = Array.from(START, (v, i) => {
    const [n, l, c] = [Math.floor(i / (L * C)), Math.floor(i / C) % L, i % C];
    const area = `grid-area:${c + 1}/${n * (L + 1) + l + 1}`;
    const name = place(i, words) + (isPadding(i) ? words.comma + words.padding : "");
    const checked = i === Number(OPENING.cell) ? " checked" : "";
    return (
      `<label style="${area}" class="${isPadding(i) ? "pad" : ""}"><input type="radio" name="cell" ` +
      `value="${i}"${checked}><i class="unseen">${name}${words.colon}</i><span data-of="cell${i}">${digits(v)}</span></label>`
    );
  });
  return `<fieldset class="batch"><legend>${words.input}</legend><div>${cells.join("")}</div></fieldset>`;
}

/** A cell of a panel, clicked. */
const picked = (target) =>
  target.tagName === "rect" ? { cell: String([...target.parentNode.children].indexOf(target)) } : null;

const cellTexts = Object.fromEntries(
  Array.from(START, (v, i) => [
    `cell${i}`,
    ({ cell, value }) => digits(i === Number(cell) ? Number(value) : v),
  ]),
);

define({
  name: "cells",
  opening: OPENING,
  words: WORDS,
  presets: PRESETS,
  controls: (words) =>
    grid(words) +
    slider("value", words.value, -6, 6, 0.1, OPENING.value) +
    choice("batch", words.sequences, [["2", words.both], ["1", words.one]], OPENING.batch) +
    choice("padding", words.padding, [["counted", words.counted], ["masked", words.masked]], OPENING.padding),
  shown: { ...cellTexts, value: ({ value }) => digits(Number(value)) },
  picked,
  compute,
  view,
  says,
});
