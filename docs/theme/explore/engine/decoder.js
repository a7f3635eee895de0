// A small causal decoder with its norms in any place, as the snippets have it:
// pre_norm_vs_post_norm/decoder.py with the blocks of the pages. A layer is two blocks,
// attention and feed-forward.

import { activated } from "./activations.js";
import { attention, rotary } from "./attention.js";
import { track } from "./norms.js";
import { crossEntropy, linear, lookup, norm, part, scaled, sum } from "./operations.js";
import { tensor } from "./tape.js";

/** A block from its stream x; `last`: a norm stands in front of the head. */
export const PLACEMENTS = {
  none: { block: (x, { branch, add }) => add(x, branch(x)) },
  pre: {
    last: true,
    block: (x, { branch, add, normed }) => add(x, branch(normed("norm", x))),
  },
  post: { block: (x, { branch, add, normed }) => normed("norm", add(x, branch(x))) },
  sandwich: {
    last: true,
    block: (x, { branch, add, normed }) => add(x, normed("post", branch(normed("pre", x)))),
  },
  branch_output: {
    last: true,
    block: (x, { branch, add, normed }) => add(x, normed("post", branch(x))),
  },
  deepnorm: {
    block: (x, { branch, add, normed, alpha }) => normed("norm", add(x, branch(x), alpha)),
  },
  normformer: {
    last: true,
    inner: true,
    block: (x, { branch, add, normed, attends }) => {
      const made = branch(normed("pre", x));
      return add(x, attends ? normed("post", made) : made);
    },
  },
  rezero: { block: (x, { branch, add, learned }) => add(x, branch(x), 1, learned("alpha")) },
};

/**
 * A decoder whose matrices are drawn by `random` as the forward pass comes to them, with
 * variance 1 / fan-in, the embedding with variance 1: the same for every placement, but for
 * DeepNorm's beta on all except queries and keys.
 *
 * options: d, layers, heads, vocabulary, placement, norm ("layer", "rms", "batch"),
 * activation ("gelu", "silu"), rope, cap of attention's logits, qk: RMSNorm on queries and
 * keys, of each "head" or of the whole "projection".
 */
export function decoder(options, random) {
  const { d, layers, heads, vocabulary, placement, activation = "gelu", qk, rope, cap } = options;
  const { block, last, inner } = PLACEMENTS[placement];
  const centred = options.norm !== "rms";
  const across = options.norm === "batch";
  const alpha = Math.sqrt(Math.sqrt(2 * layers));
  const beta = placement === "deepnorm" ? 1 / Math.sqrt(Math.sqrt(8 * layers)) : 1;
  const held = {};
  const running = {}; // statistics of BatchNorm
  const parameter = (name, rows, width, start) => {
    if (!held[name]) {
      held[name] = tensor(rows, width);
      held[name].value.forEach((_, i, value) => (value[i] = start(i)));
    }
    return held[name];
  };
  const drawn = (deviation) => () => deviation * random.normal();

  /**
   * Loss, and the stream behind the embedding and behind each layer. BatchNorm takes the
   * batch's statistics and follows them; those that it has followed unless it `trains`.
   */
  const run = (tape, tokens, targets, time, trains = true) => {
    const vector = (name, width, start) => parameter(name, 1, width, () => start);
    const normed = (name, x) => {
      const gain = vector(`${name}.gain`, x.width, 1);
      const bias = centred ? vector(`${name}.bias`, x.width, 0) : null;
      const eps = centred ? 1e-5 : 1e-6;
      if (!across) return norm(tape, x, { gain, bias, eps, centred });
      running[name] ??= { mean: bias.value.slice(), variance: gain.value.slice() };
      const fixed = trains ? null : running[name];
      const y = norm(tape, x, { gain, bias, eps, across, fixed });
      if (trains) running[name] = track(running[name], y.statistics);
      return y;
    };
    const line = (name, x, outputs, scale = () => beta) => {
      const draw = drawn(1 / Math.sqrt(x.width));
      const weight = parameter(`${name}.weight`, outputs, x.width, (i) => draw() * scale(i));
      return linear(tape, x, weight, vector(`${name}.bias`, outputs, 0));
    };
    const mixes = (name, x) => {
      const read = line(`${name}.reader`, x, 3 * d, (i) => (i < 2 * d * d ? 1 : beta));
      let [q, k, v] = [0, 1, 2].map((n) => part(tape, read, n, 3));
      if (qk) {
        const own = (what, x) => {
          const gain = vector(`${name}.${what}.gain`, qk === "head" ? d / heads : d, 1);
          return norm(tape, x, { gain, eps: 1e-6, centred: false });
        };
        [q, k] = [own("query", q), own("key", k)];
      }
      if (rope) [q, k] = [q, k].map((x) => rotary(tape, x, { heads, time }));
      let mixed = attention(tape, q, k, v, { heads, time, cap });
      if (inner) mixed = scaled(tape, mixed, vector(`${name}.head_scale`, heads, 1));
      return line(`${name}.writer`, mixed, d);
    };
    const feeds = (name, x) => {
      let wide = activated(tape, line(`${name}.reader`, x, 4 * d), activation);
      if (inner) wide = normed(`${name}.inner`, wide);
      return line(`${name}.writer`, wide, d);
    };

    let x = lookup(tape, parameter("embedding.weight", vocabulary, d, drawn(1)), tokens);
    const streams = [x];
    for (let i = 0; i < 2 * layers; i++) {
      const name = `blocks.${i}`;
      x = block(x, {
        branch: (input) => (i % 2 ? feeds : mixes)(name, input),
        attends: i % 2 === 0,
        normed: (place, input) => normed(`${name}.${place}`, input),
        add: (...given) => sum(tape, ...given),
        learned: (what) => vector(`${name}.${what}`, 1, 0),
        alpha,
      });
      if (i % 2) streams.push(x);
    }
    if (last) x = normed("norm", x);
    const head = parameter("head.weight", vocabulary, d, drawn(1 / Math.sqrt(d)));
    const loss = crossEntropy(tape, linear(tape, x, head), targets);
    return { loss, streams };
  };
  return { parameters: held, run };
}
