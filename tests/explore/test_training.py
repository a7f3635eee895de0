"""A run in the browser's engine: its data, its schedule, what it says of the stream."""

import math
import re

import pytest
import torch
from torch.nn import functional as F

from scripts.measure import records
from scripts.site.pictures import explore
from tests.explore.conftest import bits, floats, loaded

SMALL = {"placement": "pre", "norm": "layer", "layers": 2, "rate": 0.01, "steps": 8}
RUN = """(options, rates = []) => {
  const run = training(options);
  const seen = [];
  for (let step = run.next(); ; step = run.next(rates[seen.length])) {
    if (step.done) return [seen, step.value];
    seen.push(step.value);
  }
}"""


def run(engine, rates=(), **options):
    """What a run says at each step, and its loss on the held-out sequences."""
    return engine.run(RUN, SMALL | options, list(rates))


def test_a_step_says_loss_and_profiles(engine):
    steps, held_out = run(engine)
    assert [each["step"] for each in steps] == list(range(8))
    assert all(
        len(each[what]) == 3
        for each in steps
        for what in ("gradient", "cosine", "size")
    )
    assert held_out < steps[0]["loss"]


def test_a_model_without_layers(engine):
    steps, _ = run(engine, layers=0)
    assert [len(each["gradient"]) for each in steps] == [1] * 8


def test_a_run_starts_again_alike(engine):
    assert run(engine, seed=3) == run(engine, seed=3) != run(engine, seed=4)


def test_a_run_ends_where_its_loss_does(engine):
    steps, held_out = run(engine, placement="none", rate=1e30)
    assert len(steps) < 8
    assert steps[-1]["loss"] is None is held_out  # NaN, as JSON has it


def test_a_rate_holds_from_the_step_that_gets_it(engine):
    """Without a rate the weights stay: as in a run that stands from there on."""
    moved, _ = run(engine)
    stopped, _ = run(engine, rates=[None, None, None, 0])
    assert stopped[:3] == moved[:3]
    assert stopped[3:] != moved[3:]
    still, held_out = run(engine, rate=0)
    assert run(engine, rates=[None, 0])[1] == held_out != run(engine)[1]
    assert still[0] == moved[0]


BROWSERS_OWN = re.compile(
    r"Math\.(?!abs|ceil|floor|fround|imul|max|min|round|sign|sqrt|[A-Z])\w+"
    r"|(?<!/)\*\* (?!\d)|\b(?:Date|performance|document|globalThis)\b"
)


def test_a_run_is_the_same_in_every_browser():
    """Each may round exp, powers and the like in its own way, and has a clock."""
    found = {
        path.name: BROWSERS_OWN.findall(path.read_text(encoding="utf-8"))
        for path in explore.modules(explore.ENGINE / "training.js")
    }
    edges = found.pop("elementary.js")  # infinities and NaN
    assert edges == ["Math.log"]
    assert len(found) >= 10 and not any(found.values()), found


@pytest.mark.parametrize("planted", ["Math.exp(x)", "b ** k", "Math.random()"])
def test_what_browsers_do_in_their_own_way_is_found(planted):
    assert BROWSERS_OWN.search(planted)


SHARES = "(steps, up) => Array.from({ length: steps }, (_, i) => share(i, steps, up))"


@pytest.mark.parametrize("up", [0, 1, 5, 10])
def test_schedule(engine, up):
    """Linear to the peak, then to zero."""
    found = engine.run(SHARES, 10, up)
    rising = [(step + 1) / up for step in range(up)]
    falling = [(10 - step) / (10 - up) for step in range(up, 10)]
    assert found == pytest.approx(rising + falling)


DRAW = """(seed, sequences, time) => {
  const { tokens, targets } = TASKS.largest.draw(new Random(seed), sequences, time);
  return [tokens, targets];
}"""


def names_the_largest(engine) -> bool:
    tokens, targets = map(torch.tensor, engine.run(DRAW, 1, 50, 16))
    assert set(tokens.tolist()) == set(range(32))
    wanted = tokens.view(50, 16).cummax(dim=1).values
    return torch.equal(targets.view(50, 16), wanted)


