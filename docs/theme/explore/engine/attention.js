// Causal self-attention of several heads. Rows are tokens, `time` of them a sequence.

/** softmax(q k^T / sqrt(width)) v of each head; q, k and v are (rows, d). */
export function attention(tape, q, k, v, { heads, time }) {
  const d = q.width;
  const width = d / heads;
  const scale = 1 / Math.sqrt(width);
  const y = tape.result(q.rows, d);
  const weights = tape.zeros(q.rows * heads * time);
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
      for (let c = 0; c < width; c++) dot += q.value[query + c] * k.value[key + c];
      weights[at + j] = dot * scale;
      most = Math.max(most, weights[at + j]);
    }
    let total = 0;
    for (let j = 0; j <= position; j++) total += weights[at + j] = Math.exp(weights[at + j] - most);
    for (let j = 0; j <= position; j++) weights[at + j] /= total;
    for (let c = 0; c < width; c++) {
      let mixed = 0;
      for (let j = 0; j <= position; j++) mixed += weights[at + j] * v.value[first + j * d + c];
      y.value[query + c] = mixed;
    }
  });
  return tape.record(y, () => {
    const slopes = new Float64Array(time);
    eachQuery((query, first, position, at) => {
      let mean = 0;
      for (let j = 0, key = first; j <= position; j++, key += d) {
        let dot = 0;
        for (let c = 0; c < width; c++) {
          const dy = y.gradient[query + c];
          dot += dy * v.value[key + c];
          v.gradient[key + c] += weights[at + j] * dy;
        }
        slopes[j] = dot;
        mean += dot * weights[at + j];
      }
      for (let j = 0, key = first; j <= position; j++, key += d) {
        const slope = weights[at + j] * (slopes[j] - mean) * scale;
        for (let c = 0; c < width; c++) {
          q.gradient[query + c] += slope * k.value[key + c];
          k.gradient[key + c] += slope * q.value[query + c];
        }
      }
    });
  });
}
