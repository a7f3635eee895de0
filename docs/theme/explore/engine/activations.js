// Activations; a slope is computed with its value.

import { exp } from "./elementary.js";

/**
 * (1 - erf(z)) exp(z^2) for z >= 0, within 2e-8 of itself: a polynomial in 1 / (1 + z / 2)
 * fitted to it, so that GELU and its slope need one exponential together.
 */
function tail(z) {
  const t = 1 / (1 + 0.5 * z);
  let found = 0.0432425984;
  found = found * t - 0.2349736554;
  found = found * t + 0.4942168525;
  found = found * t - 0.4556065985;
  found = found * t + 0.1326450364;
  found = found * t - 0.05942880509;
  found = found * t + 0.09352536356;
  found = found * t + 0.1753051101;
  found = found * t + 0.2468855968;
  found = found * t + 0.2820937102;
  found = found * t + 0.2820947957;
  return t * found;
}

/** x times the normal distribution function of x, as nn.GELU() without an approximation. */
function gelu(x, y, slope) {
  for (let i = 0; i < x.length; i++) {
    const v = x[i];
    const density = exp((-v * v) / 2);
    const outside = (density * tail(Math.abs(v) * Math.SQRT1_2)) / 2;
    const below = v < 0 ? outside : 1 - outside;
    y[i] = v * below;
    slope[i] = below + (v * density) / Math.sqrt(2 * Math.PI);
  }
}

/** x times its logistic function. */
function silu(x, y, slope) {
  for (let i = 0; i < x.length; i++) {
    const below = 1 / (1 + exp(-x[i]));
    y[i] = x[i] * below;
    slope[i] = below * (1 + x[i] * (1 - below));
  }
}

const ACTIVATIONS = { gelu, silu };

export function activated(tape, x, name) {
  const y = tape.result(x.rows, x.width);
  const slope = tape.room(x.value.length);
  ACTIVATIONS[name](x.value, y.value, slope);
  return tape.record(y, () => {
    for (let i = 0; i < slope.length; i++) x.gradient[i] += y.gradient[i] * slope[i];
  });
}
