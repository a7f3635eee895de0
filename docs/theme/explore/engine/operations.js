// The tape's operations, but for activations and attention: each reads tensors of rows and
// writes one.

import { exp, log } from "./elementary.js";
import { addProduct, matrix, transposed } from "./matrix.js";

/** Rows of a table, one a token. */
export function lookup(tape, table, tokens) {
  const d = table.width;
  const y = tape.result(tokens.length, d);
  tokens.forEach((token, r) => y.value.set(table.value.subarray(token * d, token * d + d), r * d));
  return tape.record(y, () => {
    const total = new Float64Array(table.value.length);
    tokens.forEach((token, r) => {
      for (let c = 0; c < d; c++) total[token * d + c] += y.gradient[r * d + c];
    });
    addTo(table.gradient, total);
  });
}

const addTo = (sums, more) => {
  for (let i = 0; i < sums.length; i++) sums[i] += more[i];
};

/** x W^T + bias; the weight is (outputs, inputs). */
export function linear(tape, x, weight, bias) {
  const { rows: outputs, width: inputs } = weight;
  const y = tape.result(x.rows, outputs);
  if (bias) for (let r = 0; r < x.rows; r++) y.value.set(bias.value, r * outputs);
  else y.value.fill(0);
  const [seen, w] = [matrix(x.value, inputs), matrix(weight.value, inputs)];
  addProduct(y.value, seen, w, [x.rows, outputs, inputs]);
  return tape.record(y, () => {
    const dy = matrix(y.gradient, outputs);
    addProduct(x.gradient, dy, transposed(w), [x.rows, inputs, outputs]);
    addProduct(weight.gradient, transposed(dy), transposed(seen), [outputs, inputs, x.rows]);
    if (!bias) return;
    const total = new Float64Array(outputs);
    for (let i = 0, c = 0; i < y.gradient.length; i++) {
      total[c] += y.gradient[i];
      if (++c === outputs) c = 0;
    }
    addTo(bias.gradient, total);
  });
}

/** alpha x + factor z; the factor is a tensor of one number, or one. */
export function sum(tape, x, z, alpha = 1, factor = null) {
  const y = tape.result(x.rows, x.width);
  const by = factor ? factor.value[0] : 1;
  for (let i = 0; i < y.value.length; i++) {
    y.value[i] = Math.fround(alpha * x.value[i]) + Math.fround(by * z.value[i]);
  }
  return tape.record(y, () => {
    let along = 0;
    for (let i = 0; i < y.gradient.length; i++) {
      const d = y.gradient[i];
      x.gradient[i] += alpha * d;
      z.gradient[i] += by * d;
      along += d * z.value[i];
    }
    if (factor) factor.gradient[0] += along;
  });
}

/** x times a learned number for each of the equal parts of a row. */
export function scaled(tape, x, factors) {
  const y = tape.result(x.rows, x.width);
  const size = x.width / factors.width;
  const factor = (i) => Math.floor((i % x.width) / size);
  for (let i = 0; i < y.value.length; i++) y.value[i] = factors.value[factor(i)] * x.value[i];
  return tape.record(y, () => {
    const total = new Float64Array(factors.width);
    for (let i = 0; i < y.value.length; i++) {
      x.gradient[i] += factors.value[factor(i)] * y.gradient[i];
      total[factor(i)] += x.value[i] * y.gradient[i];
    }
    addTo(factors.gradient, total);
  });
}

/**
 * LayerNorm of each row, RMSNorm without `centred`; a row may hold several vectors of the
 * gain's width. `across` the rows, it is BatchNorm, by `fixed` statistics where given. The
 * result holds those of each line. Sums of squares overflow where those of float32 do.
 */
