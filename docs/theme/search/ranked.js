// Which pages come first: read by the search worker and by the tests, no DOM.
//
// The theme's worker joins words with OR and counts a title a thousand times, so that
// "norm" in a title beats the page that answers. Here a page is worth what it holds of
// each word: in its names (`also`), its titles, its text. Rare words count more,
// words that every question has do not count, and a page that lacks words falls behind.

const STOP = new Set(
  ("a an and are as at be between by can do does for from how i if in is it me my of on or " +
    "should so than that the their there they this to use used using vs was we what when " +
    "where which while who why will with you your " +
    "为什么 什么 怎么 如何 哪些 哪个 哪种 吗 呢 了 的 地 得 和 与 或 在 是 有 不 会 要 用 把 被 对 从 " +
    "到 上 中 里 下 一下 一个 这个 那个 可以 需要 进行 写 写一下 使用 普遍 相比 相比于 于 各 分别 你 我 它 " +
    "时 而 非 而非").split(" "),
);
// One word, spelled otherwise.
const SPELLED = {
  normalisation: "normalization", normalised: "normalized", initialisation: "initialization",
  llms: "llm",
  千问: "qwen", 溢出: "上溢", 坍塌: "坍缩", 塌缩: "坍缩",
};
// The terms' other words, which the build fills in from terms.yml: the query is
// put in our words, so that a page need not print those of others.
const PREFERRED = {};
// Pages that explain come before those that ask, judge or list.
const KIND = {
  interview: 0.75, claims: 0.6, reference: 0.5, labs: 0.8, "reference/bibliography/": 0.3,
};
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

const HAN = /\p{sc=Han}/u;
const RUNS = /\p{sc=Han}+|[^\s\p{sc=Han}]+/gu;
const EDGES = /^[^\p{L}\p{N}√]+|[^\p{L}\p{N}√]+$/gu;

// The longest words of the index that a run of Chinese is made of.
const segment = (run, known) => {
  const words = [];
  for (let start = 0; start < run.length; ) {
    let end = run.length;
    while (end > start + 1 && !known(run.slice(start, end))) end -= 1;
    words.push(run.slice(start, end));
    start = end;
  }
  return words;
};

const inOurWords = (query) =>
  Object.entries(PREFERRED).reduce((text, [theirs, ours]) => text.replaceAll(theirs, ours), query);

// The words of a query that count; all of them when none would.
const wordsOf = (query, known, separator) => {
  const all = [];
  for (const [run] of query.toLowerCase().matchAll(RUNS)) {
    const words = HAN.test(run) ? segment(run, known) : [run];
    all.push(...words.flatMap((word) => (SPELLED[word] ?? word).split(separator)));
  }
  const clean = all.map((word) => word.replace(EDGES, "")).filter(Boolean);
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

// Page -> for each word, the most that one of its places is worth.
const worthOf = (words, index, pageOf) => {
  const worth = new Map();
  words.forEach((word, place) => {
    for (const { field, whole, begins } of FIELDS) {
      for (const [wildcard, weight] of [[WHOLE, whole], [BEGINS, begins]]) {
        const hits = index.query((q) => q.term(word, { fields: [field], wildcard, usePipeline: false }));
        for (const { ref, score } of hits) {
          const page = pageOf(ref);
          if (!worth.has(page)) worth.set(page, words.map(() => 0));
          const share = field === "text" ? score / hits[0].score : page.location === ref ? 1 : SECTION;
          worth.get(page)[place] = Math.max(worth.get(page)[place], weight * share);
        }
      }
    }
  });
  return worth;
};

// The theme's search results for a query, the best page first. `search` is the theme's,
// `index` is lunr's, `map` leads from an address to its document.
export const ranked = (query, { search, index, map, separator }) => {
  const ours = inOurWords(query);
  // Names are whole in the index: as words they would swallow a query.
  const known = (word) => Object.keys(index.invertedIndex[word]?.text ?? {}).length > 0;
  const words = wordsOf(ours, known, separator);
  if (!words.length) return search(query);
  const pageOf = (ref) => map.get(ref).parent ?? map.get(ref);
  const worth = worthOf(words, index, pageOf);
  const rare = words.map((_, place) => {
    const pages = [...worth.values()].filter((at) => at[place] > 0).length;
    return 0.2 + Math.log(1 + map.size / 10 / (1 + pages));
  });
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  const typed = [query, ours].map(squeezed);
  const score = (page) => {
    const at = worth.get(page) ?? words.map(() => 0);
    const held = sum(rare.filter((_, place) => at[place] > 0)) / sum(rare);
    const mean = sum(at.map((value, place) => value * rare[place])) / sum(rare);
    const name = Math.max(...typed.map((text) => named(page, text)));
    const kind = KIND[page.location] ?? KIND[page.location.split("/")[0]] ?? 1;
    return kind * (mean * held ** 2 + NAME * name + (name === 1 ? EXACT : 0));
  };
  const found = search(words.join(" "));
  const items = found.items.map((item) => [score(pageOf(item[0].location.split("#")[0])), item]);
  items.sort(([a], [b]) => b - a);
  return { ...found, items: items.map(([, item]) => item) };
};