// Three features as an arrow, seen from a little above the plane of zero sum, whose normal
// stands upright.

import { digits } from "./element.js";

const TILT = 0.42;
const UNIT = 26;
const SIN = Math.sin(TILT);
const COS = Math.cos(TILT);
const towards = ([a, b, c]) => (a + b - 2 * c) / Math.sqrt(6);
const projected = (v) => {
  const [a, b, c] = v;
  const up = (a + b + c) / Math.sqrt(3);
  return [(a - b) / Math.SQRT2, towards(v) * SIN - up * COS];
};

export const sum = (v) => v.reduce((a, b) => a + b, 0);
export const short = (v) => digits(Math.abs(v) < 1e-6 ? 0 : v, 3);
export const angle = (v) => (Number.isNaN(v) ? "–" : `${v.toFixed(0)}°`); // of no arrow: none

/** A row an arrow: its features, its length and what else is said of it. */
export function table(heads, arrows, words) {
  const rows = arrows.map(
    (each) =>
      `<tr class="${each.name}"><th scope="row">${words[each.name]}</th>` +
      `<td>${each.v.map(short).join(words.comma)}</td><td>${short(each.length)}</td>` +
      `${heads.map(([, said]) => `<td>${said(each)}</td>`).join("")}</tr>`,
  );
  const named = [words.vector, words.features, words.length, ...heads.map(([head]) => head)];
  return (
    `<table class="arrows"><thead><tr>${named.map((head) => `<th scope="col">${head}</th>`).join("")}</tr></thead>` +
    `<tbody>${rows.join("")}</tbody></table>`
  );
}

export const seen = (v) => projected(v).map((p) => (p * UNIT).toFixed(1));
export const dot = (v, w) => v.reduce((total, a, i) => total + a * w[i], 0);
export const length = (v) => Math.hypot(...v);
export const between = (v, w) => {
  const cosine = dot(v, w) / (length(v) * length(w));
  return (Math.acos(Math.min(1, Math.max(-1, cosine))) * 180) / Math.PI;
};

/** The arrow whose tip is drawn at a place: across and up move, towards us stays. */
export function placed(v, x, y) {
  const across = x / UNIT;
  const up = (towards(v) * SIN - y / UNIT) / COS;
  const depth = towards(v) / Math.sqrt(6);
  return [
    up / Math.sqrt(3) + across / Math.SQRT2 + depth,
    up / Math.sqrt(3) - across / Math.SQRT2 + depth,
    up / Math.sqrt(3) - 2 * depth,
  ];
}

/** The drawing, and its edges: every tip stays inside. */
export function drawing(tips, parts) {
  const zoom = Math.max(1, ...tips.map(seen).flatMap(([x, y]) => [Math.abs(x) / 72, -y / 64, y / 50]));
  const frame = [-80, -72, 160, 130].map((v) => (v * zoom).toFixed(0));
  const style = `--zoom:${zoom.toFixed(2)}`; // letters and the grip keep their size
  return `<svg viewBox="${frame.join(" ")}" style="${style}" aria-hidden="true">${parts.join("")}</svg>`;
}

const outline = (point, kind) => {
  const points = Array.from({ length: 48 }, (_, i) => point(Math.cos((i * Math.PI) / 24), Math.sin((i * Math.PI) / 24)));
  return `<polygon points="${points.map((p) => p.join(",")).join(" ")}" class="${kind}"/>`;
};

/** The sphere of length √3 times a gain: an ellipsoid, whose outline is an ellipse. */
export function sphere(gain) {
  const axes = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map((axis, i) => projected(axis).map((p) => p * gain[i]));
  const along = (i, k) => 3 * UNIT * UNIT * axes.reduce((total, axis) => total + axis[i] * axis[k], 0);
  const first = Math.sqrt(along(0, 0));
  const mixed = along(0, 1) / first;
  const rest = Math.sqrt(along(1, 1) - mixed * mixed);
  return outline((c, s) => [first * c, mixed * c + rest * s].map((p) => p.toFixed(1)), "sphere");
}

/** The circle of length √3 across a direction, times a gain. */
export function disc(across, gain, kind) {
  const [a, b, c] = across.map((v) => v / length(across));
  const one = Math.abs(a - b) + Math.abs(b - c) < 1e-6 ? [1, -1, 0] : [b - c, c - a, a - b];
  const size = Math.sqrt(3) / length(one);
  const two = [b * one[2] - c * one[1], c * one[0] - a * one[2], a * one[1] - b * one[0]];
  return outline((cos, sin) => seen(one.map((v, i) => size * gain[i] * (v * cos + two[i] * sin))), kind);
}

export const arrow = (from, to, kind) => {
  const [[x, y], [u, w]] = [seen(from), seen(to)];
  return `<line x1="${x}" y1="${y}" x2="${u}" y2="${w}" class="${kind}"/>`;
};
export const tip = (v, kind, label, dx, dy, anchor = "start") => {
  const [x, y] = seen(v);
  const text = `<text x="${x}" y="${y}" dx="${dx}" dy="${dy}" text-anchor="${anchor}">${label}</text>`;
  return `<circle cx="${x}" cy="${y}" r="1.8" class="${kind}"/>${text}`;
};
/** A tip with its label on the side away from the middle. */
export const beside = (v, kind, label, dy) =>
  seen(v)[0] < 0 ? tip(v, kind, label, -4, dy, "end") : tip(v, kind, label, 4, dy);
export const grip = (v) => {
  const [x, y] = seen(v);
  return `<circle cx="${x}" cy="${y}" class="grip"/>`;
};
