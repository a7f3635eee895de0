"""Live figures in Chromium: their engine as the modules it is written as."""

import pytest

from scripts.site import explore
from tests.explore.conftest import loaded

HOST = "http://engine.test/"
# What the modules compute, as one list of bits.
COMPUTE = """({ forward, backward, shared, encode, FORMATS, rmsNorm, Random }) => {
  const bitsOf = (x) => Array.from(new Uint32Array(Float32Array.from(x).buffer));
  const draw = new Random(7);
  const values = (count) => new Float32Array(count).map(() => draw.uniform() - 0.5);
  const found = [];
  for (const norm of ["layer", "rms", "batch", "instance", "group"]) {
    const [x, dy, gain] = [values(120), values(120), values(6)];
    const spec = { cells: shared(norm, [4, 5, 6]), gain, eps: 1e-5 };
    if (norm === "rms") spec.centred = false;
    const saved = forward(x, spec);
    const { dx, dgain } = backward(dy, spec, saved);
    found.push(...[saved.y, dx, dgain].flatMap(bitsOf));
  }
  for (const format of Object.values(FORMATS)) {
    const options = { eps: 1e-6, order: "llama", format };
    const y = rmsNorm([...values(8)], [...values(8)], options).y;
    found.push(...bitsOf(y), ...y.map((v) => encode(v, format)));
  }
  return found;
}"""
MODULES = """async (names) => {
  const loaded = await Promise.all(names.map((name) => import("/" + name)));
  return Object.assign({}, ...loaded);
}"""
ONE_SCOPE = "{ forward, backward, shared, encode, FORMATS, rmsNorm, Random }"


@pytest.fixture
def modules(open_page):
    """A page of a host that has the engine's modules and nothing else."""
    page = open_page()

    def answer(route):
        file = explore.ENGINE / route.request.url.removeprefix(HOST)
        if file.is_file():
            route.fulfill(path=file, content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")

    page.route(HOST + "**", answer)
    page.goto(HOST)
    return page


def test_modules_compute_what_the_tested_script_does(modules, browser_checks):
    names = sorted(path.name for path in explore.ENGINE.glob("*.js"))
    found = modules.evaluate(
        f"async (names) => ({COMPUTE})(await ({MODULES})(names))", names
    )
    with loaded() as engine:
        assert engine.run(f"() => ({COMPUTE})({ONE_SCOPE})") == found
    assert len(found) > 1000
    browser_checks.add(1)