def test_the_task_is_to_name_the_largest_token_so_far(engine):
    assert names_the_largest(engine)


START = """(options) => {
  const model = decoder(options, new Random(5));
  model.run(new Tape(), [0], [0], 1);
  return Object.entries(model.parameters).map(([name, p]) => [name, bitsOf(p.value)]);
}"""


def start(engine, placement: str) -> dict[str, torch.Tensor]:
    options = {"d": 32, "heads": 2, "layers": 2, "vocabulary": 100, "norm": "rms"}
    found = engine.run(START, options | {"placement": placement})
    return {name: floats(values) for name, values in found}


def test_matrices_are_drawn_alike_in_all_placements(engine):
    """With variance 1 / fan-in, the embedding with variance 1; biases are zero."""
    pre, post = start(engine, "pre"), start(engine, "post")
    weights = [name for name in pre if name.endswith("weight")]
    assert len(weights) == 10
    for name in weights:
        assert torch.equal(pre[name], post[name])
        inputs = (
            128 if name in ("blocks.1.writer.weight", "blocks.3.writer.weight") else 32
        )
        wanted = 1.0 if name == "embedding.weight" else inputs**-0.5
        assert pre[name].std().item() == pytest.approx(wanted, rel=0.08)
    assert not any(v.any() for name, v in pre.items() if name.endswith("bias"))


def test_deepnorm_draws_all_but_queries_and_keys_smaller(engine):
    pre, deep = start(engine, "pre"), start(engine, "deepnorm")
    beta = 16**-0.25
    for name in (name for name in deep if name.endswith("weight")):
        wanted = pre[name].clone()
        if "reader" in name and len(wanted) == 3 * 32 * 32:
            wanted[2 * 32 * 32 :] *= beta
        elif "blocks" in name:
            wanted *= beta
        assert torch.allclose(deep[name], wanted, rtol=1e-6)


PROFILE = """(x, width, time) => {
  const stream = tensor(x.length / width, width);
  stream.value.set(floats(x));
  return [rms(stream.value), meanCosine(stream, time)];
}"""


def profiles(engine) -> bool:
    """Size of the stream and cosine of its tokens, against torch."""
    x = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(0)) + 0.3
    x[1] = x[1, 0]  # all alike
    x[2, 1] = 0
    units = F.normalize(x, dim=-1)
    cosines = (units @ units.mT)[:, ~torch.eye(5, dtype=torch.bool)]
    wanted = [x.square().mean().sqrt().item(), cosines.mean().item()]
    return engine.run(PROFILE, bits(x), 7, 5) == pytest.approx(wanted, rel=1e-5)


def test_profiles(engine):
    assert profiles(engine)


@pytest.mark.parametrize(
    ("check", "old", "new"),
    [
        (profiles, "squared(along) - own", "0"),
        (profiles, "(rows * (time - 1))", "(rows * time)"),
        (profiles, "/ x.length)", ")"),
        (names_the_largest, "i % time ? most : 0", "most"),
    ],
)
def test_a_mistake_is_rejected(check, old, new):
    with loaded(old, new) as wrong:
        assert not check(wrong)


def test_a_loss_starts_near_that_of_guessing(engine):
    steps, _ = run(engine, steps=1)
    assert steps[0]["loss"] == pytest.approx(math.log(32), abs=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_the_opening_ends_as_recorded_in_torch(engine, seed):
    """Six layers: Pre-Norm learns, Post-Norm ends worse than no layers at all."""
    found = records.find("running_maximum_loss")
    record = next(each for each in found if each.kind == "cpu")
    cell = {"quantity": "held_out", "d": 16, "rate": 0.01}
    bare = record.select(arm="no_layers", **cell)
    pre = record.select(arm="pre", layers=6, **cell)
    assert len(bare) == len(pre) == 5
    least = min(row["values"][-1] for row in bare)
    most = max(row["values"][-1] for row in pre)
    opening = {"layers": 6, "steps": 600, "seed": seed}
    assert run(engine, placement="pre", **opening)[1] < 2 * most < least
    assert run(engine, placement="post", **opening)[1] > least
