// The one matrix product. A matrix is (data, row, step): entry (r, i) is data[r row + i step],
// so that a transpose is a matrix too.

export const matrix = (data, row, step = 1) => ({ data, row, step });
export const transposed = ({ data, row, step }) => ({ data, row: step, step: row });

const room = [new Float64Array(0), new Float64Array(0)]; // of the two factors

/** A matrix in float64, `side` lines side by side. What stands beside the last is left over. */
function packed(place, { data, row, step }, lines, inner, side) {
  const size = side * Math.ceil(lines / side) * inner;
  if (room[place].length < size) room[place] = new Float64Array(size);
  const to = room[place];
  for (let line = 0; line < lines; line++) {
    let from = line * row;
    let at = (line - (line % side)) * inner + (line % side);
    for (let k = 0; k < inner; k++, at += side, from += step) to[at] = data[from];
  }
  return to;
}

/**
 * out (rows, columns) += a b^T, with a (rows, inner) and b (columns, inner).
 *
 * Two rows by four columns at a time, whose sums stay in registers; those beyond the last
 * row and column are dropped.
 */
export function addProduct(out, a, b, [rows, columns, inner]) {
  const x = packed(0, a, rows, inner, 2);
  const y = packed(1, b, columns, inner, 4);
  for (let c = 0; c < columns; c += 4) {
    for (let r = 0; r < rows; r += 2) {
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
      let i = r * inner;
      let j = c * inner;
      for (const end = i + 2 * inner; i < end; i += 2, j += 4) {
        const p = y[j];
        const q = y[j + 1];
        const m = y[j + 2];
        const n = y[j + 3];
        const s = x[i];
        s0 += s * p;
        s1 += s * q;
        s2 += s * m;
        s3 += s * n;
        const t = x[i + 1];
        t0 += t * p;
        t1 += t * q;
        t2 += t * m;
        t3 += t * n;
      }
      const at = r * columns + c;
      const wide = columns - c;
      out[at] += s0;
      if (wide > 1) out[at + 1] += s1;
      if (wide > 2) out[at + 2] += s2;
      if (wide > 3) out[at + 3] += s3;
      if (r + 1 === rows) break;
      const next = at + columns;
      out[next] += t0;
      if (wide > 1) out[next + 1] += t1;
      if (wide > 2) out[next + 2] += t2;
      if (wide > 3) out[next + 3] += t3;
    }
  }
}
