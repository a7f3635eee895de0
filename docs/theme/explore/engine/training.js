// One training run of a small decoder, step by step.

import { decoder } from "./decoder.js";
import { OPTIMIZERS, clip, forget, share } from "./optimizers.js";
import { Random } from "./random.js";
import { Tape } from "./tape.js";
import { TASKS } from "./tasks.js";

const squared = (x, first = 0, end = x.length) => {
  let total = 0; // a loop: a typed array's reduce takes four times as long
  for (let i = first; i < end; i++) total += x[i] * x[i];
  return total;
};
const rms = (x) => Math.sqrt(squared(x) / x.length);

/** Mean cosine between two tokens of a sequence, from the sum of their unit vectors. */
function meanCosine({ value, rows, width }, time) {
  let total = 0;
  for (let first = 0; first < rows; first += time) {
    const along = new Float64Array(width);
    let own = 0;
    for (let row = first; row < first + time; row++) {
      const at = row * width;
      const length = Math.sqrt(squared(value, at, at + width));
      if (length === 0) continue;
      for (let c = 0; c < width; c++) along[c] += value[at + c] / length;
      own += 1;
    }
    total += squared(along) - own;
  }
  return total / (rows * (time - 1));
}

const HELD_OUT = 128; // sequences

/**
 * One training run, a step for each next(). options: those of the decoder (with 0 layers
 * the embedding, the placement's last norm and the head are left), optimizer ("adam",
 * "sgd"), rate (the peak), warmup (share of the run on the way to it; then linear to zero),
 * clip (of the gradient's norm), task, seed, steps, batch (sequences), time.
 *
 * next(rate) trains a step; a rate given is the peak from then on. Each yields { step, loss,
 * gradient, cosine, size }: the loss before the step's update, in nats, and by depth, the
 * embedding first, the RMS of the loss's gradient for the stream, the mean cosine between
 * the tokens of a sequence, the RMS of the stream. The run ends early after a loss that is
 * not finite. It returns the loss on held-out sequences, the same for every run of a task.
 */
export function* training(options) {
  const { warmup = 0, seed = 0, steps = 600, batch = 8, time = 16 } = options;
  const optimizer = OPTIMIZERS[options.optimizer ?? "adam"];
  const task = TASKS[options.task ?? "largest"];
  const model = decoder({ d: 16, heads: 2, ...task, ...options }, new Random(seed));
  const tape = new Tape();
  const run = (random, sequences, trains) => {
    tape.clear();
    const { tokens, targets } = task.draw(random, sequences, time);
    return model.run(tape, tokens, targets, time, trains);
  };
  const data = new Random(1000 + seed);
  let { rate } = options;
  let move;
  for (let step = 0; step < steps; step++) {
    const { loss, streams } = run(data, batch, true);
    tape.backward();
    move ??= optimizer(model.parameters); // which the first pass has drawn
    const asked = yield {
      step,
      loss,
      gradient: streams.map(({ gradient }) => rms(gradient)),
      cosine: streams.map((stream) => meanCosine(stream, time)),
      size: streams.map(({ value }) => rms(value)),
    };
    if (!Number.isFinite(loss)) break;
    rate = asked ?? rate;
    if (options.clip) clip(model.parameters, options.clip);
    move(rate * share(step, steps, Math.round(warmup * steps)));
    forget(model.parameters);
  }
  return run(new Random(2026), HELD_OUT, false).loss;
}
