"""The playground's decisions, in V8: breaks, verdicts, challenges, address, colours."""

import contextlib
import json
import re

import pytest

from scripts.site.pictures import explore, playground
from tests import javascript
from tests.pages import prose, test_terms

PURE = ("challenges", "colours", "reading", "state", "words")
FORBIDDEN = re.compile(
    r"\b(?:eval|Function|fetch|XMLHttpRequest|WebSocket|sendBeacon|import)\(|https?:"
)
MOST_BYTES = 40_000  # screen, engine and style, compressed

# A run of `steps`: what each layer gets at each step, and the cosine after the last.
ROWS = """
const SAME = () => [1, 1];
const run = ({ steps = 200, loss = () => 2, shares = SAME, cosine = () => 0 }) =>
  Array.from({ length: steps }, (_, step) => ({
    step,
    loss: loss(step),
    gradient: [...shares(step), 1].map((v) => v * 1e-3),
    cosine: [0, 0, cosine(step)],
    size: [1, 1, 1],
  }));
"""


class Playground:
    def __init__(self, context):
        self._context = context

    def __call__(self, expression: str):
        return json.loads(self._context.eval(f"JSON.stringify({expression})"))


@contextlib.contextmanager
def loaded(old: str = "", new: str = ""):
    """The modules without a document; the one place of ``old`` reads ``new``."""
    source = explore.joined(*(playground.FOLDER / f"{name}.js" for name in PURE))
    with javascript.context(ROWS + source, old, new) as context:
        yield Playground(context)


@pytest.fixture(scope="module")
def ask():
    with loaded() as right:
        yield right


def breaks_are_found(ask):
    assert ask("dead(run({}))") is None
    found = ask("dead(run({ shares: (t) => (t < 50 ? [1, 1] : [0.001, 0.5]) }))")
    since = {"from": 50, "to": None, "before": False}
    assert found == {**since, "layers": [0], "share": 0.001, "layer": 0}
    both = ask("dead(run({ shares: (t) => (t < 50 ? [1, 1] : [4e-3, 2e-3]) }))")
    assert both["layers"] == [0, 1] and both["layer"] == 1 and both["share"] == 0.002
    # A spell that passes has an end; one that is short is none, nor a single step.
    spell = ask("dead(run({ shares: (t) => [t >= 40 && t < 120 ? 1e-4 : 1, 1] }))")
    assert (spell["from"], spell["to"], spell["before"]) == (40, 119, False)
    assert (
        ask("dead(run({ shares: (t) => [t >= 40 && t < 60 ? 1e-4 : 1, 1] }))") is None
    )
    noisy = ask("dead(run({ shares: (t) => [t % 10 ? 1e-4 : 1, 1] }))")
    assert noisy and noisy["to"] is None and noisy["from"] <= 1
    assert ask("dead(run({ shares: () => [0.02, 1] }))") is None
    # Three layers that take turns: somewhere it is always thin, nowhere for most steps.
    turns = "(t) => [0, 1, 2].map((i) => (Math.floor(t / 20) % 3 === i ? 1e-4 : 1))"
    assert ask(f"dead(run({{ shares: {turns}, steps: 300 }}))") is None
    assert ask("alike(run({ cosine: (t) => (t < 70 ? 0.9 : 0.995) }))") == {
        "from": 70,
        "to": None,
        "before": False,
        "cosine": 0.995,
    }
    again = "(t) => (t < 20 || t >= 90 ? 0.995 : 0.5)"
    assert ask(f"alike(run({{ cosine: {again} }})).before")  # not first from 90 on
    brief = again.replace("t < 20", "t < 5")
    assert not ask(f"alike(run({{ cosine: {brief} }})).before")
    assert ask("alike(run({ cosine: () => 0.98 }))") is None
    assert ask("lost(run({ loss: (t) => (t === 30 ? NaN : 2) }))") == 30

    # All layers small: none is starved beside the last, and that is said.
    small = "run({}).map((row) => ({ ...row, gradient: [1e-3, 5e-7, 5e-7] }))"
    assert ask(f"dead({small})") is None
    assert ask(f"faint({small})") == {
        "from": 0,
        "to": None,
        "before": False,
        "size": 1,
    }
    one_large = small.replace("5e-7, 5e-7", "5e-7, 2e-6")
    assert ask(f"faint({one_large})") is None
    # A break at 100: had the loss stopped falling before it?
    late = "(t) => (t < 100 ? 0 : 1)"
    for loss, flat in {"2 + t / 1000": True, "t < 95 ? 2.5 : 2": False}.items():
        rows = f"run({{ cosine: {late}, loss: (t) => {loss} }})"
        assert ask(f"told({rows}, 2.3, 2.23).flat") is flat
        assert not ask(f"told({rows}, 0.3, 2.23).flat")  # it learned
    early = f"run({{ cosine: {late.replace('100', '20')} }})"
    assert not ask(f"told({early}, 2.3, 2.23).flat")


