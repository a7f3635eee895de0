// Everything the screen says, in both languages. Numbers come from the run.

const SUPERSCRIPTS = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A power of ten: 10⁻³. */
export const power = (exponent) =>
  "10" + String(exponent).replace(/./g, (c) => SUPERSCRIPTS["-0123456789".indexOf(c)]);

/** A size in two digits: 1.3·10⁻⁵, 0.042, 17. */
export function sized(value) {
  if (!Number.isFinite(value)) return "NaN";
  if (value === 0) return "0";
  if (value >= 0.01 && value < 1000) return String(Number(value.toPrecision(2)));
  const [digits, exponent] = value.toExponential(1).split("e");
  return `${digits}·${power(Number(exponent))}`;
}

/** One part in so many: 1/900 for a share of 0.0011. */
export const fraction = (share) => {
  const parts = 1 / share;
  if (!Number.isFinite(parts)) return "0";
  const coarse = Number(parts.toPrecision(1));
  return coarse >= 1e6 ? sized(share) : `1/${coarse}`;
};

export const lossText = (value) => (Number.isFinite(value) ? value.toFixed(2) : "NaN");

/** Layers 0 to n as text: runs of neighbours are joined. */
const spans = (layers) => {
  const found = [];
  for (const layer of layers) {
    const last = found.at(-1);
    if (last && last[1] === layer - 1) last[1] = layer;
    else found.push([layer, layer]);
  }
  return found.map(([a, b]) => (a === b ? String(a) : `${a}–${b}`));
};

const PLACE_NAMES = {
  pre: "Pre-Norm",
  post: "Post-Norm",
  deepnorm: "DeepNorm",
  normformer: "NormFormer",
  rezero: "ReZero",
};

const FORMULAS = {
  pre: "x + F(norm(x))",
  post: "norm(x + F(x))",
  sandwich: "x + norm(F(norm(x)))",
  branch_output: "x + norm(F(x))",
  deepnorm: "norm(α·x + F(x)), α > 1",
  none: "x + F(x)",
};

/** When a break was: {from, to, before}. */
const whenEn = ({ from, to, before }) =>
  to === null ? `From step ${from} on${before ? ", and at times before," : ""}` : `From step ${from} to ${to}`;
const whenZh = ({ from, to, before }) =>
  to === null ? `第 ${from} 步起${before ? "（之前也有几段）" : ""}` : `第 ${from} 步到第 ${to} 步`;

