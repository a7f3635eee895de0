// A lane on a canvas: the loss above, below it the map with layers up and steps across.
// Screen and saved picture are drawn by the same code.

import { MAPS, level, ramp } from "./colours.js";
import { LEARNED } from "./reading.js";
import { lossText, power } from "./words.js";

const DARK = { warm: ramp("warm"), cool: ramp("cool") };
const LIGHT = { warm: [...DARK.warm].reverse(), cool: [...DARK.cool].reverse() };
const coloursOf = (map, dark) => (dark ? DARK : LIGHT)[MAPS[map].ramp]; // what is small fades into the paper
const MOST_LOSS = 4; // nats; what is above is drawn at the edge
const SMOOTH = 9; // steps of the bold line's mean
export const LEFT = 26; // of a panel's edge, where its numbers stand
const HEAD = 16;
const FOOT = 18;

/** One pixel a layer and step; `rows` from the place `from` on are new. */
export function paint(image, rows, from, map, dark) {
  const context = image.getContext("2d");
  const colours = coloursOf(map, dark);
  for (let i = from; i < rows.length; i++) {
    const values = rows[i][map];
    const column = context.createImageData(1, image.height);
    values.forEach((value, layer) => {
      const found = level(value, map);
      const at = 4 * (image.height - 1 - layer);
      if (found !== null) column.data.set([...colours[found], 255], at);
    });
    context.putImageData(column, i, 0);
  }
}

/** The two panels of a lane, `width` wide: where things stand. */
export function panels(width, { lossHeight, mapHeight }, steps, layers, bare = true) {
  const inner = width - LEFT - 2;
  const loss = { x: LEFT, y: HEAD, width: inner, height: bare ? lossHeight : 0 };
  const map = { x: LEFT, y: (bare ? loss.y + lossHeight : 0) + HEAD, width: inner, height: mapHeight };
  return {
    loss,
    map,
    height: map.y + mapHeight + FOOT,
    step: (x) => Math.round(((x - LEFT) / inner) * steps - 0.5),
    layer: (y) => Math.floor(((map.y + mapHeight - y) / mapHeight) * (layers + 1)),
  };
}

const means = (values) => {
  let sum = 0;
  return values.map((value, i) => {
    sum += value - (i >= SMOOTH ? values[i - SMOOTH] : 0);
    return sum / Math.min(i + 1, SMOOTH);
  });
};