def runs_are_judged(ask):
    assert ask("told(run({}), 1.0, 2.23)")["learned"]
    stuck = ask("told(run({}), 1.2, 2.23)")
    assert not stuck["learned"] and stuck["better"] and stuck["complete"]
    assert not ask("told(run({}), 2.3, 2.23)")["better"]
    assert not ask("told(run({}), null, 2.23)")["complete"]
    lost = ask("told(run({ loss: (t) => (t === 30 ? NaN : 2) }), NaN, 2.23)")
    assert lost["complete"] and not lost["learned"] and lost["lost"] == 30
    lane = "together([0.1, 0.2, 2.5].map((held) => told(run({}), held, 2.23)))"
    assert ask(lane)["learned"] and ask(lane)["end"] == 0.2
    assert (ask(lane)["learners"], ask(lane)["runs"]) == (2, 3)
    even = "together([0.1, 2.5].map((held) => told(run({}), held, 2.23)))"
    assert not ask(even)["learned"]


def bets_are_right(ask):
    for learned, right in {
        (True, False): "first",
        (False, True): "second",
        (True, True): "both",
        (False, False): "neither",
        (True,): "learns",
        (False,): "fails",
        (True, False, True): "count2",
    }.items():
        assert ask(f"rightBet({json.dumps(learned)})") == right
        assert right in ask(f"betsOn({len(learned)})")


def lanes(*ends, complete=True):
    """What reading.js tells of lanes that end so."""
    return [
        {"end": end, "learned": end < 1.1, "complete": complete, "runs": 1}
        for end in ends
    ]


def decide(ask, name, told, state="{}", chosen="null"):
    return ask(
        f"decided('{name}', {{ ...opened('{name}'), ...{state} }}, "
        f"{json.dumps(told)}, {chosen})"
    )


def lane(*places):
    return "[" + ",".join(f"{{place:'{p}',norm:'layer'}}" for p in places) + "]"


def challenges_are_decided(ask):
    assert decide(ask, "rescue", lanes(0.3))
    assert not decide(ask, "rescue", lanes(2.5))
    assert not decide(ask, "rescue", lanes(0.3, complete=False))
    assert not decide(ask, "rescue", lanes(0.3), "{ layers: 2 }")
    assert not decide(ask, "rescue", lanes(0.3), f"{{ lanes: {lane('pre')} }}")
    assert decide(ask, "steady", lanes(0.1), f"{{ lanes: {lane('deepnorm')} }}")
    assert not decide(ask, "steady", lanes(0.1), "{ rate: 0.003 }")
    assert not decide(ask, "steady", lanes(0.1), f"{{ lanes: {lane('pre')} }}")
    assert decide(ask, "kill", lanes(1.9))
    assert not decide(ask, "kill", lanes(0.1))
    assert not decide(ask, "kill", lanes(2.5), f"{{ lanes: {lane('post')} }}")
    assert decide(ask, "bare", lanes(0.03, 0.02))
    assert not decide(ask, "bare", lanes(0.03, 0.4))
    sandwich = f"{{ lanes: {lane('pre', 'sandwich')} }}"
    assert not decide(ask, "bare", lanes(0.03, 0.02), sandwich)
    assert not decide(ask, "bare", lanes(0.02), f"{{ lanes: {lane('rezero')} }}")
    order = [each["place"] for each in ask("opened('blind', 7).lanes")]
    at = order.index("post")
    told, same = lanes(0.1, 0.1, 0.1, 0.1), "opened('blind', 7)"
    assert decide(ask, "blind", told, same, at)
    assert not decide(ask, "blind", told, same, (at + 1) % 4)
    assert not decide(ask, "blind", told, same)
    orders = {
        tuple(x["place"] for x in ask(f"opened('blind', {n}).lanes")) for n in range(9)
    }
    assert len(orders) > 3


