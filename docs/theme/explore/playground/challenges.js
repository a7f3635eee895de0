// Challenges. Each opens with a state and is decided by what the lanes of a complete run
// have shown: `lanes` as reading.js tells them, in the order of `state.lanes`.

import { Random } from "../engine/random.js";
import { OPENING, normed } from "./state.js";

const lanesOf = (...places) => places.map((place) => ({ place, norm: "layer" }));
const some = (state, lanes, wanted) => state.lanes.some((lane, i) => wanted(lane, lanes[i]));

export const CHALLENGES = {
  // Post-Norm, six layers: a lower rate.
  rescue: {
    opening: { lanes: lanesOf("post") },
    solved: (state, lanes) =>
      state.layers >= 6 && some(state, lanes, ({ place }, { learned }) => place === "post" && learned),
  },
  // The rate stays, and the norm stays behind the sum: DeepNorm's alpha and smaller start.
  steady: {
    opening: { lanes: lanesOf("post"), warmup: 0.5 },
    solved: (state, lanes) =>
      state.layers >= 6 &&
      state.rate >= 0.01 &&
      some(state, lanes, ({ place }, { learned }) => ["post", "deepnorm"].includes(place) && learned),
  },
  // Pre-Norm bears thirty times the rate.
  kill: {
    opening: { lanes: lanesOf("pre"), rate: 0.03 },
    solved: (state, lanes) => some(state, lanes, ({ place }, { learned }) => place === "pre" && !learned),
  },
  // A model without any norm ends below Pre-Norm, side by side.
  bare: {
    opening: { lanes: lanesOf("pre", "none") },
    solved: (state, lanes) => {
      const ends = (wanted) => lanes.filter((_, i) => wanted(state.lanes[i].place)).map(({ end }) => end);
      const pre = ends((place) => place === "pre");
      const free = ends((place) => !normed(place));
      return pre.length > 0 && free.length > 0 && Math.min(...free) < Math.min(...pre);
    },
  },
  // Four maps without names: which is Post-Norm? Decided by the choice of a lane.
  blind: {
    opening: { lanes: lanesOf("deepnorm", "rezero", "post", "pre") },
    hidden: true,
    solved: (state, lanes, chosen) => state.lanes[chosen]?.place === "post",
  },
};

/** The lanes in an order that follows from a seed. */
function shuffled(lanes, seed) {
  const draw = new Random(seed);
  const keyed = lanes.map((lane) => [draw.uniform(), lane]);
  return keyed.sort(([a], [b]) => a - b).map(([, lane]) => lane);
}

/** The state that a challenge opens with. */
export function opened(id, seed = 0) {
  const { opening, hidden } = CHALLENGES[id];
  const lanes = hidden ? shuffled(opening.lanes, seed) : opening.lanes;
  return { ...OPENING, ...opening, lanes, seed, challenge: id };
}

/** What a state is told from in an address: its challenge's opening, or the first of all. */
export const baseOf = ({ challenge, seed }) => (CHALLENGES[challenge] ? { ...opened(challenge, seed), seed: 0 } : OPENING);

/** Whether a run decides a challenge; a run that was stopped decides none. */
export function decided(id, state, lanes, chosen = null) {
  const challenge = CHALLENGES[id];
  if (!challenge || lanes.length !== state.lanes.length) return false;
  return lanes.every(({ complete }) => complete) && challenge.solved(state, lanes, chosen);
}
