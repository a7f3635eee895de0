// Norms of a tensor (N, L, C): N sequences, L positions, C features, flat, features
// last. They differ in which cells share a statistic, and in whether they centre.
// Tensors are float32; sums are taken in float64 and rounded once. Squares and variances
// are float32, so that they overflow and vanish where torch's do.

const f32 = Math.fround;

// (n, l, c) -> the number of its statistic, and how many statistics there are.
const SHARED = {
  batch: ([, , C]) => [C, (n, l, c) => c],
  instance: ([N, , C]) => [N * C, (n, l, c) => n * C + c],
  group: ([N, , C], parts) => [N * parts, (n, l, c) => n * parts + Math.floor((c * parts) / C)],
  layer: ([N, L]) => [N * L, (n, l) => n * L + l],
  rms: ([N, L]) => [N * L, (n, l) => n * L + l],
};
export const NORMS = Object.keys(SHARED);

/** Which statistic each cell of (N, L, C) belongs to; `parts` groups of features. */
export function shared(norm, shape, parts = 2) {
  const [N, L, C] = shape;
  const [count, find] = SHARED[norm](shape, parts);
  const of = Int32Array.from({ length: N * L * C }, (_, i) =>
    find(Math.floor(i / (L * C)), Math.floor(i / C) % L, i % C),
  );
  return { count, of };
}

const summed = (cells, values, counted) => {
  const sums = new Float64Array(cells.count);
  cells.of.forEach((g, i) => {
    if (!counted || counted[i]) sums[g] += values(i);
  });
  return sums;
};

/** Mean, biased variance and size of each group, over the `counted` cells only. */
export function statistics(x, { cells, centred = true, counted }) {
  const size = summed(cells, () => 1, counted);
  const total = summed(cells, (i) => x[i], counted);
  const mean = total.map((sum, g) => (centred ? sum / size[g] : 0));
  const squares = summed(cells, (i) => f32((x[i] - mean[cells.of[i]]) ** 2), counted);
  return { mean, variance: squares.map((sum, g) => f32(sum / size[g])), size };
}

/**
 * y = gain (x - mean) / sqrt(variance + eps) + bias, with gain and bias (C,).
 * `fixed` gives statistics instead of the tensor's own, as BatchNorm's eval mode does.
 */
export function forward(x, { cells, gain, bias, eps, centred, counted, fixed }) {
  const { mean, variance, size } = fixed ?? statistics(x, { cells, centred, counted });
  const r = Float64Array.from(variance, (v) => 1 / Math.sqrt(f32(v + eps)));
  const hat = Float64Array.from(x, (v, i) => (v - mean[cells.of[i]]) * r[cells.of[i]]);
  const C = gain.length;
  const y = Float32Array.from(hat, (v, i) => v * gain[i % C] + (bias ? bias[i % C] : 0));
  return { y, hat, r, mean, variance, size };
}

/** Gradients of a loss for x, gain and bias from its gradient dy; `saved` by forward. */
export function backward(dy, { cells, gain, centred = true, counted, fixed }, saved) {
  const { hat, r, size } = saved;
  const C = gain.length;
  const dhat = (i) => dy[i] * gain[i % C];
  const alike = summed(cells, dhat);
  const along = summed(cells, (i) => dhat(i) * hat[i]);
  const dx = Float32Array.from(dy, (_, i) => {
    const g = cells.of[i];
    if (fixed || (counted && !counted[i])) return r[g] * dhat(i);
    return r[g] * (dhat(i) - ((centred ? alike[g] : 0) + along[g] * hat[i]) / size[g]);
  });
  const dgain = new Float64Array(C);
  const dbias = new Float64Array(C);
  dy.forEach((d, i) => {
    dgain[i % C] += d * hat[i];
    dbias[i % C] += d;
  });
  return { dx, dgain: Float32Array.from(dgain), dbias: Float32Array.from(dbias) };
}

/** BatchNorm's running statistics after one more batch; the variance unbiased. */
export function track(running, { mean, variance, size }, momentum = 0.1) {
  const move = (old, now) => f32((1 - momentum) * old + momentum * now);
  return {
    mean: running.mean.map((old, g) => move(old, mean[g])),
    variance: running.variance.map((old, g) => move(old, (variance[g] * size[g]) / (size[g] - 1))),
  };
}
