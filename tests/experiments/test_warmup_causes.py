"""The experiment measures what its page says, and says it in both languages."""

from math import log

import pytest
import torch

from scripts.experiments import warmup_causes
from scripts.measure.corpus import corpus, loss_of, sample
from scripts.measure.together import Together
from tests.experiment_checks import check_facts, draw, plain_step, select, with_values

TINY = warmup_causes.SIZES["tiny"]
SEEDS = list(warmup_causes.SEEDS)
ARMS = [(p, arm) for p, arms in warmup_causes.ARMS.items() for arm in arms]


def test_rows(rows):
    for placement, arm in ARMS:
        rates = TINY["sgd_rates" if arm in warmup_causes.SGD else "rates"]
        for rate in rates:
            wanted = dict(placement=placement, arm=arm, learning_rate=rate)
            for quantity in ("loss", "rotation"):
                found = select(rows, quantity=quantity, **wanted)
                assert [row["seed"] for row in found] == SEEDS
                assert all(len(row["values"]) == 2 for row in found)
    for arm in warmup_causes.CONTROLS:
        assert len(select(rows, arm=arm, quantity="loss")) == 2 * len(SEEDS)
    critical = select(rows, quantity="critical")
    assert {row["arm"] for row in critical} == {"adam", "warm_up"}
    assert all(1e-6 < min(row["values"]) <= 1 for row in critical)
    (alone,) = select(rows, quantity="frequencies")
    assert 2.5 < alone["values"][0] < log(256)


def plain(arm, optimizer, factor, steps, seed=3):
    """torch's own optimizer on one model and the same text."""
    model = warmup_causes.fresh("post", arm, TINY, seed)
    made = optimizer(model.parameters())
    rate = made.param_groups[0]["lr"]
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        text = sample(corpus()[0], TINY["batch"], TINY["context"], generator)
        plain_step(made, loss_of(model, text), rate * factor(step))
    size = (TINY["pieces"], TINY["context"])
    fixed = torch.Generator().manual_seed(0)
    return loss_of(model, sample(corpus()[1], *size, fixed)).item()


def falls(step):
    return (10 - step) / 10


def rises(step):  # three steps of ten
    return min((step + 1) / 3, (10 - step) / 7)


@pytest.mark.parametrize(
    ("arm", "optimizer", "factor"),
    [
        ("adam", lambda p: torch.optim.Adam(p, 1e-2), falls),
        ("warm_up", lambda p: torch.optim.Adam(p, 1e-2), rises),
        ("radam", lambda p: torch.optim.RAdam(p, 1e-2), falls),
        ("admin", lambda p: torch.optim.Adam(p, 1e-2), falls),
        ("sgd", lambda p: torch.optim.SGD(p, 1.0, momentum=0.9), falls),
    ],
)
def test_a_run_is_that_of_torchs_own_optimizer(rows, arm, optimizer, factor):
    rate = 1.0 if arm == "sgd" else 1e-2
    wanted = dict(placement="post", arm=arm, learning_rate=rate, seed=3)
    (row,) = select(rows, quantity="loss", **wanted)
    expected = plain(arm, optimizer, factor, TINY["steps"])
    assert row["values"][1] == pytest.approx(expected, rel=1e-4)


def made(arm, runs=2):
    models = Together(
        [warmup_causes.fresh("post", arm, TINY, seed) for seed in range(runs)]
    )
    optimizer = warmup_causes.Optimizer(models, arm, [0.01] * runs, TINY["layers"])
    text = torch.randint(256, (runs, 2, 9), generator=torch.Generator().manual_seed(1))
    return models, optimizer, models.gradients(loss_of, text)[1], text


def moved(arm, slow=1.0):
    models, optimizer, gradients, _ = made(arm)
    before = {name: each.clone() for name, each in models.parameters.items()}
    optimizer.step(gradients, 1.0, slow)
    return {name: models.parameters[name] - each for name, each in before.items()}


def test_warm_up_of_a_half_slows_that_half():
    for arm, upper in (("upper_warm_up", True), ("lower_warm_up", False)):
        full, slowed = moved("adam"), moved(arm, slow=0.25)
        for name in full:
            in_upper = name.startswith(("blocks.2", "blocks.3", "norm", "head"))
            factor = 0.25 if in_upper == upper else 1.0
            assert torch.allclose(slowed[name], factor * full[name], atol=1e-7), name
    assert len([n for n in full if n.startswith("blocks.2")]) == 6


def test_a_capped_matrix_moves_a_fifth_of_the_first_step():
    full, capped = moved("adam"), moved("capped")
    for name, change in full.items():
        if change.ndim == 2:
            assert torch.equal(capped[name], change)  # gains and biases are not capped
        elif change.norm() > 0:
            lengths = capped[name].flatten(1).norm(dim=1)
            least = 0.01 * warmup_causes.CAP * change[0].numel() ** 0.5
            assert torch.all(lengths <= least * 1.0001), name
    head = capped["head.weight"].flatten(1).norm(dim=1)
    assert torch.allclose(
        head, full["head.weight"].flatten(1).norm(dim=1) * 0.2, rtol=0.05
    )


def test_filled_moments_are_averages_at_the_same_weights():
    models, optimizer, gradients, _ = made("filled_second")
    before = {name: each.clone() for name, each in models.parameters.items()}
    for _ in range(5):
        optimizer.fill(gradients, False, True)
    assert optimizer.mean_steps == 0 and optimizer.square_steps == 5
    for name, slope in gradients.items():
        assert torch.equal(models.parameters[name], before[name])
        assert not optimizer.means[name].any()
        square = optimizer.squares[name] / (1 - 0.999**5)
        assert torch.allclose(square, slope**2, rtol=1e-3, atol=1e-12)


