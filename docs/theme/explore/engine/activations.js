// Activations; a slope is computed with its value.

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
export function gelu(tape, x) {
  const y = tape.result(x.rows, x.width);
  const slope = tape.zeros(x.value.length);
  for (let i = 0; i < slope.length; i++) {
    const v = x.value[i];
    const density = Math.exp((-v * v) / 2);
    const outside = (density * tail(Math.abs(v) * Math.SQRT1_2)) / 2;
    const below = v < 0 ? outside : 1 - outside;
    y.value[i] = v * below;
    slope[i] = below + (v * density) / Math.sqrt(2 * Math.PI);
  }
  return tape.record(y, () => {
    for (let i = 0; i < slope.length; i++) x.gradient[i] += y.gradient[i] * slope[i];
  });
}

export const ACTIVATIONS = { gelu };
