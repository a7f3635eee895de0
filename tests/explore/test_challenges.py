"""The playground's challenges, trained by the engine itself in V8.

Each has a way out, and its opening is none.
"""

import json

import pytest

from scripts.site.data import facts
from scripts.site.pictures import explore, playground
from tests import javascript

pytestmark = pytest.mark.slow
MODULES = ("challenges", "reading", "state")
WAYS_OUT = {
    "rescue": "{ rate: 0.003 }",
    "steady": "{ lanes: [{ place: 'deepnorm', norm: 'layer' }] }",
    "kill": "{ rate: 1 }",
    "bare": "{ lanes: ['pre', 'rezero'].map((place) => ({ place, norm: 'layer' })) }",
    "blind": "{}",
}
PLAY = """
const play = (state, bare) => state.lanes.map((_, lane) => {
    const run = training(optionsOf(state, lane, 0));
    const rows = [];
    for (;;) {
      const { value, done } = run.next();
      if (done) return together([told(rows, value, bare)]);
      rows.push(value);
    }
  });
"""


@pytest.fixture(scope="module")
def ask():
    paths = [playground.FOLDER / f"{name}.js" for name in MODULES]
    source = explore.joined(explore.ENGINE / "training.js", *paths)
    with javascript.context(source + PLAY) as context:
        yield lambda text: json.loads(context.eval(f"JSON.stringify({text})"))


@pytest.fixture(scope="module")
def bare():
    return facts.facts()[playground.EXPERIMENT]["no_layers_opening"]


@pytest.mark.parametrize("name", WAYS_OUT)
def test_challenge(name, ask, bare):
    """Solved by its way out, not by what it opens with."""
    ask(f"(globalThis.state = opened('{name}')).seed")
    ask(f"(globalThis.shown = play(state, {bare})).length")
    assert not ask(f"decided('{name}', state, shown)")
    if WAYS_OUT[name] != "{}":
        ask(f"Object.assign(state, {WAYS_OUT[name]}).seed")
        ask(f"(globalThis.shown = play(state, {bare})).length")
    # The lane to choose, where one has to: that whose layers are starved.
    chosen = "shown.findIndex((lane) => lane.dead)"
    assert ask(f"decided('{name}', state, shown, {chosen})")


def test_every_challenge_has_a_way_out(ask):
    assert set(ask("Object.keys(CHALLENGES)")) == set(WAYS_OUT)
