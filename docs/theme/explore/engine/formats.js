// Floating-point formats: bits of a number, number of the bits. Rounding to nearest,
// ties to even, with subnormals. What is too large becomes infinite; in e4m3fn, which
// has no infinity, the largest number, as torch 2.13 writes it.

export const FORMATS = {
  float32: { exponent: 8, fraction: 23 },
  bfloat16: { exponent: 8, fraction: 7 },
  float16: { exponent: 5, fraction: 10 },
  float8_e5m2: { exponent: 5, fraction: 2 },
  float8_e4m3fn: { exponent: 4, fraction: 3, finite: true },
};

// Codes without the sign: `over` is written for what is too large, above it stands NaN.
const layout = ({ exponent, fraction, finite }) => {
  const step = 2 ** fraction;
  const bias = 2 ** (exponent - 1) - 1;
  const top = (2 ** exponent - 1) * step;
  const over = finite ? top + step - 2 : top;
  const nan = finite ? over + 1 : top + step / 2;
  return { step, bias, over, nan, sign: 2 ** (exponent + fraction) };
};

const double = new DataView(new ArrayBuffer(8));

/** The exponent e of 2^e <= a < 2^(e+1) for a normal float64. */
const exponentOf = (a) => {
  double.setFloat64(0, a);
  return (double.getUint16(0) >> 4) - 1023;
};

const nearestEven = (q) => {
  const low = Math.floor(q);
  const over = q - low;
  return over > 0.5 || (over === 0.5 && low % 2 === 1) ? low + 1 : low;
};

/** The bits of x, a float64, in a format, as a whole number. */
export function encode(x, format) {
  const { step, bias, over, nan, sign } = layout(format);
  const a = Math.abs(x);
  const minus = x < 0 || Object.is(x, -0) ? sign : 0;
  if (Number.isNaN(a)) return nan;
  if (a === Infinity) return minus + over;
  const e = Math.max(exponentOf(a), 1 - bias);
  // A fraction that rounds up to 2 carries into the exponent by itself.
  const code = (e + bias - 1) * step + nearestEven(a * 2 ** -e * step);
  return minus + Math.min(code, over);
}

/** The number that bits stand for. */
export function decode(bits, format) {
  const { step, bias, over, sign } = layout(format);
  const code = bits % sign;
  const minus = bits >= sign ? -1 : 1;
  if (code > over) return NaN;
  if (code === over && !format.finite) return minus * Infinity;
  const field = Math.floor(code / step);
  const significand = field ? step + (code % step) : code;
  return (minus * significand * 2 ** (Math.max(field, 1) - bias)) / step;
}

/** The number of the format nearest to x. */
export const round = (x, format) => decode(encode(x, format), format);

/** Largest number, smallest normal one, smallest above zero, step above one. */
export function limits(format) {
  const { step, over } = layout(format);
  return {
    largest: decode(format.finite ? over : over - 1, format),
    normal: decode(step, format),
    smallest: decode(1, format),
    step: 1 / step,
  };
}

/** The bits as text, in three fields: sign, exponent, fraction. */
export function fields(bits, { exponent, fraction }) {
  const text = bits.toString(2).padStart(1 + exponent + fraction, "0");
  return [text[0], text.slice(1, 1 + exponent), text.slice(1 + exponent)];
}
