// RMSNorm of one row, step by step, each result rounded to the type it is kept in: the
// snippets low_precision/naive.py and low_precision/cast_order.py. A step is computed in
// float32, as torch does it for its half types.

import { FORMATS, round } from "./formats.js";

// Steps that are kept in float32. T5 is like Llama for a gain of the row's type; Gemma's
// 1 + offset is the gain here.
export const ORDERS = {
  naive: [],
  llama: ["square", "mean", "root"],
  gemma: ["square", "mean", "root", "normed"],
};

/** Each step for x and gain (d,), which are rounded to the format first. */
export function rmsNorm(x, gain, { eps, order, format }) {
  const kept = (step, value) =>
    round(Math.fround(value), ORDERS[order].includes(step) ? FORMATS.float32 : format);
  const row = x.map((v) => round(Math.fround(v), format));
  const gains = gain.map((g) => round(Math.fround(g), format));
  const square = row.map((v) => kept("square", v * v));
  const mean = kept("mean", square.reduce((sum, v) => sum + v, 0) / row.length);
  const shifted = kept("mean", mean + kept("mean", eps));
  const root = kept("root", Math.sqrt(shifted));
  // Without an upcast the row is divided; else it is multiplied by 1 / root.
  const normed = row.map((v) =>
    kept("normed", order === "naive" ? v / root : v * Math.fround(1 / root)),
  );
  const y = normed.map((v, i) => kept("y", v * gains[i]));
  return { row, square, mean, shifted, root, normed, y };
}
