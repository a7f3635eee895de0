"""What the engine of the live figures costs, in V8.

CPU time of one process, which other work on the machine changes little.
"""

import time
from collections.abc import Iterator

from scripts.site.pictures import explore
from scripts.site.reading.javascript import running

RUNS = 25
# The deepest model that a page runs, forward and backward; then a step of training.
BENCHES = {
    "48 layers, d 64, 16 tokens, forward and backward": """(() => {
      const random = new Random(0);
      const options = { d: 64, heads: 4, layers: 48, vocabulary: 32, placement: "pre" };
      const model = decoder(options, random);
      const tape = new Tape();
      const { tokens, targets } = TASKS.largest.draw(random, 1, 16);
      return () => {
        tape.clear();
        model.run(tape, tokens, targets, 16);
        tape.backward();
      };
    })()""",
    "a step of 12 layers, d 16, 8 x 16 tokens": """(() => {
      const run = training({ placement: "pre", layers: 12, rate: 0.01 });
      return () => run.next();
    })()""",
}


def seconds() -> Iterator[tuple[str, float]]:
    context = running(explore.joined(*sorted(explore.ENGINE.glob("*.js"))))
    for what, made in BENCHES.items():
        context.eval(f"globalThis.once = {made}")
        context.eval("for (let i = 0; i < 10; i++) once()")
        for _ in range(RUNS):
            start = time.process_time()
            context.eval("once(), 0")
            yield what, time.process_time() - start
