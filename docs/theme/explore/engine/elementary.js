// exp, log, sine and cosine from additions, products and roots, which IEEE 754 fixes to the
// last bit. The language leaves those of Math to each browser; with these a run is the same
// in all of them.

const PARTS = 32; // of an octave
const LEAST = -1074; // exponent of the smallest number above zero

// Two to the power of i / PARTS, and every power of two.
const roots = new Float64Array(PARTS).fill(1);
const powers = new Float64Array(2098).fill(1);
for (let part = Math.SQRT2, each = PARTS / 2; each >= 1; part = Math.sqrt(part), each /= 2) {
  for (let i = 0; i < PARTS; i++) if (i & each) roots[i] *= part;
}
for (let i = 1 - LEAST; i < powers.length; i++) powers[i] = 2 * powers[i - 1];
for (let i = -LEAST - 1; i >= 0; i--) powers[i] = powers[i + 1] / 2;

/** Within 1e-13 of itself, where the result is no subnormal number. */
export function exp(x) {
  if (x > 709) return 1 / 0; // by its name, V8 would keep every result on the heap
  if (x < LEAST * Math.LN2) return 0; // below the smallest number
  const n = (x * (PARTS / Math.LN2)) | 0;
  const r = x - n * (Math.LN2 / PARTS);
  const series = 1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r / 720)))));
  return series * roots[n & (PARTS - 1)] * powers[(n >> 5) - LEAST];
}

/** The powers of two in x, and 2 artanh((x - 1) / (x + 1)) of the rest. */
export function log(x) {
  if (!(x > 0 && x < Infinity)) return Math.log(x); // -Infinity, Infinity or NaN
  let octaves = 0;
  for (; x < Math.SQRT1_2; octaves--) x *= 2;
  for (; x > Math.SQRT2; octaves++) x /= 2;
  const t = (x - 1) / (x + 1);
  let series = 0;
  for (let n = 21; n > 0; n -= 2) series = series * t * t + 1 / n;
  return 2 * t * series + octaves * Math.LN2;
}

/** [cosine, sine] of an angle of a few turns. */
export function turned(angle) {
  const quarter = Math.floor(angle / (Math.PI / 2) + 0.5);
  const r = angle - quarter * (Math.PI / 2);
  let [cosine, sine] = [1, 1];
  for (let n = 18; n > 0; n -= 2) {
    cosine = 1 - (r * r * cosine) / (n * (n - 1));
    sine = 1 - (r * r * sine) / (n * (n + 1));
  }
  sine *= r;
  if (quarter & 1) [cosine, sine] = [-sine, cosine];
  return quarter & 2 ? [-cosine, -sine] : [cosine, sine];
}