def test_clipped_gradients_are_no_longer_than_the_limit():
    _, optimizer, gradients, _ = made("clipped")
    long = {name: 100 * each for name, each in gradients.items()}
    optimizer.step(long, 1.0, 1.0)
    square = sum(each.flatten(1).square().sum(1) for each in long.values())
    assert torch.all(square.sqrt() <= warmup_causes.CLIP * 1.001)


def test_frozen_blocks_stay_as_drawn():
    for name, change in moved("frozen").items():
        assert bool(change.any()) != name.startswith("blocks."), name
    assert not list(warmup_causes.fresh("post", "no_layers", TINY, 0).blocks)


def test_admin_profiles_its_branches():
    model = warmup_causes.fresh("post", "admin", TINY, 2)
    plain_model = warmup_causes.fresh("post", "adam", TINY, 2)
    generator = torch.Generator().manual_seed(3002)
    text = sample(corpus()[0], TINY["batch"], TINY["context"], generator)
    total, x = 1.0, plain_model.embedding(text[:, :-1])
    for block, admin in zip(plain_model.blocks, model.blocks, strict=True):
        assert torch.allclose(admin.omega, torch.full((8,), total**0.5), rtol=1e-5)
        f = block.sublayer(x)
        total += f.var(unbiased=False).item()
        x = block.norm(x + f)
    y = torch.randn(2, 5, 8)
    block = model.blocks[-1]
    expected = block.norm(block.omega * y + block.sublayer(y))
    assert torch.allclose(block(y), expected)
    assert block.omega.requires_grad


def test_critical_step_lowers_the_loss_and_no_longer_one_does():
    models, optimizer, gradients, text = made("adam")
    optimizer.fill(gradients, True, True)
    before = {name: each.clone() for name, each in models.parameters.items()}
    found = warmup_causes.critical(models, optimizer, text)
    assert all(torch.equal(models.parameters[n], before[n]) for n in before)
    scaled = {n: g / (g.abs() + 1e-8) for n, g in gradients.items()}
    square = sum(each.flatten(1).square().sum(1) for each in scaled.values())
    rms = (square / sum(each[0].numel() for each in scaled.values())).sqrt()
    start = models.losses(loss_of, text)
    for factor, lower in ((1.0, True), (2**0.5, False)):
        for name, each in scaled.items():
            length = (factor * found / rms).reshape(-1, *[1] * (each.ndim - 1))
            models.parameters[name] = before[name] - length * each
        assert torch.all((models.losses(loss_of, text) < start) == lower)


def test_rectified_starts_late_and_ends_at_one():
    assert [warmup_causes.rectified(step) for step in range(1, 6)] == [None] * 5
    grown = [warmup_causes.rectified(step) for step in (6, 20, 200, 2000, 20000)]
    assert grown == sorted(grown) and grown[0] < 0.05 and grown[-1] > 0.999


@pytest.fixture(scope="module")
def told(record):
    """Rows made up so that every number can be told by eye."""

    def values(row):
        if row["quantity"] == "frequencies":
            return [3.0]
        if row["quantity"] == "rotation":
            return [0.02, 0.01]
        if row["quantity"] == "critical":
            return [0.001, 0.004]
        fast = row["learning_rate"] in (TINY["rates"][-1], TINY["sgd_rates"][-1])
        if row["placement"] == "post" and row["arm"] == "adam" and fast:
            return [6.0, None if row["seed"] else 4.0]
        if row["arm"] == "warm_up":
            return [6.0, 2.0 + 0.1 * row["seed"]]
        return [6.0, 2.0]

    return with_values(record, values)


def test_facts_say_what_the_rows_say(told):
    expected = {
        "post_adam_highest_diverged": "4",
        "post_adam_highest_above": "1",
        "post_adam_lower_below": "5",
        "post_adam_highest": "\u2014",
        "post_adam_lower": "2.00",
        "post_adam_best": "2.00",
        "post_warm_up_highest": "2.20",
        "warm_up_gain_lower": "\u22120.20 ± 0.07",
        "lower_rate_less_warm_up": "\u22120.20 ± 0.07",
        "radam_less_lower": "\u22120.200 ± 0.071",
        "frequencies": "3.00",
        "lower": "0.003",
        "highest": "0.01",
    }
    facts = check_facts(warmup_causes, told, expected)
    assert "warm_up_gain_highest" not in facts  # a run failed: there are no pairs


@pytest.mark.parametrize(
    ("after", "word"),
    [
        (2.9, "below"),
        (2.96, "plateau"),
        (3.04, "plateau"),
        (4.1, "above"),
        (None, "diverged"),
    ],
)
def test_no_outcome_is_taken_for_another(after, word):
    assert warmup_causes.outcome(6.0, after, 3.0) == word


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(told, lang):
    figure = draw(warmup_causes, told, lang)
    assert [len(axis.get_yticks()) for axis in figure.axes] == [11, 2]
    drawn = [x for axis in figure.axes for line in axis.lines for x in line.get_xdata()]
    ended = [
        loss
        for row in told.select(quantity="loss")
        if row["arm"] not in warmup_causes.CONTROLS
        and (loss := row["values"][1]) is not None
    ]
    assert max(ended) == 4.0  # above the frequencies, 3.0: it is not cut to them
    assert set(ended) <= set(drawn)
