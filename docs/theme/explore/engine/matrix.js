// The one matrix product. A matrix is (data, row, step): entry (r, i) is data[r row + i step],
// so that a transpose is a matrix too.

export const matrix = (data, row, step = 1) => ({ data, row, step });
export const transposed = ({ data, row, step }) => ({ data, row: step, step: row });

const room = [new Float64Array(0), new Float64Array(0)]; // of the two factors
const tile = new Float64Array(16);

/** A matrix in float64, four lines side by side. What stands beside the last is left over. */
function packed(place, { data, row, step }, lines, inner) {
  const size = 4 * Math.ceil(lines / 4) * inner;
  if (room[place].length < size) room[place] = new Float64Array(size);
  const to = room[place];
  for (let line = 0; line < lines; line++) {
    let from = line * row;
    let at = (line - (line % 4)) * inner + (line % 4);
    for (let k = 0; k < inner; k++, at += 4, from += step) to[at] = data[from];
  }
  return to;
}

/**
 * out (rows, columns) += a b^T, with a (rows, inner) and b (columns, inner).
 *
 * Four rows by four columns at a time, whose sums stay in registers; those beyond the last
 * row and column are dropped.
 */
export function addProduct(out, a, b, [rows, columns, inner]) {
  const x = packed(0, a, rows, inner);
  const y = packed(1, b, columns, inner);
  for (let c = 0; c < columns; c += 4) {
    for (let r = 0; r < rows; r += 4) {
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
      let u0 = 0, u1 = 0, u2 = 0, u3 = 0, v0 = 0, v1 = 0, v2 = 0, v3 = 0;
      let i = r * inner;
      let j = c * inner;
      for (const end = i + 4 * inner; i < end; i += 4, j += 4) {
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
        const u = x[i + 2];
        u0 += u * p;
        u1 += u * q;
        u2 += u * m;
        u3 += u * n;
        const v = x[i + 3];
        v0 += v * p;
        v1 += v * q;
        v2 += v * m;
        v3 += v * n;
      }
      tile[0] = s0;
      tile[1] = s1;
      tile[2] = s2;
      tile[3] = s3;
      tile[4] = t0;
      tile[5] = t1;
      tile[6] = t2;
      tile[7] = t3;
      tile[8] = u0;
      tile[9] = u1;
      tile[10] = u2;
      tile[11] = u3;
      tile[12] = v0;
      tile[13] = v1;
      tile[14] = v2;
      tile[15] = v3;
      const [high, wide] = [Math.min(4, rows - r), Math.min(4, columns - c)];
      for (let e = 0; e < high; e++) {
        const at = (r + e) * columns + c;
        for (let f = 0; f < wide; f++) out[at + f] += tile[4 * e + f];
      }
    }
  }
}