/** Draw a lane: runs of rows, the first with its map. `look` has colours and words. */
export function drawLane(context, lane, look) {
  const { steps, layers, width, sizes, bare, cursor, mark, hidden } = lane;
  const places = panels(width, sizes, steps, layers, !hidden);
  const { loss, map } = places;
  const at = (step) => LEFT + ((step + 0.5) / steps) * loss.width;
  const height = (value) => loss.y + loss.height * (1 - Math.min(MOST_LOSS, Math.max(0, value)) / MOST_LOSS);
  const write = (text, x, y, align = "left", colour = look.muted) => {
    context.fillStyle = colour;
    context.textAlign = align;
    context.fillText(text, x, y);
  };
  const line = (x0, y0, x1, y1, colour, dash = []) => {
    context.strokeStyle = colour;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
    context.setLineDash([]);
  };
  context.fillStyle = look.paper;
  context.fillRect(0, 0, width, places.height);
  context.font = `11px ${look.font}`;
  context.textBaseline = "middle";
  context.lineWidth = 1;

  if (!hidden) {
    write(look.words.loss, LEFT, HEAD / 2);
    for (const value of [0, 2, 4]) {
      line(LEFT, height(value), LEFT + loss.width, height(value), look.line);
      write(value < MOST_LOSS ? String(value) : `≥${value}`, LEFT - 6, height(value), "right");
    }
    const learns = LEARNED * bare;
    line(LEFT, height(bare), LEFT + loss.width, height(bare), look.muted, [2, 3]);
    line(LEFT, height(learns), LEFT + loss.width, height(learns), look.muted, [1, 5]);
    [...lane.runs].reverse().forEach((rows, i, all) => {
      const first = i === all.length - 1;
      const values = rows.map((row) => (Number.isFinite(row.loss) ? row.loss : MOST_LOSS));
      const trace = (list, alpha, wide) => {
        context.globalAlpha = alpha;
        context.strokeStyle = lane.colour;
        context.lineWidth = wide;
        context.lineJoin = "round";
        context.beginPath();
        list.forEach((value, step) => context[step ? "lineTo" : "moveTo"](at(step), height(value)));
        context.stroke();
        context.globalAlpha = 1;
        context.lineWidth = 1;
      };
      if (first) trace(values, 0.28, 1);
      trace(means(values), first ? 1 : 0.45, first ? 2 : 1);
    });
    write(`┈ ${look.words.bare(lossText(bare))}`, LEFT + loss.width, HEAD / 2, "right");
    write(look.words.learns(lossText(learns)), LEFT + loss.width, height(learns) - 7, "right");
  }

  write(look.words.maps[look.map], LEFT, map.y - HEAD / 2);
  write(look.words.up, LEFT + map.width, map.y - HEAD / 2, "right");
  context.fillStyle = look.panel;
  context.fillRect(map.x, map.y, map.width, map.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(lane.image, map.x, map.y, map.width, map.height);
  context.strokeStyle = look.line;
  context.strokeRect(map.x - 0.5, map.y - 0.5, map.width + 1, map.height + 1);
  const cell = map.height / (layers + 1);
  const middle = (layer) => map.y + map.height - (layer + 0.5) * cell;
  for (let layer = 0; layer <= layers; layer += layers > 6 ? 3 : layers > 2 ? 2 : 1) {
    write(String(layer), LEFT - 6, middle(layer), "right");
  }
  const foot = map.y + map.height + FOOT / 2 + 1;
  write("0", LEFT, foot);
  write(look.words.step, LEFT + map.width / 2, foot, "center");
  write(String(steps), LEFT + map.width, foot, "right");

  const top = hidden ? map.y : loss.y;
  if (mark !== null) {
    line(at(mark), top, at(mark), map.y + map.height, look.accent, [4, 3]);
    const late = mark > steps * 0.8;
    write(String(mark), at(mark) + (late ? -4 : 4), top + 6, late ? "right" : "left", look.accent);
  }
  for (const step of lane.moves) {
    line(at(step), top, at(step), top + 8, look.ink);
  }
  if (cursor) {
    context.lineWidth = 3; // seen on dark and on light cells
    line(at(cursor.step), map.y, at(cursor.step), map.y + map.height, look.paper);
    context.lineWidth = 1;
    line(at(cursor.step), top, at(cursor.step), map.y + map.height, look.ink);
    const y = middle(cursor.layer) - cell / 2;
    context.strokeStyle = look.paper;
    context.lineWidth = 3;
    context.strokeRect(at(cursor.step) - 5, y, 10, cell);
    context.strokeStyle = look.ink;
    context.lineWidth = 1.5;
    context.strokeRect(at(cursor.step) - 5, y, 10, cell);
    context.lineWidth = 1;
  }
  return places.height;
}

/** The ramp of a map as stops of a CSS gradient, from its first mark to its last. */
export const stops = (map, dark) =>
  coloursOf(map, dark)
    .filter((_, i) => i % 15 === 0)
    .map((rgb) => `rgb(${rgb.join(" ")})`)
    .join(", ");

/** What stands at the marks of a map's scale. */
export const marks = (map) => MAPS[map].marks.map((mark) => (MAPS[map].log ? power(mark) : String(mark)));

const wrapped = (context, text, width) => {
  const lines = [""];
  // Chinese breaks anywhere, words at blanks.
  for (const piece of text.match(/[\u3000-\uffef]|[^\s\u3000-\uffef]+\s*|\s+/g) ?? []) {
    const line = lines.at(-1) + piece;
    if (context.measureText(line.trimEnd()).width > width && lines.at(-1)) lines.push(piece);
    else lines[lines.length - 1] = line;
  }
  return lines;
};

/** A picture of all lanes with title, settings and what is said of each. */
export function picture(lanes, look, { title, settings, address }) {
  const [edge, gap, wide] = [32, 28, lanes.length > 2 ? 320 : 440];
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  const scale = 2;
  const sizes = { lossHeight: 120, mapHeight: 220 };
  const drawn = lanes.map((lane) => ({ ...lane, width: wide, sizes, cursor: null }));
  const height = panels(wide, sizes, 1, 1).height;
  const text = (size, weight = 400) => `${weight} ${size}px ${look.font}`;
  context.font = text(13);
  const notes = lanes.map(({ note }) => wrapped(context, note, wide - LEFT - 8));
  const below = 20 * Math.max(...notes.map((lines) => lines.length));
  const width = 2 * edge + lanes.length * wide + (lanes.length - 1) * gap;
  const full = edge + 66 + 28 + height + below + 66;
  [canvas.width, canvas.height] = [scale * width, scale * full];
  context.scale(scale, scale);
  context.fillStyle = look.paper;
  context.fillRect(0, 0, width, full);
  const write = (words, x, y, font, colour, align = "left") => {
    context.font = font;
    context.fillStyle = colour;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillText(words, x, y);
  };
  write(title, edge, edge + 8, text(22, 650), look.ink);
  write(settings, edge, edge + 38, text(13), look.muted);
  drawn.forEach((lane, i) => {
    const x = edge + i * (wide + gap);
    const y = edge + 66;
    write(lane.name, x + LEFT, y + 10, text(15, 650), look.ink);
    write(lane.endText, x + wide, y + 10, text(13), look.muted, "right");
    context.save();
    context.translate(x, y + 24);
    drawLane(context, lane, look);
    context.restore();
    notes[i].forEach((line, n) => write(line, x + LEFT, y + 24 + height + 14 + 20 * n, text(13), drawn[i].whole ? look.muted : look.accent));
  });
  const foot = full - 34;
  const bar = 180;
  const across = context.createLinearGradient(edge + LEFT, 0, edge + LEFT + bar, 0);
  const colours = coloursOf(look.map, look.dark);
  colours.forEach((rgb, i) => across.addColorStop(i / (colours.length - 1), `rgb(${rgb.join(" ")})`));
  context.fillStyle = across;
  context.fillRect(edge + LEFT, foot, bar, 10);
  const shown = marks(look.map);
  shown.forEach((mark, i) =>
    write(mark, edge + LEFT + (bar * i) / (shown.length - 1), foot + 20, text(11), look.muted, "center"),
  );
  write(look.words.scale[look.map], edge + LEFT + bar + 14, foot + 5, text(12), look.muted);
  write(address, width - edge, foot + 5, text(12), look.muted, "right");
  return canvas;
}
