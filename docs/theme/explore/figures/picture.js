// A part of the page as a picture: text, lines of tables and drawings, as they are seen.

const SCALE = 2;
const EDGE = 16;
const SHAPES = {
  line: (path, shape) => {
    path.moveTo(shape.x1.baseVal.value, shape.y1.baseVal.value);
    path.lineTo(shape.x2.baseVal.value, shape.y2.baseVal.value);
  },
  circle: (path, { cx, cy, r }) => path.arc(cx.baseVal.value, cy.baseVal.value, r.baseVal.value, 0, 2 * Math.PI),
  rect: (path, { x, y, width, height }) =>
    path.rect(x.baseVal.value, y.baseVal.value, width.baseVal.value, height.baseVal.value),
  polygon: (path, { points }) => {
    for (const { x, y } of points) path.lineTo(x, y);
    path.closePath();
  },
};

/** Each line of a text with the box of its first letter. */
function lines(node) {
  const range = document.createRange();
  const found = [];
  Array.from(node.data).reduce((from, letter) => {
    const to = from + letter.length;
    range.setStart(node, from);
    range.setEnd(node, to);
    const box = range.getBoundingClientRect();
    const last = found.at(-1);
    // In Firefox a letter of a drawing may have no box.
    if (last && (!box.width || Math.abs(box.top - last.box.top) < 2)) last.text += letter;
    else if (box.width) found.push({ text: letter, box });
    return to;
  }, 0);
  return found;
}

function write(context, node, style) {
  const font = (size) => `${style.fontStyle} ${style.fontWeight} ${size}px ${style.fontFamily}`;
  const size = parseFloat(style.fontSize);
  context.fillStyle = node.parentNode.namespaceURI.endsWith("svg") ? style.fill : style.color;
  for (const { text, box } of lines(node)) {
    context.font = font(size);
    const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = context.measureText(text);
    const drawn = box.height / (up + down); // a drawing has a scale of its own
    context.font = font(size * drawn);
    context.fillText(text, box.left, box.top + up * drawn);
  }
}

function trace(context, shape, style) {
  const path = new Path2D();
  SHAPES[shape.tagName](path, shape);
  const { a, b, c, d, e, f } = shape.getScreenCTM();
  context.save();
  context.transform(a, b, c, d, e, f);
  if (style.fill !== "none") {
    context.globalAlpha = Number(style.fillOpacity);
    context.fillStyle = style.fill;
    context.fill(path);
  }
  if (style.stroke !== "none") {
    context.globalAlpha = 1;
    context.strokeStyle = style.stroke;
    context.lineWidth = parseFloat(style.strokeWidth);
    context.setLineDash(style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(/[ ,]+/).map(parseFloat));
    context.stroke(path);
  }
  context.restore();
}

function paint(context, element) {
  const style = getComputedStyle(element);
  if (style.display === "none") return;
  if (element.tagName in SHAPES) return trace(context, element, style);
  const box = element.getBoundingClientRect();
  context.save();
  if (element.tagName === "svg") {
    context.beginPath();
    context.rect(box.left, box.top, box.width, box.height);
    context.clip();
  } else if (element instanceof HTMLElement) {
    context.fillStyle = style.backgroundColor;
    context.fillRect(box.left, box.top, box.width, box.height);
    const thick = parseFloat(style.borderBottomWidth);
    context.fillStyle = style.borderBottomColor;
    if (thick) context.fillRect(box.left, box.bottom - thick, box.width, thick);
  }
  for (const child of element.childNodes) {
    if (child instanceof Element) paint(context, child);
    else if (child instanceof Text) write(context, child, style);
  }
  context.restore();
}

/** A canvas with elements of a figure below each other. */
export function picture(elements) {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  const boxes = elements.map((element) => element.getBoundingClientRect());
  const width = Math.max(...boxes.map((box) => box.width)) + 2 * EDGE;
  const height = boxes.reduce((total, box) => total + box.height + EDGE / 2, 2 * EDGE);
  [canvas.width, canvas.height] = [SCALE * width, SCALE * height];
  context.scale(SCALE, SCALE);
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, width, height);
  let top = EDGE;
  elements.forEach((element, i) => {
    context.save();
    context.translate(EDGE - boxes[i].left, top - boxes[i].top);
    paint(context, element);
    context.restore();
    top += boxes[i].height + EDGE / 2;
  });
  return canvas;
}

export const save = (canvas, name) =>
  canvas.toBlob((blob) => {
    const href = URL.createObjectURL(blob);
    Object.assign(document.createElement("a"), { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  });
