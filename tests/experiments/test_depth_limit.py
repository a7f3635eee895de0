"""The experiment measures what its page says, and says it in both languages."""

import re
from math import inf, log

import pytest
import torch

from scripts.experiments import depth_limit
from scripts.measure import design
from scripts.measure.records import find
from scripts.measure.together import warm_up
from tests.experiment_checks import check_facts, draw, plain_step, select, with_values

TINY = depth_limit.SIZES["tiny"]
SEEDS = list(depth_limit.SEEDS)


def test_rows(rows):
    ((slow, depth, factor),) = TINY["longer"]
    stacks = [(a, n, TINY["steps"]) for n in TINY["depths"] for a in depth_limit.ARMS]
    stacks.append((slow, depth, factor * TINY["steps"]))
    without = [
        (arm, 0, TINY["steps"] * n) for arm in depth_limit.WITHOUT for n in (1, factor)
    ]
    kinds = [(s, blocks) for s in stacks for blocks in ("trained", "frozen")]
    for (arm, layers, steps), blocks in kinds + [(s, "trained") for s in without]:
        run = dict(placement=arm, layers=layers, steps=steps, blocks=blocks)
        for rate in TINY["rates"]:
            found = select(rows, quantity="loss", learning_rate=rate, **run)
            assert [row["seed"] for row in found] == SEEDS
            assert all(len(row["values"]) == 2 for row in found)
        found = select(rows, quantity="gradient", **run)
        wanted = SEEDS if layers and blocks == "trained" else []
        assert [row["seed"] for row in found] == wanted
        assert all(len(row["values"]) == 5 for row in found)
    assert len(rows) == (2 * 9 + 4) * 5 * 2 + 9 * 5 + 3


@pytest.mark.parametrize(
    ("arm", "frozen"),
    [(arm, frozen) for arm in depth_limit.ARMS for frozen in (False, True)]
    + [(arm, False) for arm in depth_limit.WITHOUT],
)
def test_a_run_is_a_plain_loop_of_adamw(rows, arm, frozen):
    layers, seed, steps = 0 if arm in depth_limit.WITHOUT else 3, 3, TINY["steps"]
    for rate in TINY["rates"]:
        model = depth_limit.fresh(arm, layers, TINY, seed)
        learned = list(model.parameters())
        if frozen:  # embedding, head and, where there is one, the final norm
            ends = [model[0], model[-1], *model[1 + 2 * layers : -1]]
            learned = [weight for module in ends for weight in module.parameters()]
        drawn = {name: weight.clone() for name, weight in model.named_parameters()}
        optimizer = torch.optim.AdamW(learned, rate, weight_decay=0.0)
        factor = warm_up(steps, 1)
        generator = torch.Generator().manual_seed(seed)
        held_out = depth_limit.held_out(TINY)
        values = [depth_limit.loss_of(model, held_out).item()]
        for step in range(steps):
            text = depth_limit.sequences(TINY["batch"], TINY["context"], generator)
            loss = depth_limit.loss_of(model, text)
            plain_step(optimizer, loss, rate * factor(step))
            if step == 0:
                linear = [m for m in model.modules() if isinstance(m, torch.nn.Linear)]
                down = [m.weight for m in linear if m.in_features == 4 * TINY["d"]]
                norms = [float(weight.grad.norm()) for weight in down]
        values.append(depth_limit.loss_of(model, held_out).item())
        wanted = dict(placement=arm, layers=layers, seed=seed)
        wanted |= dict(blocks="frozen" if frozen else "trained", steps=steps)
        (found,) = select(rows, quantity="loss", learning_rate=rate, **wanted)
        assert found["values"] == pytest.approx(values, abs=1e-4)
        moved = [n for n, w in model.named_parameters() if not torch.equal(w, drawn[n])]
        assert any(name.endswith("down.weight") for name in moved) != bool(
            frozen or not layers
        )
    if frozen or not layers:
        return
    (found,) = select(rows, quantity="gradient", **wanted)
    assert len(norms) == layers
    ends = found["values"][0], found["values"][-1]
    assert ends == pytest.approx((norms[0], norms[-1]), rel=1e-3)


