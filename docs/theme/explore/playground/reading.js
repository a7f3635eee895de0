// What a run shows, told from its rows: what it learned, and from which step on layers
// get no gradient or tokens are one vector. Rows are those of the engine.

export const LEARNED = 0.5; // of the loss of a model without layers
const DEAD = 0.01; // of the gradient behind the last layer
const ONE_VECTOR = 0.99; // cosine of the tokens behind the last layer
const FAINT = 1e-6; // RMS of a gradient, near the end of the map that fades
const FLAT = 1.05; // a loss before over the loss after that is no fall
const WINDOW = 15; // steps, of which most have to agree
export const LASTING = 30; // steps that a break has to last

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

const middle = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

/** Where most of the flags around each are set, in windows that are smaller at both ends. */
function mostly(flags) {
  const sums = [0];
  flags.forEach((flag, i) => sums.push(sums[i] + Number(flag)));
  return flags.map((_, i) => {
    const half = Math.min(WINDOW >> 1, i, flags.length - 1 - i);
    return sums[i + half + 1] - sums[i - half] > half;
  });
}

/** The longest stretch of a list in which all are true: [from, behind], or null. */
export function longest(flags) {
  let best = null;
  let from = -1;
  flags.forEach((flag, i) => {
    if (flag && from < 0) from = i;
    const ends = from >= 0 && (!flag || i === flags.length - 1);
    if (!ends) return;
    const to = flag ? i + 1 : i;
    if (!best || to - from > best[1] - best[0]) best = [from, to];
    from = -1;
  });
  return best && best[1] - best[0] >= LASTING ? best : null;
}

const during = (rows, flags, typical) => {
  const found = longest(flags);
  if (!found) return null;
  const [from, behind] = found;
  const seen = typical(from, behind);
  const to = behind === rows.length ? null : rows[behind - 1].step;
  const before = flags.slice(0, from).filter(Boolean).length >= WINDOW; // it came and went
  return seen && { from: rows[from].step, to, before, ...seen };
};

/** From which step on which layers get less than DEAD of the last layer's gradient. */
export function dead(rows) {
  const layers = (rows[0]?.gradient.length ?? 1) - 1;
  const shares = Array.from({ length: layers }, (_, layer) =>
    rows.map(({ gradient }) => gradient[layer] / gradient[layers]),
  );
  const starved = shares.map((share) => mostly(share.map((v) => v < DEAD)));
  const any = rows.map((_, i) => starved.some((flags) => flags[i]));
  return during(rows, any, (from, behind) => {
    const typical = shares.map((share) => middle(share.slice(from, behind)));
    const below = typical.flatMap((share, layer) => (share < DEAD ? [layer] : []));
    const share = Math.min(...typical);
    return below.length ? { layers: below, share, layer: typical.indexOf(share) } : null;
  });
}

/** From which step on the tokens of a sequence are one vector behind the last layer. */
export function alike(rows) {
  const last = rows.map(({ cosine }) => cosine.at(-1));
  const flags = mostly(last.map((cosine) => cosine > ONE_VECTOR));
  return during(rows, flags, (from, behind) => ({ cosine: middle(last.slice(from, behind)) }));
}

/** From which step on every layer gets next to nothing: beside the last none is starved. */
export function faint(rows) {
  const flags = mostly(rows.map(({ gradient }) => gradient.every((size, layer) => !layer || size < FAINT)));
  return during(rows, flags, (from, behind) => ({ size: middle(rows.slice(from, behind).map(({ size }) => size.at(-1))) }));
}

/** What breaks in a run; null what does not. */
export const breaksOf = (rows) => ({ dead: dead(rows), alike: alike(rows), faint: faint(rows) });

/** Whether the loss had stopped falling before the first of the breaks. */
export function flat(rows, breaks) {
  const first = Math.min(...breaks.flatMap((each) => (each ? [each.from] : [])));
  if (first < LASTING || first === Infinity) return false;
  const losses = rows.map(({ loss }) => loss);
  return mean(losses.slice(first - LASTING, first)) < FLAT * mean(losses.slice(first));
}

/** The first step whose loss is no number. */
export const lost = (rows) => rows.find(({ loss }) => !Number.isFinite(loss))?.step ?? null;

/**
 * All that is told of a run; `held` is its loss on held-out sequences, null while it has
 * not ended, `bare` that of a model without layers. Breaks are looked for where `breaks`.
 */
export function told(rows, held, bare, breaks = true) {
  const finite = lost(rows) === null;
  const end = finite && Number.isFinite(held) ? held : null;
  const learned = end !== null && end < LEARNED * bare;
  const found = finite && breaks ? breaksOf(rows) : { dead: null, alike: null, faint: null };
  return {
    complete: held !== null,
    lost: lost(rows),
    end,
    learned,
    better: end !== null && end < bare,
    ...found,
    flat: !learned && flat(rows, Object.values(found)),
  };
}

/** A lane of several runs: the end is their median, and more than half decide. */
export function together(runs) {
  const ends = runs.map(({ end }) => end ?? Infinity);
  const most = (what) => runs.filter(what).length * 2 > runs.length;
  return {
    end: middle(ends),
    ends,
    runs: runs.length,
    learners: runs.filter(({ learned }) => learned).length,
    learned: most(({ learned }) => learned),
    better: most(({ better }) => better),
    complete: runs.every(({ complete }) => complete),
    lost: runs[0].lost,
    dead: runs[0].dead,
    alike: runs[0].alike,
    faint: runs[0].faint,
    flat: runs[0].flat,
  };
}

// Bets, and whether the outcome bears them out.

/** The bets on so many lanes. */
export const betsOn = (count) =>
  count === 1
    ? ["learns", "fails"]
    : count === 2
      ? ["first", "second", "both", "neither"]
      : Array.from({ length: count + 1 }, (_, i) => `count${i}`);

/** The bet that is right for lanes that learned or did not. */
export function rightBet(learned) {
  const count = learned.filter(Boolean).length;
  if (learned.length === 1) return count ? "learns" : "fails";
  if (learned.length > 2) return `count${count}`;
  if (count === 1) return learned[0] ? "first" : "second";
  return count ? "both" : "neither";
}