def addresses_hold_the_state(ask):
    assert ask("searchOf(OPENING)") == ""
    assert ask("stateOf('')") == ask("OPENING")
    changed = (
        "{ ...OPENING, lanes: [{ place: 'deepnorm', norm: 'rms' }, { place: 'none', "
        "norm: 'layer' }], layers: 12, rate: 0.3, warmup: 0.5, seeds: 5, seed: 41, "
        "steps: 40, map: 'cosine', challenge: 'bare' }"
    )
    written = ask(f"searchOf({changed})")
    assert ask(f"stateOf('?{written}')") == ask(f"({changed})")
    assert ask(f"stateOf('{written.replace(',', '%2C')}')") == ask(f"({changed})")
    for name in ask("Object.keys(CHALLENGES)"):
        for seed in (0, 5):
            own = f"{{ ...opened('{name}', {seed}), rate: 0.01, layers: 2 }}"
            written = ask(f"searchOf({own}, baseOf({own}))")
            assert f"challenge={name}" in written and "lanes" not in written
            there = f"stateOf('{written}', baseOf(stateOf('{written}')))"
            assert ask(there) == ask(f"({own})")
    for broken in (
        "layers=7",
        "rate=1e9",
        "steps=99999",
        "seed=-1",
        "lanes=pre,x",
        "x",
    ):
        assert ask(f"stateOf('{broken}')") == ask("OPENING")
    assert ask("stateOf('lanes=' + Array(5).fill('pre').join())") == ask("OPENING")
    assert ask("stateOf('lanes=rezero.rms').lanes") == [
        {"place": "rezero", "norm": "layer"}
    ]


def colours_are_even(ask):
    for name in ("warm", "cool"):
        inks = ask(f"ramp('{name}')")
        light = [_lightness(rgb) for rgb in inks]
        steps = [b - a for a, b in zip(light[::15], light[15::15], strict=False)]
        assert light[0] < 0.2 < 0.9 < light[-1]
        assert min(steps) > 0.5 * max(steps)
    assert ask("[1e-9, 1e-7, 1e-2, 1].map((v) => level(v, 'gradient'))") == [
        0,
        0,
        255,
        255,
    ]
    assert ask("[1, 0].map((v) => level(v, 'cosine'))") == [0, 255]
    assert ask("level(NaN, 'size')") is None


def _lightness(rgb) -> float:
    """OKLab's, from sRGB."""
    r, g, b = (
        v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
        for v in (v / 255 for v in rgb)
    )
    first, second, third = (
        (x * r + y * g + z * b) ** (1 / 3)
        for x, y, z in (
            (0.4122214708, 0.5363325363, 0.0514459929),
            (0.2119034982, 0.6806995451, 0.1073969566),
            (0.0883024619, 0.2817188376, 0.6299787005),
        )
    )
    return 0.2104542553 * first + 0.793617785 * second - 0.0040720468 * third


LAWS = (
    breaks_are_found,
    runs_are_judged,
    bets_are_right,
    challenges_are_decided,
    addresses_hold_the_state,
    colours_are_even,
)


@pytest.mark.parametrize("law", LAWS)
def test_law(law, ask):
    law(ask)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("const DEAD = 0.01", "const DEAD = 0.05"),
        ("const ONE_VECTOR = 0.99", "const ONE_VECTOR = 0.97"),
        ("const LASTING = 30", "const LASTING = 10"),
        ("const WINDOW = 15", "const WINDOW = 1"),
        ("gradient[layer] / gradient[layers]", "gradient[layer] / gradient[0]"),
        ("behind === rows.length ? null", "behind > rows.length ? null"),
        ("const LEARNED = 0.5", "const LEARNED = 0.6"),
        ("const FAINT = 1e-6", "const FAINT = 1e-5"),
        ("!layer || size < FAINT", "size < FAINT"),
        ("gradient.every((size", "gradient.some((size"),
        ("const FLAT = 1.05", "const FLAT = 1.5"),
        ("!learned && flat(", "flat("),
        (".length >= WINDOW;", ".length > 0;"),
        ("complete: held !== null", "complete: true"),
        ("length * 2 > runs.length", "length * 2 >= runs.length"),
        ("better: end !== null && end < bare", "better: end !== null"),
        ('return learned[0] ? "first" : "second"', 'return "first"'),
        ('place === "post" && learned)', "learned)"),
        ("state.rate >= 0.01 &&", ""),
        ('["post", "deepnorm"].includes(place) && learned', "learned"),
        ('place === "pre" && !learned', "!learned"),
        ("Math.min(...free) < Math.min(...pre)", "true"),
        (
            "const free = ends((place) => !normed(place))",
            "const free = ends(() => true)",
        ),
        ('state.lanes[chosen]?.place === "post"', "chosen !== null"),
        ("lanes.every(({ complete }) => complete) &&", ""),
        ("lanes.length <= MOST_LANES &&", ""),
        ('.replaceAll("%2C", ",")', ""),
        ("value ?? base[key]", "value ?? OPENING[key]"),
        ("seed), seed: 0 }", "seed) }"),
        ("norm: normed(place) ? norm", "norm: true ? norm"),
        ("(LIGHTEST - DARKEST) * t,", "(LIGHTEST - DARKEST) * t * t,"),
        ("(at - from) / (to - from)", "(at - from) / (from - to)"),
    ],
)
def test_a_mistake_is_noticed(old, new):
    with loaded(old, new) as wrong, pytest.raises(AssertionError):
        for law in LAWS:
            law(wrong)


