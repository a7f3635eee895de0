// A small causal decoder with its norms in any place, as the snippets have it:
// pre_norm_vs_post_norm/decoder.py with the blocks of the pages. A layer is two blocks,
// attention and feed-forward.

import { ACTIVATIONS } from "./activations.js";
import { attention } from "./attention.js";
import { crossEntropy, linear, lookup, norm, part, sum } from "./operations.js";
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
  rezero: { block: (x, { branch, add, learned }) => add(x, branch(x), 1, learned("alpha")) },
};

/**
 * A decoder whose matrices are drawn by `random` as the forward pass comes to them, with
 * variance 1 / fan-in, the embedding with variance 1: the same for every placement, but for
 * DeepNorm's beta on all except queries and keys.
 */
export function decoder(options, random) {
  const { d, layers, heads, vocabulary, placement } = options;
  const { block, last } = PLACEMENTS[placement];
  const centred = options.norm === "layer";
  const eps = options.eps ?? (centred ? 1e-5 : 1e-6);
  const alpha = Math.sqrt(Math.sqrt(2 * layers));
  const beta = placement === "deepnorm" ? 1 / Math.sqrt(Math.sqrt(8 * layers)) : 1;
  const held = {};
  const parameter = (name, rows, width, start) => {
    if (!held[name]) {
      held[name] = tensor(rows, width);
      held[name].value.forEach((_, i, value) => (value[i] = start(i)));
    }
    return held[name];
  };
  const drawn = (deviation) => () => deviation * random.normal();

  /** Loss, and the stream behind the embedding and behind each layer. */
  const run = (tape, tokens, targets, time) => {
    const vector = (name, width, start) => parameter(name, 1, width, () => start);
    const normed = (name, x) => {
      const gain = vector(`${name}.gain`, d, 1);
      const bias = centred ? vector(`${name}.bias`, d, 0) : null;
      return norm(tape, x, { gain, bias, eps, centred });
    };
    const line = (name, x, outputs, scale = () => beta) => {
      const draw = drawn(1 / Math.sqrt(x.width));
      const weight = parameter(`${name}.weight`, outputs, x.width, (i) => draw() * scale(i));
      return linear(tape, x, weight, vector(`${name}.bias`, outputs, 0));
    };
    const attends = (name, x) => {
      const read = line(`${name}.reader`, x, 3 * d, (i) => (i < 2 * d * d ? 1 : beta));
      const [q, k, v] = [0, 1, 2].map((n) => part(tape, read, n, 3));
      return line(`${name}.writer`, attention(tape, q, k, v, { heads, time }), d);
    };
    const feeds = (name, x) => {
      const active = ACTIVATIONS[options.activation ?? "gelu"];
      return line(`${name}.writer`, active(tape, line(`${name}.reader`, x, 4 * d)), d);
    };

    let x = lookup(tape, parameter("embedding.weight", vocabulary, d, drawn(1)), tokens);
    const streams = [x];
    for (let i = 0; i < 2 * layers; i++) {
      const name = `blocks.${i}`;
      x = block(x, {
        branch: (input) => (i % 2 ? feeds : attends)(name, input),
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
