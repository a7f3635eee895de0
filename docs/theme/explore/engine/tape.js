// A tape of coarse operations on rows of float32 numbers. An operation writes its result
// and leaves behind what carries the gradient back; every result keeps its gradient, so a
// profile of gradients by depth costs nothing. Sums are float64, rounded once.

/** Rows of numbers, and the gradient of a loss for each of them. */
export const tensor = (rows, width) => ({
  rows,
  width,
  value: new Float32Array(rows * width),
  gradient: new Float32Array(rows * width),
});

export class Tape {
  constructor() {
    this.backs = [];
    this.lent = [];
    this.free = new Map(); // by size: what earlier steps have left
  }

  /** Numbers that are still to be written, until the tape is cleared. */
  room(size) {
    const found = this.free.get(size)?.pop() ?? new Float32Array(size);
    this.lent.push(found);
    return found;
  }

  zeros(size) {
    return this.room(size).fill(0);
  }

  /** Room for a result, until the tape is cleared. */
  result(rows, width) {
    const [value, gradient] = [this.room(rows * width), this.zeros(rows * width)];
    return { rows, width, value, gradient };
  }

  /** The result, once `back` is noted: it adds to the gradients of what was read. */
  record(result, back) {
    this.backs.push(back);
    return result;
  }

  backward() {
    while (this.backs.length) this.backs.pop()();
  }

  clear() {
    this.backs = [];
    for (const each of this.lent) {
      if (!this.free.has(each.length)) this.free.set(each.length, []);
      this.free.get(each.length).push(each);
    }
    this.lent = [];
  }
}
