"""What the engine of the live figures costs, in V8 and in Chromium.

CPU time of one process, and of the page's thread, which other work on the machine
changes little. A page is also slowed down four times.
"""

import shutil
import time
from collections.abc import Iterator

from scripts.site.pictures import explore
from scripts.site.reading.javascript import running
from tests.browser.conftest import FLAGS, NAMES

RUNS = 25
WARM_UP = 10
SLOWER = 4
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
    source = explore.joined(*sorted(explore.ENGINE.glob("*.js")))
    yield from _in_v8(source)
    yield from _in_chromium(source)


def _in_v8(source: str) -> Iterator[tuple[str, float]]:
    context = running(source)
    for what, made in BENCHES.items():
        context.eval(f"globalThis.once = {made}")
        context.eval(f"for (let i = 0; i < {WARM_UP}; i++) once()")
        for _ in range(RUNS):
            start = time.process_time()
            context.eval("once(), 0")
            yield what, time.process_time() - start


def _in_chromium(source: str) -> Iterator[tuple[str, float]]:
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page()
        page.add_script_tag(content=source)
        device = page.context.new_cdp_session(page)
        device.send("Performance.enable")
        for what, made in BENCHES.items():
            page.add_script_tag(content=f"globalThis.once = {made}")
            for _ in range(WARM_UP):
                page.evaluate("once(), 0")
            for rate in (1, SLOWER):
                device.send("Emulation.setCPUThrottlingRate", {"rate": rate})
                name = f"{what}, Chromium" + (f" slowed {rate} times" * (rate > 1))
                for _ in range(RUNS):
                    start = _thread_time(device)
                    page.evaluate("once(), 0")
                    yield name, _thread_time(device) - start
            device.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        browser.close()


def _thread_time(device) -> float:
    metrics = device.send("Performance.getMetrics")["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "ThreadTime")
