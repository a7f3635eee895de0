// A ramp whose lightness rises by equal steps to the eye (OKLab): from ink over plum and
// rust to cream for gradients, from ink over teal to cream for the rest.

const HUES = { warm: [300, 385, 445], cool: [265, 225, 150] }; // degrees at 0, 1/2 and 1
const CHROMA = 0.145;
const DARKEST = 0.17;
const LIGHTEST = 0.95;
const LEVELS = 256;

/** sRGB, 0 to 255, of a colour given as OKLCH with the hue in degrees. */
export function srgb(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((v) => {
    const kept = Math.min(1, Math.max(0, v));
    const curved = kept <= 0.0031308 ? 12.92 * kept : 1.055 * kept ** (1 / 2.4) - 0.055;
    return Math.round(255 * curved);
  });
}

/** [r, g, b] of a place between 0 and 1 on a ramp. */
export function colour(share, ramp = "warm") {
  const t = Math.min(1, Math.max(0, share));
  const [first, middle, last] = HUES[ramp];
  const hue = t < 0.5 ? first + (middle - first) * 2 * t : middle + (last - middle) * (2 * t - 1);
  const chroma = CHROMA * Math.sin(Math.PI * (0.08 + 0.84 * t)) ** 0.8;
  return srgb(DARKEST + (LIGHTEST - DARKEST) * t, chroma, hue);
}

/** All levels of a ramp, looked up for each cell of a map. */
export const ramp = (name) =>
  Array.from({ length: LEVELS }, (_, i) => colour(i / (LEVELS - 1), name));

// What a map shows: its scale from the paper's end, and the marks that stand at it.
// What fades is dead: no gradient, or tokens that are one vector.
export const MAPS = {
  gradient: { ramp: "warm", from: -7, to: -2, marks: [-7, -6, -5, -4, -3, -2], log: true },
  cosine: { ramp: "cool", from: 1, to: 0, marks: [1, 0.75, 0.5, 0.25, 0] },
  size: { ramp: "cool", from: -1, to: 2, marks: [-1, 0, 1, 2], log: true },
};

/** Which level of its ramp a value has on a map; null for what is no number. */
export function level(value, map) {
  const { from, to, log } = MAPS[map];
  if (!Number.isFinite(value)) return null;
  const at = log ? Math.log10(Math.max(value, 1e-30)) : value;
  const share = (at - from) / (to - from);
  return Math.round((LEVELS - 1) * Math.min(1, Math.max(0, share)));
}