def test_arms_are_what_they_say():
    layers, x = 3, torch.randn(2, 4, TINY["d"])
    post, pre, sandwich, deep = (
        depth_limit.fresh(arm, layers, TINY, 0) for arm in depth_limit.ARMS
    )
    norm, (alpha, beta) = torch.nn.functional.layer_norm, (6**0.25, 24**-0.25)
    shape = x.shape[-1:]
    stacks = [model[1 : 2 * layers + 1] for model in (post, pre, sandwich)]
    for blocks in zip(*stacks, strict=True):
        f = blocks[0].branch
        plain = [block(x) for block in blocks]
        expected = [
            norm(x + f(x), shape),
            x + f(norm(x, shape)),
            x + norm(f(norm(x, shape)), shape),
        ]
        for one, other in zip(plain, expected, strict=True):
            assert torch.allclose(one, other, atol=1e-5)
    for block in deep[1:-1]:
        assert torch.allclose(
            block(x), norm(alpha * x + block.branch(x), shape), atol=1e-5
        )
    ends = [isinstance(model[-2], torch.nn.LayerNorm) for model in (post, pre)]
    assert ends == [False, True]
    assert isinstance(sandwich[-2], torch.nn.LayerNorm)
    assert len(post) == len(deep) == 2 * layers + 2
    scaled = dict(deep.named_parameters())
    for name, weight in post.named_parameters():
        small = name.split(".")[-2] in ("value", "output", "up", "down")
        assert torch.allclose(scaled[name], beta * weight if small else weight)
    assert torch.equal(post[0].weight, sandwich[0].weight)


def test_controls_are_what_they_say():
    tokens = torch.randint(depth_limit.VOCABULARY, (2, 4))
    bare, normed = (depth_limit.fresh(arm, 0, TINY, 0) for arm in depth_limit.WITHOUT)
    x = bare[0](tokens)
    assert torch.equal(bare(tokens), bare[-1](x))
    plain = torch.nn.functional.layer_norm(x, x.shape[-1:])
    assert torch.allclose(normed(tokens), bare[-1](plain), atol=1e-6)
    for arm in depth_limit.ARMS:
        whole, frozen = (
            depth_limit.fresh(arm, 2, TINY, 0, frozen) for frozen in (False, True)
        )
        assert torch.equal(whole(tokens), frozen(tokens))
        names = {name.partition(".")[0] for name, _ in frozen.named_parameters()}
        final = {"5"} if arm in ("pre", "sandwich") else set()
        assert names == {"0", str(len(frozen) - 1)} | final
        assert whole.state_dict().keys() == frozen.state_dict().keys()


def test_task():
    size = {**TINY, "held_out": 4000, "context": 8}
    text = depth_limit.held_out(size)
    assert text.shape == (4000, 9)
    found = depth_limit.references(text)
    assert list(found) == list(depth_limit.REFERENCES)
    assert found["unigram"] == pytest.approx(log(4))
    # The second token is the first with chance s, each other with (1 - s) / 3.
    high, low = 0.85, 0.05
    s = high**2 + 3 * low**2
    exact = -s * log(s) - (1 - s) * log((1 - s) / 3)
    assert found["last_token"] == pytest.approx(exact, abs=0.02)
    assert float((text[:, 1:] == text[:, :-1]).double().mean()) == pytest.approx(
        s, abs=0.01
    )
    entropy = -high * log(high) - 3 * low * log(low)
    assert entropy < found["best"] < found["last_token"] - 0.1
    first = depth_limit.references(text[:, :2])
    assert first["best"] == pytest.approx(first["last_token"])


def test_the_deepest_stacks_may_be_fewer():
    size = {**TINY, "deepest": ("pre",)}
    assert depth_limit.arms_at(TINY, 3) == depth_limit.ARMS
    assert depth_limit.arms_at(size, 2) == depth_limit.ARMS
    assert depth_limit.arms_at(size, 3) == ("pre",)
    cells = [step.cell for step in depth_limit.measure("small")]
    deep = [cell["placement"] for cell in cells if cell.get("layers") == 1000]
    assert deep == ["deepnorm", "deepnorm"]