const EN = {
  places: { ...PLACE_NAMES, sandwich: "Sandwich norm", branch_output: "Norm on branch output", none: "No norm" },
  formulas: {
    ...FORMULAS,
    normformer: "x + norm(F(norm(x))); in the MLP the outer norm is inside F",
    rezero: "x + α·F(x), α starts at 0",
  },
  norms: { layer: "LayerNorm", rms: "RMSNorm", batch: "BatchNorm" },
  ask: {
    opening: (layers) =>
      `Two decoders of ${layers} layers: the same start, the same data. Only the place of the norm differs. Which one learns?`,
    two: "Which lane learns?",
    one: "Does it learn?",
    many: "How many lanes learn?",
    hidden: "Run them, then choose the map that is Post-Norm's.",
  },
  bets: (id, names) =>
    ({
      first: names[0],
      second: names[1],
      both: "Both",
      neither: "Neither",
      learns: "It learns",
      fails: "It does not",
    })[id] ?? id.replace("count", ""),
  run: "Run",
  just: "Run without a bet",
  record: "See the recorded run",
  stop: "Stop",
  replay: "Same start again",
  fresh: "New start",
  add: "Add a lane",
  remove: "Remove the last lane",
  share: "Copy link",
  shared: "Link copied",
  picture: "Save picture",
  place: (i) => `Place of the norm, lane ${i}`,
  norm: (i) => `Norm, lane ${i}`,
  lane: (i) => `Lane ${i}`,
  layers: "Layers",
  rate: "Learning rate",
  warmup: "Warm-up",
  task: "Task",
  tasks: { largest: "name the largest token so far" },
  seeds: "Seeds",
  map: "Map",
  maps: { gradient: "Gradient", cosine: "Cosine of tokens", size: "Size of the stream" },
  scale: {
    gradient: "RMS of the gradient",
    cosine: "cosine between tokens: 1 is one vector",
    size: "RMS of the residual stream",
  },
  loss: "loss",
  bare: (loss) => `no layers ${loss}`,
  learns: (loss) => `learns below ${loss}`,
  up: "layers ↑",
  step: "step",
  end: (lane) => (lane.ends.length > 1 ? `${lossText(lane.end)} (median of ${lane.ends.length})` : lossText(lane.end)),
  running: (step, steps) => `Step ${step} of ${steps}`,
  stopped: (step) => `Stopped at step ${step}. A stopped run decides nothing.`,
  right: "Right.",
  wrong: "Not this time.",
  outcome: (name, { learned, better, end, learners, runs, lost }, bare) => {
    const many = runs > 1 ? ` (${learners} of ${runs} seeds learn)` : "";
    if (lost !== null && !learned) return `${name}: at step ${lost} the loss is no longer a number${many}.`;
    if (learned) return `${name} learns: loss ${lossText(end)}${many}.`;
    if (better) return `${name} gets stuck at ${lossText(end)}${many}.`;
    return `${name} ends at ${lossText(end)}, no better than a model without layers (${lossText(bare)})${many}.`;
  },
  dead: ({ layers, share, layer, ...when }) =>
    `${whenEn(when)} ${layers.length === 1 && layers[0] === 0 ? "the embedding" : `layer${layers.length > 1 ? "s" : ""} ${spans(layers).join(", ")}`} mostly get${layers.length > 1 ? "" : "s"} less than 1/100 of the last layer's gradient${layers.length > 1 ? `, layer ${layer} about ${fraction(share)}` : ""}.`,
  alike: ({ cosine, ...when }) =>
    `${whenEn(when)} the tokens of a sequence are one vector (cosine ${cosine.toFixed(3)}).`,
  faint: ({ size, ...when }) =>
    `${whenEn(when)} all layers get less than ${power(-6)}, the last one too, so none looks small beside it; the stream is about ${sized(size)} there. Adam divides by the gradient's size, so this need not stop a run.`,
  flat: "The loss had stopped falling before that.",
  lost: (step) => `At step ${step} the loss is no longer a number.`,
  whole: "Every layer gets its gradient to the end.",
  ofSeed: (seed) => `Seed ${seed}:`,
  moved: (step, rate) => `At step ${step} the rate was moved to ${rate}.`,
  reading: ({ step, layer, loss, gradient, cosine, size }) =>
    `step ${step}, loss ${lossText(loss)}; ${layer === 0 ? "embedding" : `layer ${layer}`}: gradient ${sized(gradient)}, cosine ${Number.isFinite(cosine) ? cosine.toFixed(2) : "NaN"}, size ${sized(size)}`,
  read: (name) => `Read the run of ${name}: left and right for the step, up and down for the layer`,
  hint: "Drag across a map, or use the arrow keys, to read any step.",
  table: "The runs in numbers",
  columns: ["step", "loss", "gradient, embedding", "gradient, last layer", "cosine, last layer"],
  challenges: "Challenges",
  challenge: {
    rescue: ["Rescue Post-Norm", "Six layers, norm after the sum: make it learn."],
    steady: ["Without touching the rate", "Six layers. The rate stays at 0.01, the norm after the sum. Warm-up for half the run does not save this one. What does?"],
    kill: ["Kill Pre-Norm", "It shrugs off three times the rate. Keep it from learning."],
    bare: ["No norm at all", "End below Pre-Norm, side by side, with a model that has no norm."],
    blind: ["Four maps without names", "Run them, then say which is Post-Norm."],
  },
  because: {
    rescue: "A lower rate does it, and so say the recorded runs below.",
    steady: "DeepNorm does it: its norm comes after the sum as well, but it weighs the stream more and starts the layers smaller.",
    kill: "Pre-Norm bounds what a layer reads, not the stream: see the map of its size.",
    bare: "ReZero does it: its α starts at 0, so at first the layers add nothing.",
    blind: "Its layers below the last get little gradient: on the way down it passes every norm above them.",
  },
  next: "Next challenge",
  before: (name, settings, end) => `Before the change: ${name}; ${settings}${end && `; ${end}`}.`,
  begin: "Try it",
  leave: "Leave the challenge",
  solved: "Solved",
  open: "Not solved yet",
  solvedNow: (title) => `Solved: ${title}.`,
  notNow: (title) => `Not solved yet: ${title}.`,
  choose: "This is Post-Norm",
  wasIt: (name) => `That was ${name}.`,
  settings: ({ layers, rate, warmup, seed, seeds, steps }) =>
    `${layers} layers, d = 16, Adam, rate ${rate}${warmup ? `, warm-up ${warmup * 100}%` : ""}, ${steps} steps, ${seeds > 1 ? `seeds ${seed} to ${seed + seeds - 1}` : `seed ${seed}`}`,
  title: "Where the gradient dies",
  between: " ",
};