export function norm(tape, x, { gain, bias, eps, centred = true, across = false, fixed }) {
  const d = gain.width;
  const y = tape.result(x.rows, x.width);
  const hat = tape.room(x.value.length);
  // A line: numbers that share a statistic; number j of it is that of feature(line, j).
  const [lines, size] = across ? [d, x.rows] : [x.value.length / d, d];
  const step = across ? d : 1;
  const start = (line) => (across ? line : line * d);
  const feature = (line, j) => (across ? line : j);
  const { mean, variance } = fixed ?? {
    mean: new Float64Array(lines),
    variance: new Float64Array(lines),
  };
  const scale = new Float64Array(lines);
  for (let line = 0; line < lines; line++) {
    const first = start(line);
    if (!fixed) {
      let total = 0;
      if (centred) for (let j = 0; j < size; j++) total += x.value[first + j * step];
      const middle = total / size;
      let squares = 0;
      for (let j = 0; j < size; j++) {
        const off = x.value[first + j * step] - middle;
        squares += off * off;
      }
      mean[line] = middle;
      variance[line] = Math.fround(squares) / size;
    }
    const middle = mean[line];
    const r = 1 / Math.sqrt(variance[line] + eps);
    scale[line] = r;
    for (let j = 0; j < size; j++) {
      const i = first + j * step;
      const c = feature(line, j);
      const to = (x.value[i] - middle) * r;
      hat[i] = to;
      y.value[i] = to * gain.value[c] + (bias ? bias.value[c] : 0);
    }
  }
  y.statistics = { mean, variance, size: new Float64Array(lines).fill(size) };
  return tape.record(y, () => {
    const [dgain, dbias] = [new Float64Array(d), new Float64Array(d)];
    for (let line = 0; line < lines; line++) {
      const first = start(line);
      let alike = 0;
      let along = 0;
      for (let j = 0; j < size; j++) {
        const i = first + j * step;
        const c = feature(line, j);
        const dy = y.gradient[i];
        const dhat = dy * gain.value[c];
        alike += dhat;
        along += dhat * hat[i];
        dgain[c] += dy * hat[i];
        dbias[c] += dy;
      }
      alike = centred && !fixed ? alike / size : 0;
      along = fixed ? 0 : along / size;
      for (let j = 0; j < size; j++) {
        const i = first + j * step;
        const dhat = y.gradient[i] * gain.value[feature(line, j)];
        x.gradient[i] += scale[line] * (dhat - alike - hat[i] * along);
      }
    }
    addTo(gain.gradient, dgain);
    if (bias) addTo(bias.gradient, dbias);
  });
}

/** Part `n` of each row, of `parts` equal ones. */
export function part(tape, x, n, parts) {
  const width = x.width / parts;
  const y = tape.result(x.rows, width);
  for (let r = 0; r < x.rows; r++) {
    const from = r * x.width + n * width;
    for (let c = 0; c < width; c++) y.value[r * width + c] = x.value[from + c];
  }
  return tape.record(y, () => {
    for (let r = 0; r < x.rows; r++) {
      const from = r * x.width + n * width;
      for (let c = 0; c < width; c++) x.gradient[from + c] += y.gradient[r * width + c];
    }
  });
}

/** Mean cross-entropy of rows of logits, in nats. */
export function crossEntropy(tape, logits, targets) {
  const { rows, width } = logits;
  const share = tape.room(rows * width);
  let loss = 0;
  targets.forEach((target, r) => {
    const at = r * width;
    let most = -Infinity;
    for (let c = 0; c < width; c++) most = Math.max(most, logits.value[at + c]);
    let total = 0;
    for (let c = 0; c < width; c++) total += exp(logits.value[at + c] - most);
    for (let c = 0; c < width; c++) share[at + c] = exp(logits.value[at + c] - most) / total;
    loss += log(total) + most - logits.value[at + target];
  });
  return tape.record(loss / rows, () => {
    targets.forEach((target, r) => {
      for (let c = 0; c < width; c++) {
        logits.gradient[r * width + c] += (share[r * width + c] - (c === target ? 1 : 0)) / rows;
      }
    });
  });
}