def made(record, loss):
    """The record with losses, gradients and references made up."""

    def values(row):
        quantity = row["quantity"]
        if quantity == "loss":
            return [2.0, loss(row)]
        if quantity == "gradient":
            return [1e-6 if row["placement"] == "post" else 3.0, 1, 1, 1, 1.5]
        plain = {"unigram": 1.4, "last_token": 0.9, "best": 0.6}
        return [plain[quantity]] * len(row["values"])

    return with_values(record, values)


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""

    def loss(row):
        if row["learning_rate"] == 4e-2:
            return None
        seed = 0.01 * row["seed"]
        if row["placement"] in depth_limit.WITHOUT:
            return 0.9 + seed - 0.1 * (row["placement"] == "normed")
        if row["blocks"] == "frozen":
            return 0.95 + seed
        if row["placement"] == "post" and row["steps"] == TINY["steps"]:
            return 1.15 + 0.3 * (row["layers"] == 3)
        if row["placement"] == "pre":  # ahead on average, but one seed is far off
            return 0.7 + 0.3 * (row["seed"] == 4)
        return 0.7 + seed - 0.1 * (row["placement"] == "deepnorm")

    expected = {
        "bare": "0.92",
        "normed": "0.82",
        "post_2": "1.15",
        "post_least": "1.15",
        "post_3_range": "[1.45, 1.45]",
        "post_3_less_frozen": "0.48 ± 0.01",
        "post_trains_at": "0",
        "post_trains_up_to": "0",
        "pre_most": "0.70",
        "pre_most_rate": "0.01",
        "pre_3_less_normed": "−0.06 ± 0.06",
        "pre_3_trains": "✗",
        "deepnorm_3_less_frozen": "−0.35 ± 0.00",
        "deepnorm_3_trains": "✓",
        "deepnorm_trains_at": "2, 3",
        "deepnorm_trains_up_to": "3",
        "post_second": "1.15",
        "post_most_gradient_ratio": "6.7 × 10⁻⁷",
        "pre_most_gradient_ratio": "2",
    }
    check_facts(depth_limit, made(record, loss), expected)
    lost = depth_limit.facts(made(record, lambda row: None))
    assert lost["post_3"] == "∞"
    assert lost["post_3_trains"] == "✗"
    assert lost["post_trains_at"] == lost["deepnorm_trains_at"] == "0"


def test_a_verdict_needs_every_control(record):
    """A stack that is no better than its frozen twin does not train."""

    def trains(**losses):
        def loss(row):
            known = row["placement"] if row["blocks"] == "trained" else "frozen"
            return losses.get(known, 1.0) + 0.01 * row["seed"]

        return depth_limit.trains(made(record, loss), "pre", 3)

    assert trains(pre=0.6)
    assert not trains(pre=0.6, frozen=0.6)
    assert not trains(pre=0.6, bare=0.5)
    assert not trains(pre=0.6, normed=0.5)


def test_losses_that_are_not_finite_are_null():
    row = depth_limit.row(
        "post", 2, "trained", TINY, 1, 1e-3, 0, "loss", [1.0, inf, float("nan")]
    )
    assert row["values"] == [1.0, None, None]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    figure = draw(depth_limit, record, lang)
    by_depth, by_rate = figure.axes
    assert len(by_depth.lines) == 2 * 4 + 1 + 3
    assert len(by_rate.lines) == 2 + 3
    ends = {text.get_text(): text.get_position()[0] for text in by_depth.texts}
    assert set(ends) == {
        depth_limit.WORDS[lang][n] for n in ("unigram", "best", "normed")
    }
    assert min(ends.values()) > 1  # beside the panel, where no curve runs
    assert by_depth.get_ylim() == by_rate.get_ylim()
    draw(depth_limit, made(record, lambda row: None), lang)


def test_post_norm_passes_at_none_of_the_depths():
    """The page says so in words; a new record that differs has to change them."""
    (record,) = find("depth_limit")
    assert depth_limit.facts(record)["post_trains_at"] == "0"


def test_each_control_on_the_edge_is_named():
    shape = depth_limit.DESIGN
    (record,) = find("depth_limit")
    on_edge = {}
    for arm, (layers,) in sorted(design.edges(shape.read(record))):
        on_edge.setdefault(f"edges.{arm}", []).append(layers)
    said = {
        (rule, language): [int(n) for n in re.findall(r"\d+", text)]
        for rule, texts in shape.lacks.items()
        for language, text in texts.items()
    }
    assert said == {
        (rule, to): on_edge[rule] for rule in on_edge for to in ("en", "zh")
    }
