// Which pages come first: read by the search worker and by the tests, no DOM.
//
// The theme's worker joins words with OR and counts a title a thousand times, so that
// "norm" in a title beats the page that answers. Here a page is worth what it holds of
// each word: in its names (`also`), its titles, its text. Rare words count more,
// words that every question has do not count, and a page that lacks words falls behind.
// Code is looked up as it is typed: hidden_states[-1] is no "hidden" and no "1".

const STOP = new Set(
  ("a an and are as at be between by can did do does doesn't don't for from get give has have how i if in is it " +
    "its make me my need needed of on one only or please question questions should so some than that the " +
    "their there they this to use used using vs was we what when where which while who why will with work " +
    "you your happen happens instead really fix bug issue add but still however though because makes if different set " +
    "为什么 为何 什么 怎么 怎样 如何 哪些 哪个 哪种 哪里 吗 呢 了 的 地 得 和 与 或 及 以及 在 是 有 会 要 用 把 被 对 从 " +
    "到 上 中 里 下 一下 一个 一些 这个 那个 这 那 可以 需要 进行 写 写一下 使用 用的 用了 普遍 都 就 也 还 请问 请 问题 " +
    "相比 相比于 于 各 分别 你 我 它 他 时 后 之后 而 非 而非 做 让 说 讲 该 咋办 么 才 再 又 出现 介绍 关于 问 等 " +
    "能 能否 是否 不是 我们 真的 可能 究竟 根本 主要 其实 一般 比如 是什么 指的 所有 特别 很 太 更 最 " +
    "嘛 存在 用到 但 但是 不过 仍 仍然 还是 已经 如果 因为 所以 由于 当 使用了 并 并且 时候 通常 设置 由 每 本质 就是 解决").split(" "),
);
// One word, spelled otherwise.
const SPELLED = {
  normalisation: "normalization", normlization: "normalization", normalised: "normalized", initialisation: "initialization",
  llms: "llm", behaves: "behaviour", attn: "attention", conv: "convolution", prenorm: "pre-norm", postnorm: "post-norm",
  千问: "qwen", 溢出: "上溢", 坍塌: "坍缩", 塌缩: "坍缩", 崩了: "发散", 崩掉: "发散", 崩溃: "发散",
  八股: "面试题", 八股文: "面试题", 手撕: "手写", 代替: "换成", 取代: "换成", 参数量: "参数",
  大模型: "大语言模型", 双曲正切: "tanh", 前标准化: "pre-norm", 后标准化: "post-norm",
};
const isSpelled = (word) => Object.hasOwn(SPELLED, word);
const spelled = (word) => (isSpelled(word) ? SPELLED[word] : word);
// The terms' other words, which the build fills in from terms.yml: the query is
// put in our words, so that a page need not print those of others.
const PREFERRED = {};
// English word -> the Chinese word for it, which the build fills in from terms.yml: who
// types "bias" on a Chinese page also means 偏置.
const CHINESE = {};
const SAME = {
  alpha: "α", beta: "β", gamma: "γ", epsilon: "ε", eps: "ε",
  hidden: "隐藏", dimension: "维度", size: "大小", residual: "残差", ...CHINESE,
};
// Pages that explain come before those that ask, judge or list.
const KIND = {
  interview: 0.75, claims: 0.6, reference: 0.5, labs: 0.8, "reference/bibliography/": 0.3,
};
const BANK = /^interview\/[^#]+#/; // a question of the bank, whose title is what is asked
const WHOLE = 0, BEGINS = 2; // lunr's wildcards: none, trailing
// Where a word stands, whole or as a beginning, and what that is worth.
const FIELDS = [
  { field: "tags", whole: 2, begins: 1 },
  { field: "title", whole: 1.5, begins: 0.75 },
  { field: "text", whole: 1, begins: 0.6 },
];
const SECTION = 0.7; // a section's title against the page's
const NAME = 1.5; // a page's name within the query
const EXACT = 10; // a page's name and nothing else
const RAREST = 2.5; // what a word counts that few pages have
const TOGETHER = 0.4; // of a page's worth, that of its best section alone
const LEAST = 0.35; // of what the best page holds, for a page after the first few
const FEW = 6;
const REPEATS = /#(?:questions|references|limits|claims)$/; // a section that says what others do

const HAN = /\p{sc=Han}/u;
const RUNS = /\p{sc=Han}+|[^\s\p{sc=Han}，。？！；：、（）“”《》【】]+/gu;
const EDGES = /^[^\p{L}\p{N}√]+|[^\p{L}\p{N}√]+$/gu;
const CODE = /^(?=.*\p{L})[^\s]*[\p{L}\p{N}\])][_.()[\]{}+=/*^<>:@#|]+[\p{L}\p{N}([\-−]|^\p{L}-\p{L}{3,}$/u;
const OWNER = /(?<=\p{L})['’][ds]$/u; // torch.compile'd
const DIGITS = /^\p{N}+$/u;
const ENDING = /(?<=[a-z]{4})(?:e|ed|es|s|ing|ly)$/; // a word without it begins its other forms

// The fewest words of the index that a run of Chinese is made of. What is in none stays
// together: it is a word that no page has.
const segment = (run, known) => {
  const signs = [...run];
  const best = [{ cost: 0, words: [] }];
  for (let end = 1; end <= signs.length; end += 1) {
    for (let start = 0; start < end; start += 1) {
      const word = signs.slice(start, end).join("");
      const isKnown = known(word);
      if (!isKnown && end - start > 1) continue;
      const cost = best[start].cost + (isKnown ? 1 + (end - start === 1 ? 0.5 : 0) : 3);
      if (!best[end] || cost < best[end].cost) best[end] = { cost, words: [...best[start].words, [word, isKnown]] };
    }
  }
  const joined = [];
  for (const [word, isKnown] of best[signs.length].words) {
    const last = joined.at(-1);
    if (!isKnown && last && !last.isKnown) last.word += word;
    else joined.push({ word, isKnown });
  }
  return joined.map(({ word }) => word);
};

const inOurWords = (query) =>
  Object.entries(PREFERRED).reduce((text, [theirs, ours]) => text.replaceAll(theirs, ours), query);

// A word of several that no page writes as one: DynamicTanh, Llama2, SequenceParallel.
const JOINED = /\b[A-Za-z]+[A-Z\d][A-Za-z\d]*/g;
const PARTS = /(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)/;
const parted = (query, known) =>
  query.replace(JOINED, (word) => (known(word.toLowerCase()) ? word : word.split(PARTS).join(" ")));

// The words of a query that count; all of them when none would.
const wordsOf = (query, known, separator, isText) => {
  const all = [];
  const parts = (word) => spelled(word).split(separator);
  // A name of code that no page has is what prose says: weight_decay, weight decay.
  const asProse = (word) => (known(word) || (CODE.test(word) && isText(word)) ? [word] : word.split("_"));
  for (const [run] of parted(query, known).toLowerCase().matchAll(RUNS)) {
    const bare = run.replace(EDGES, "").replace(OWNER, "");
    if (HAN.test(run)) {
      const isKnown = (word) => isSpelled(word) || STOP.has(word) || known(word);
      all.push(...segment(run, isKnown).flatMap((word) => (isSpelled(word) ? segment(spelled(word), known) : [word])));
    } else if (CODE.test(bare) && isText(bare)) all.push(bare);
    else all.push(...parts(bare).flatMap((word) => (CODE.test(word) ? word.split(/[^\p{L}\p{N}_√']+/u).flatMap(asProse) : [word])));
  }
  const clean = all.map((word) => (CODE.test(word) ? word : word.replace(EDGES, ""))).filter(Boolean);
  const counting = clean.filter((word) => !STOP.has(word));
  return [...new Set(counting.length ? counting : clean)];
};

const squeezed = (text) => text.replace(/\u200b|<[^>]*>/g, "").toLowerCase().replace(/[\s_-]+/g, "");

// How much of what was typed is one of the page's names: 1 when it is all.
const named = (page, typed) => {
  const names = [page.title, ...(page.tags ?? [])].map(squeezed);
  const within = names.filter((name) => name === typed || (name.length > 4 && typed.includes(name)));
  return Math.max(0, ...within.map((name) => name.length)) / typed.length;
};

// Titles and texts as they are typed: without tags and blanks.
const NAMED = { "&lt;": "<", "&gt;": ">", "&amp;": "&" };
const plain = (html) =>
  html
    .replace(/\u200b|<[^>]*>|\s+/g, "")
    .replace(/&(?:lt|gt|amp);/g, (found) => NAMED[found])
    .replaceAll("−", "-")
    .toLowerCase();
let texts = null;
const literal = (map) => (texts ??= [...map.values()].map((part) => [part.location, plain(part.title), plain(part.text)]));

// What the other forms of a word begin with; a number begins nothing.
const stemOf = (word) => (DIGITS.test(word) ? "" : word.replace(ENDING, ""));

// Section -> for each word, what its places in that section are worth.
const worthOf = (words, index, map) => {
  const worth = new Map();
  const put = (ref, place, much) => {
    if (!worth.has(ref)) worth.set(ref, words.map(() => 0));
    worth.get(ref)[place] = Math.max(worth.get(ref)[place], much);
  };
  const inTitle = (ref) => (map.get(ref).parent && !BANK.test(ref) ? SECTION : 1);
  words.forEach((word, place) => {
    if (CODE.test(word)) {
      for (const [ref, title, text] of literal(map)) {
        if (title.includes(word)) put(ref, place, 1.5 * inTitle(ref));
        else if (text.includes(word)) put(ref, place, 1);
      }
      return;
    }
    const same = Object.hasOwn(SAME, word) && SAME[word] in index.invertedIndex && SAME[word];
    const stem = stemOf(word);
    for (const { field, whole, begins } of FIELDS) {
      for (const [text, wildcard, weight] of [[word, WHOLE, whole], [stem, BEGINS, begins], [same, WHOLE, whole]]) {
        if (!text) continue;
        const hits = index.query((q) => q.term(text, { fields: [field], wildcard, usePipeline: false }));
        for (const { ref, score } of hits) {
          const share = field === "text" ? score / hits[0].score : field === "tags" && map.get(ref).parent ? 0 : inTitle(ref);
          if (share) put(ref, place, weight * share);
        }
      }
    }
  });
  return worth;
};

// The theme's search results for a query, the best page first, in each the best section,
// and the words that no page has. `search` is the theme's, `index` is lunr's, `map` leads
// from an address to its document.
export const ranked = (query, { search, index, map, separator }) => {
  const ours = inOurWords(query);
  // Names are whole in the index: as words they would swallow a query.
  const known = (word) => Object.keys(index.invertedIndex[word]?.text ?? {}).length > 0;
  const isText = (word) => literal(map).some(([, title, text]) => title.includes(word) || text.includes(word));
  const asked = wordsOf(ours, known, separator, isText);
  const pageOf = (ref) => map.get(ref).parent ?? map.get(ref);
  const held = (at, place) => [...at.values()].some((values) => values[place] > 0);
  const ofAll = worthOf(asked, index, map);
  const kept = asked.flatMap((_, place) => (held(ofAll, place) ? [place] : []));
  const words = kept.map((place) => asked[place]);
  const asTyped = (word, at = query.toLowerCase().indexOf(word)) => (at < 0 ? word : query.slice(at, at + word.length));
  const absent = asked.filter((word) => !words.includes(word)).map((word) => asTyped(word));
  if (!words.length) return { items: [], absent };
  const worth = new Map([...ofAll].map(([ref, at]) => [ref, kept.map((place) => at[place])]));
  const ofPages = new Map();
  for (const [ref, at] of worth) {
    const page = pageOf(ref);
    ofPages.set(page, at.map((much, place) => Math.max(much, ofPages.get(page)?.[place] ?? 0)));
  }
  const holding = words.map((_, place) => [...ofPages.values()].filter((at) => at[place] > 0).length);
  const rare = holding.map((pages) => Math.min(RAREST, 0.2 + Math.log(1 + map.size / 10 / (1 + pages))));
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  const typed = [query, ours].map(squeezed);
  const none = words.map(() => 0);
  const much = (at) => {
    const share = sum(rare.filter((_, place) => at[place] > 0)) / sum(rare);
    return (sum(at.map((value, place) => value * rare[place])) / sum(rare)) * share;
  };
  const ofSections = new Map();
  for (const [ref, at] of worth) {
    const page = pageOf(ref);
    ofSections.set(page, Math.max(ofSections.get(page) ?? 0, much(at)));
  }
  const score = (page) => {
    const all = much(ofPages.get(page) ?? none);
    const within = all + TOGETHER * ((ofSections.get(page) ?? 0) - all);
    const name = Math.max(...typed.map((text) => named(page, text)));
    const kind = KIND[page.location] ?? KIND[page.location.split("/")[0]] ?? 1;
    return { holds: kind * (within + NAME * Math.min(name, 0.5)), all: kind * (within + NAME * name + (name === 1 ? EXACT : 0)) };
  };
  // To the theme's search a word with a weight is whole, others begin words; it reads
  // signs of code as signs of its own.
  const looked = words.flatMap((word) => {
    if (!CODE.test(word) && !DIGITS.test(word)) return [stemOf(word)];
    return word.split(/[^\p{L}\p{N}_]+/u).filter(Boolean).map((part) => `${part}^1`);
  });
  const found = search(looked.join(" "));
  const within = ({ location }) => much(worth.get(location) ?? none) * (REPEATS.test(location) ? 0.2 : 1);
  const items = found.items.map((item) => {
    const { holds, all } = score(pageOf(item[0].location));
    const [best, ...rest] = [...item].sort((a, b) => within(b) - within(a));
    // The theme opens what scores as much as the first, and folds the rest.
    const shown = [{ ...best, score: all }, ...rest.map((part) => ({ ...part, score: 0 }))];
    return { holds, all, shown };
  });
  items.sort((a, b) => b.all - a.all);
  const least = LEAST * Math.max(...items.map(({ holds }) => holds));
  const pages = items.filter(({ all, holds }, place) => all > 0 && (place < FEW || holds >= least));
  return { ...found, items: pages.map(({ shown }) => shown), absent };
};