const ZH = {
  places: { ...PLACE_NAMES, sandwich: "夹心归一化", branch_output: "归一化分支输出", none: "不归一化" },
  formulas: {
    ...FORMULAS,
    normformer: "x + norm(F(norm(x)))；MLP 里外层的归一化在 F 内部",
    rezero: "x + α·F(x)，α 从 0 开始",
  },
  norms: { layer: "LayerNorm", rms: "RMSNorm", batch: "BatchNorm" },
  ask: {
    opening: (layers) => `两个 ${layers} 层的解码器，起点相同，数据相同，只有归一化的位置不同。哪一个学得会？`,
    two: "哪一道学得会？",
    one: "它学得会吗？",
    many: "有几道学得会？",
    hidden: "先训练，再指出哪幅图是 Post-Norm。",
  },
  bets: (id, names) =>
    ({ first: names[0], second: names[1], both: "都会", neither: "都不会", learns: "学得会", fails: "学不会" })[id] ??
    `${id.replace("count", "")} 道`,
  run: "训练",
  just: "不押，直接训练",
  record: "看录下的训练",
  stop: "停",
  replay: "同一起点再来",
  fresh: "换个起点",
  add: "加一道",
  remove: "去掉最后一道",
  share: "复制链接",
  shared: "链接已复制",
  picture: "存成图片",
  place: (i) => `归一化的位置，第 ${i} 道`,
  norm: (i) => `归一化方法，第 ${i} 道`,
  lane: (i) => `第 ${i} 道`,
  layers: "层数",
  rate: "学习率",
  warmup: "预热",
  task: "任务",
  tasks: { largest: "说出到此为止最大的 token" },
  seeds: "种子数",
  map: "图上是",
  maps: { gradient: "梯度", cosine: "token 间的余弦", size: "残差流的大小" },
  scale: { gradient: "梯度的均方根", cosine: "token 间的余弦，1 即同一个向量", size: "残差流的均方根" },
  loss: "损失",
  bare: (loss) => `没有层 ${loss}`,
  learns: (loss) => `低于 ${loss} 算学会`,
  up: "层 ↑",
  step: "步",
  end: (lane) => (lane.ends.length > 1 ? `${lossText(lane.end)}（${lane.ends.length} 个种子的中位数）` : lossText(lane.end)),
  running: (step, steps) => `第 ${step} 步，共 ${steps} 步`,
  stopped: (step) => `停在第 ${step} 步。没跑完，不作数。`,
  right: "押对了。",
  wrong: "这次没押对。",
  outcome: (name, { learned, better, end, learners, runs, lost }, bare) => {
    const many = runs > 1 ? `（${runs} 个种子里 ${learners} 个学得会）` : "";
    if (lost !== null && !learned) return `${name}：第 ${lost} 步起，损失不再是数${many}。`;
    if (learned) return `${name} 学会了，损失 ${lossText(end)}${many}。`;
    if (better) return `${name} 停在 ${lossText(end)}，没学会${many}。`;
    return `${name} 最后是 ${lossText(end)}，不比没有层的模型（${lossText(bare)}）好${many}。`;
  },
  dead: ({ layers, share, layer, ...when }) =>
    `${whenZh(when)}，${layers.length === 1 && layers[0] === 0 ? "嵌入" : `第 ${spans(layers).join("、")} 层`}拿到的梯度大多不到最后一层的 1/100${layers.length > 1 ? `，其中第 ${layer} 层约 ${fraction(share)}` : ""}。`,
  alike: ({ cosine, ...when }) =>
    `${whenZh(when)}，一个序列的各个 token 成了同一个向量（余弦 ${cosine.toFixed(3)}）。`,
  faint: ({ size, ...when }) =>
    `${whenZh(when)}，每一层的梯度都不到 ${power(-6)}，最后一层也一样，所以和它比，看不出哪一层小；这里残差流的大小约 ${sized(size)}。Adam 会除以梯度的大小，所以梯度这么小不一定学不会。`,
  flat: "损失在那之前就不再下降了。",
  lost: (step) => `第 ${step} 步，损失不再是数。`,
  whole: "每一层直到最后都拿得到梯度。",
  ofSeed: (seed) => `种子 ${seed}：`,
  moved: (step, rate) => `第 ${step} 步把学习率改成了 ${rate}。`,
  reading: ({ step, layer, loss, gradient, cosine, size }) =>
    `第 ${step} 步，损失 ${lossText(loss)}；${layer === 0 ? "嵌入" : `第 ${layer} 层`}：梯度 ${sized(gradient)}，余弦 ${Number.isFinite(cosine) ? cosine.toFixed(2) : "NaN"}，大小 ${sized(size)}`,
  read: (name) => `读 ${name} 的记录：左右键换步，上下键换层`,
  hint: "在图上拖动，或者用方向键，可以读任何一步。",
  table: "训练的数据",
  columns: ["步", "损失", "嵌入的梯度", "最后一层的梯度", "最后一层的余弦"],
  challenges: "挑战",
  challenge: {
    rescue: ["救活 Post-Norm", "六层，归一化在相加之后：让它学会。"],
    steady: ["不许动学习率", "六层。学习率留在 0.01，归一化留在相加之后。预热半程也没救回这一次，什么救得了？"],
    kill: ["弄垮 Pre-Norm", "三倍的学习率它不在乎。让它学不会。"],
    bare: ["一个归一化都不用", "和 Pre-Norm 并排，用没有归一化的模型，损失降到它以下。"],
    blind: ["四幅没有名字的图", "先训练，再指出哪幅是 Post-Norm。"],
  },
  because: {
    rescue: "降低学习率就行，下面录下的训练也是这样。",
    steady: "DeepNorm 就行：它的归一化也在相加之后，但残差流的权重更大，各层的初始值更小。",
    kill: "Pre-Norm 管住的是每层读到的数，管不住残差流：看残差流大小那幅图。",
    bare: "ReZero 就行：它的 α 从 0 开始，起初各层什么也不加。",
    blind: "最后一层以下的各层梯度很小：梯度往下传，要经过上面每一个归一化。",
  },
  next: "下一个挑战",
  before: (name, settings, end) => `改动之前：${name}；${settings}${end && `；${end}`}。`,
  begin: "试试",
  leave: "不做挑战了",
  solved: "已解",
  open: "还没解",
  solvedNow: (title) => `解出来了：${title}。`,
  notNow: (title) => `还没解：${title}。`,
  choose: "这是 Post-Norm",
  wasIt: (name) => `那是 ${name}。`,
  settings: ({ layers, rate, warmup, seed, seeds, steps }) =>
    `${layers} 层，d = 16，Adam，学习率 ${rate}${warmup ? `，预热 ${warmup * 100}%` : ""}，${steps} 步，种子 ${seeds > 1 ? `${seed} 到 ${seed + seeds - 1}` : seed}`,
  title: "梯度死在哪一层",
  between: "",
};

export const WORDS = { en: EN, zh: ZH };

/** The name of a lane: its place, and its norm where it is not LayerNorm. */
export const named = ({ place, norm }, words) =>
  words.places[place] + (norm === "layer" ? "" : ` (${words.norms[norm]})`);

/** What broke in a lane, sentence by sentence; or that nothing did. */
export function breaks({ lost, dead, alike, faint, flat }, words) {
  if (lost !== null) return [words.lost(lost)];
  const found = [];
  if (dead) found.push(words.dead(dead));
  if (alike) found.push(words.alike(alike));
  if (faint) found.push(words.faint(faint));
  if (flat) found.push(words.flat);
  return found;
}
