// Causal self-attention of several heads. Rows are tokens, `time` of them a sequence.

import { exp, log, turned } from "./elementary.js";

/** Rotary positions: feature i of a head is turned with i + width / 2, as qk_norm/rope.py. */
export function rotary(tape, x, { heads, time }) {
  const y = tape.result(x.rows, x.width);
  y.value.fill(0); // turn adds
  const width = x.width / heads;
  const half = width / 2;
  const angles = Array.from({ length: time * half }, (_, i) =>
    turned(Math.floor(i / half) * exp((-2 * (i % half) * log(10000)) / width)),
  );
  // The gradient turns the other way.
  const turn = (from, to, way) => {
    for (let first = 0; first < from.length; first += width) {
      const position = Math.floor(first / x.width) % time;
      for (let i = first; i < first + half; i++) {
        const [cosine, sine] = angles[position * half + i - first];
        to[i] += from[i] * cosine - way * from[i + half] * sine;
        to[i + half] += from[i + half] * cosine + way * from[i] * sine;
      }
    }
  };
  turn(x.value, y.value, 1);
  return tape.record(y, () => turn(y.gradient, x.gradient, -1));
}

/**
 * softmax(q k^T / sqrt(width)) v of each head; q, k and v are (rows, d). With a `cap`
 * logits z are cap tanh(z / cap).
 */
export function attention(tape, q, k, v, { heads, time, cap }) {
  const d = q.width;
  const width = d / heads;
  const scale = 1 / Math.sqrt(width);
  const y = tape.result(q.rows, d);
  const [queries, keys, values, mixed] = [q, k, v, y].map(({ value }) => value);
  const weights = tape.room(q.rows * heads * time);
  const slopes = cap ? tape.room(weights.length) : null; // of the soft cap
  // Each query: where its features start, those of its sequence's first token, its
  // position and where its weights start.
  const eachQuery = (visit) => {
    for (let row = 0, at = 0; row < q.rows; row++) {
      const position = row % time;
      for (let h = 0; h < heads; h++, at += time) {
        visit(row * d + h * width, (row - position) * d + h * width, position, at);
      }
    }
  };
  eachQuery((query, first, position, at) => {
    let most = -Infinity;
    for (let j = 0, key = first; j <= position; j++, key += d) {
      let dot = 0;
      for (let c = 0; c < width; c++) dot += queries[query + c] * keys[key + c];
      weights[at + j] = dot * scale;
      if (cap) {
        const outside = exp((-2 * Math.abs(dot * scale)) / cap);
        weights[at + j] = (Math.sign(dot) * cap * (1 - outside)) / (1 + outside);
        slopes[at + j] = (4 * outside) / (1 + outside) / (1 + outside);
      }
      most = Math.max(most, weights[at + j]);
    }
    let total = 0;
    for (let j = 0; j <= position; j++) total += weights[at + j] = exp(weights[at + j] - most);
    for (let j = 0; j <= position; j++) weights[at + j] /= total;
    for (let c = 0; c < width; c++) {
      let total = 0;
      for (let j = 0; j <= position; j++) total += weights[at + j] * values[first + j * d + c];
      mixed[query + c] = total;
    }
  });
  return tape.record(y, () => {
    const [dq, dk, dv, dy] = [q, k, v, y].map(({ gradient }) => gradient);
    const ahead = new Float64Array(time); // gradients of the weights
    eachQuery((query, first, position, at) => {
      let mean = 0;
      for (let j = 0, key = first; j <= position; j++, key += d) {
        const weight = weights[at + j];
        let dot = 0;
        for (let c = 0; c < width; c++) {
          const coming = dy[query + c];
          dot += coming * values[key + c];
          dv[key + c] += weight * coming;
        }
        ahead[j] = dot;
        mean += dot * weight;
      }
      for (let j = 0, key = first; j <= position; j++, key += d) {
        let slope = weights[at + j] * (ahead[j] - mean) * scale;
        if (cap) slope *= slopes[at + j];
        for (let c = 0; c < width; c++) {
          dq[query + c] += slope * keys[key + c];
          dk[key + c] += slope * queries[query + c];
        }
      }
    });
  });
}
