// The tape's operations, but for activations and attention: each reads tensors of rows and
// writes one.

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

/**
 * LayerNorm of each row, or RMSNorm without `centred`; a row may hold several vectors of
 * the gain's width. Squares overflow where those of float32 do.
 */
export function norm(tape, x, { gain, bias, eps, centred }) {
  const d = gain.width;
  const count = x.value.length / d;
  const y = tape.result(x.rows, x.width);
  const hat = tape.zeros(x.value.length);
  const scale = new Float64Array(count);
  for (let n = 0; n < count; n++) {
    const at = n * d;
    let mean = 0;
    if (centred) {
      for (let c = 0; c < d; c++) mean += x.value[at + c];
      mean /= d;
    }
    let squares = 0;
    for (let c = 0; c < d; c++) {
      const off = x.value[at + c] - mean;
      squares += off * off;
    }
    const r = 1 / Math.sqrt(Math.fround(squares) / d + eps);
    scale[n] = r;
    for (let c = 0; c < d; c++) {
      const to = (x.value[at + c] - mean) * r;
      hat[at + c] = to;
      y.value[at + c] = to * gain.value[c] + (bias ? bias.value[c] : 0);
    }
  }
  return tape.record(y, () => {
    const [dgain, dbias] = [new Float64Array(d), new Float64Array(d)];
    for (let n = 0; n < count; n++) {
      const at = n * d;
      let alike = 0;
      let along = 0;
      for (let c = 0; c < d; c++) {
        const dy = y.gradient[at + c];
        const dhat = dy * gain.value[c];
        alike += dhat;
        along += dhat * hat[at + c];
        dgain[c] += dy * hat[at + c];
        dbias[c] += dy;
      }
      alike = centred ? alike / d : 0;
      along /= d;
      for (let c = 0; c < d; c++) {
        const dhat = y.gradient[at + c] * gain.value[c];
        x.gradient[at + c] += scale[n] * (dhat - alike - hat[at + c] * along);
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
    y.value.set(x.value.subarray(from, from + width), r * width);
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
  const share = tape.zeros(rows * width);
  let loss = 0;
  targets.forEach((target, r) => {
    const at = r * width;
    let most = -Infinity;
    for (let c = 0; c < width; c++) most = Math.max(most, logits.value[at + c]);
    let total = 0;
    for (let c = 0; c < width; c++) total += Math.exp(logits.value[at + c] - most);
    for (let c = 0; c < width; c++) share[at + c] = Math.exp(logits.value[at + c] - most) / total;
    loss += Math.log(total) + most - logits.value[at + target];
  });
  return tape.record(loss / rows, () => {
    targets.forEach((target, r) => {
      for (let c = 0; c < width; c++) {
        logits.gradient[r * width + c] += (share[r * width + c] - (c === target ? 1 : 0)) / rows;
      }
    });
  });
}
