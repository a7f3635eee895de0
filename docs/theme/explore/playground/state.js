// What a reader has set, and the address that holds it. A value that is not among those
// offered is as it was at first.

export const PLACES = ["pre", "post", "sandwich", "branch_output", "deepnorm", "normformer", "rezero", "none"];
export const NORMS_OFFERED = ["layer", "rms", "batch"];
export const LAYERS = [2, 6, 12];
export const RATES = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];
export const WARMUPS = [0, 0.1, 0.5];
export const SEEDS = [1, 5];
export const TASK_NAMES = ["largest"];
export const MAP_NAMES = ["gradient", "cosine", "size"];
export const MOST_LANES = 4;
const MOST_STEPS = 2000;
const MOST_SEED = 9999;

export const OPENING = {
  lanes: [
    { place: "pre", norm: "layer" },
    { place: "post", norm: "layer" },
  ],
  layers: 6,
  rate: 0.01,
  warmup: 0,
  task: "largest",
  seeds: 1,
  seed: 0,
  steps: 600,
  map: "gradient",
  challenge: "",
};

/** Whether a placement has a norm to choose. */
export const normed = (place) => place !== "none" && place !== "rezero";

const laneText = ({ place, norm }) => (norm === "layer" || !normed(place) ? place : `${place}.${norm}`);

function laneOf(text) {
  const [place, norm = "layer"] = text.split(".");
  if (!PLACES.includes(place) || !NORMS_OFFERED.includes(norm)) return null;
  return { place, norm: normed(place) ? norm : "layer" };
}

const among = (offered) => (text) => offered.find((value) => String(value) === text);
const whole = (least, most) => (text) => {
  const value = Number(text);
  return /^\d+$/.test(text) && value >= least && value <= most ? value : undefined;
};

const READ = {
  lanes: (text) => {
    const lanes = text.split(",").map(laneOf);
    return lanes.length <= MOST_LANES && lanes.every(Boolean) ? lanes : undefined;
  },
  layers: among(LAYERS),
  rate: among(RATES),
  warmup: among(WARMUPS),
  task: among(TASK_NAMES),
  seeds: among(SEEDS),
  seed: whole(0, MOST_SEED),
  steps: whole(10, MOST_STEPS),
  map: among(MAP_NAMES),
  challenge: (text) => (/^[a-z]+$/.test(text) ? text : undefined),
};

/** The state that an address holds behind its question mark; `base` is the rest of it. */
export function stateOf(search, base = OPENING) {
  const pairs = search.replace(/^\?/, "").split("&");
  const held = new Map(pairs.map((pair) => [pair.split("=")[0], pair.slice(pair.indexOf("=") + 1).replaceAll("%2C", ",")]));
  const found = Object.entries(READ).map(([key, read]) => {
    const value = held.has(key) ? read(held.get(key)) : undefined;
    return [key, value ?? base[key]];
  });
  return Object.fromEntries(found);
}

const written = (key, value) => (key === "lanes" ? value.map(laneText).join(",") : String(value));

/** What of a state differs from its base, as what stands behind a question mark. */
export function searchOf(state, base = OPENING) {
  const named = (key) => key === "challenge" && state[key];
  return Object.keys(READ)
    .filter((key) => named(key) || written(key, state[key]) !== written(key, base[key]))
    .map((key) => `${key}=${written(key, state[key])}`)
    .join("&");
}

/** What the engine is asked for: one run of one lane. */
export function optionsOf(state, lane, run) {
  const { layers, rate, warmup, task, steps } = state;
  const { place, norm } = state.lanes[lane];
  return { placement: place, norm, layers, rate, warmup, task, steps, seed: state.seed + run };
}
