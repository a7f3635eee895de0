// What the decoder is trained on: sequences of tokens and a target at each position.

export const TASKS = {
  /** Name the largest token so far: one token alone does not tell, positions do not matter. */
  largest: {
    vocabulary: 32,
    draw(random, sequences, time) {
      const tokens = Array.from({ length: sequences * time }, () => Math.floor(random.uniform() * 32));
      let most = 0;
      const targets = tokens.map((token, i) => (most = Math.max(token, i % time ? most : 0)));
      return { tokens, targets };
    },
  },
};