WORDS_OF = """(words) => {
  const lane = { end: 2.58, ends: [2.58, 2.6], runs: 2, learners: 0, lost: null };
  const at = {
    from: 15, to: null, layers: [0, 1, 4], share: 5e-4, layer: 1, cosine: 0,
    size: 2e4 };
  const said = [
    words.ask.opening(6), words.running(5, 600), words.stopped(7), words.end(lane),
    ...[{}, { learned: true }, { better: true }, { lost: 3 }].map((more) =>
      words.outcome("Post-Norm", { ...lane, ...more }, 2.23)),
    words.dead(at), words.dead({ ...at, to: 90, layers: [0] }), words.alike(at),
    words.alike({ ...at, before: true }), words.faint(at), words.flat,
    words.lost(3), words.whole, words.moved(5, 0.003), words.hint, words.choose,
    words.reading({ step: 1, layer: 0, loss: 2, gradient: 1e-5, cosine: 0.5, size: 1 }),
    words.reading({ step: 1, layer: 3, loss: NaN, gradient: 0, cosine: NaN, size: 9 }),
    words.settings({ ...OPENING, warmup: 0.5, seeds: 5 }), words.read("Pre-Norm"),
    ...Object.values(words.challenge).flat(), ...Object.values(words.scale),
    ...Object.values(words.tasks), words.solvedNow("x"), words.notNow("x"),
    ...Object.values(words.because), words.record, words.next,
    words.before("Pre-Norm", words.settings(OPENING), "x"),
  ];
  return said;
}"""


def test_it_speaks_both_languages(ask, no_violations):
    assert ask("Object.keys(WORDS.zh)") == ask("Object.keys(WORDS.en)")
    for group in (
        "places",
        "norms",
        "maps",
        "scale",
        "challenge",
        "tasks",
        "because",
        "formulas",
    ):
        assert ask(f"Object.keys(WORDS.zh.{group})") == ask(
            f"Object.keys(WORDS.en.{group})"
        )
    for language in ("en", "zh"):
        said = ask(f"({WORDS_OF})(WORDS.{language})")
        assert all(said) and not [text for text in said if "undefined" in text]
        found = [v for text in said for v in prose.violations(text, language)]
        if language == "zh":
            found += [v for t in said for v in test_terms.refused(t, test_terms.TERMS)]
        no_violations(f"{language}: {v}" for v in found)
    for kind in ("challenge", "because"):
        assert ask("Object.keys(CHALLENGES)") == ask(f"Object.keys(WORDS.en.{kind})")
    assert set(ask("PLACES")) == set(ask("Object.keys(WORDS.en.formulas)"))


def test_what_is_offered_the_engine_has(ask):
    known = explore.joined(explore.ENGINE / "training.js")
    for place in ask("PLACES"):
        assert re.search(rf"^  {place}: \{{", known, re.MULTILINE), place
    for task in ask("TASK_NAMES"):
        assert re.search(rf"^  {task}: \{{", known, re.MULTILINE), task


def test_scripts_are_small_and_ask_nobody():
    import gzip

    scripts = [explore.classic(path) for path in playground.PUBLISHED.values()]
    parts = [*scripts, playground.STYLE.read_text("utf-8")]
    assert sum(len(gzip.compress(part.encode())) for part in parts) <= MOST_BYTES
    assert not [text for text in scripts if FORBIDDEN.search(text)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_holds_the_screen(language):
    from scripts.site.data import facts

    made = playground.make("screen", language, "../")
    bare = facts.facts()[playground.EXPERIMENT]["no_layers_opening"]
    assert f'data-bare="{bare}"' in made and "\n" not in made
    assert 'data-engine="../assets/explore/training.js"' in made
    assert "../placement/pre-norm-vs-post-norm.md#gradient-dies" in made
    assert playground.text(language) in made
