"""The experiment measures what its page says, and says it in both languages."""

from dataclasses import replace
from functools import partial
from itertools import product
from math import isclose

import pytest
import torch

from scripts.experiments import batch_norm_in_transformer as experiment
from scripts.measure.corpus import loss_of
from scripts.measure.together import Together, alone, warm_up
from snippets.batch_norm_vs_layer_norm.norms import BatchNorm
from snippets.batch_norm_vs_layer_norm.padding import MaskedBatchNorm
from snippets.rms_norm.small_decoder import SmallDecoder
from tests.experiment_checks import check_facts, plain_step, select

TINY, RATES = experiment.SIZES["tiny"], experiment.RATES
SEEDS = list(experiment.SEEDS)
RUNS = len(SEEDS) * len(RATES)
CLOSELY = (
    "training",
    "reach",
    "loss_no_future",
    "shared",
    "pad_shift",
    "pad_loss_pooled",
    "pad_move_pooled",
    "pad_move_masked",
    "fluctuation_mean",
    "fluctuation_variance",
)
LINES = [6, 2 * (4 + 1) + 2]  # LayerNorm's zero, four of BatchNorm, RMSNorm; one batch


def model_of(norm, seed=0, context=8):
    """A model whose norms have gains, biases and running statistics to tell apart."""
    model = experiment.fresh(norm, {**TINY, "context": context}, seed).double()
    torch.manual_seed(1)
    with torch.no_grad():
        for name, each in [*model.named_parameters(), *model.named_buffers()]:
            if "norm" in name:
                each.copy_(0.5 + torch.rand_like(each))
    return model


def scored(function, model):
    """function(model) as the experiment calls it: on a stack, here of one run."""
    found = Together([model]).losses(function)
    return [each[0] for each in found] if isinstance(found, tuple) else found[0]


def nats_on(texts):
    return lambda model: experiment.nats(model, texts[..., :-1], texts[..., 1:])


def text_of(*shape):
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(3))


def test_rows(rows):
    norms = 2 * TINY["layers"] + 1
    reference = TINY["reference"]
    cells = [(n, "none", b) for n in ("BatchNorm", "LayerNorm") for b in (1, 4)]
    cells += [("RMSNorm", "none", reference)]
    cells += [("BatchNorm", padding, reference) for padding in ("pooled", "masked")]
    cells = [(*cell, experiment.steps_of(TINY, cell[2])) for cell in cells]
    cells.append(("BatchNorm", "none", 1, experiment.steps_of(TINY, 4)))
    for norm, padding, batch, steps in cells:
        cell = select(rows, norm=norm, padding=padding, batch=batch, steps=steps)
        found = select(cell, quantity="loss")
        runs = [(row["rate"], row["seed"]) for row in found]
        assert runs == [(rate, seed) for rate in RATES for seed in SEEDS]
        assert all(row["values"][0] > 2 for row in found)
        closely = {row["rate"] for row in select(cell, quantity="training")}
        assert len(closely) in (1, 2)
        for row in select(cell, quantity="training"):
            assert len(row["values"]) == experiment.BINS["tiny"]
        for rate in closely:
            one = select(cell, rate=rate, seed=SEEDS[-1])
            assert [r["place"] for r in select(one, quantity="shared")] == [
                *range(norms)
            ]
        batch_norm = ["loss_batch", "loss_exact", "fluctuation_mean"]
        for quantity in batch_norm:
            assert bool(select(cell, quantity=quantity)) == (norm == "BatchNorm")
        future = len(select(cell, quantity="loss_no_future"))
        plain = norm == "BatchNorm" and padding == "none"
        assert future == (len(closely) * len(SEEDS) if plain else 0)
        padded = select(cell, quantity="pad_loss_masked")
        assert bool(padded) == (norm == "BatchNorm" and batch == reference)
        assert all(len(row["values"]) == 3 for row in padded)


@pytest.fixture
def float64():
    """Biases of keys have no gradient, and AdamW follows its rounding error."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("padding", ["none", "masked"])
def test_training_is_that_of_the_pages_batch_norm_in_a_plain_loop(padding, float64):
    """Weights and running statistics of one run, with torch's own AdamW."""
    models, history, _ = experiment.train_all("tiny", "BatchNorm", padding, 4, 2)
    run = 2 * len(SEEDS) + 3  # third rate, seed 3
    torch.manual_seed(3)
    sizes = [TINY[name] for name in ("d", "layers", "heads", "context")]
    norm = BatchNorm if padding == "none" else MaskedBatchNorm
    model = SmallDecoder(*sizes, norm=norm)
    norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
    rate, steps = RATES[2], experiment.steps_of(TINY, 4)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.1)
    data = experiment.batches(TINY, padding, 4)
    factor, losses = warm_up(steps, 1), []
    for step in range(steps):
        text, *counted = (each[run] for each in data(step))
        if counted:
            (mask,) = counted
            for module in norms:  # the page's takes the mask as an argument
                module.forward = partial(type(module).forward, module, mask=mask)
            logits = model(text[:, :-1].masked_fill(~mask, experiment.PAD))
            loss = torch.nn.functional.cross_entropy(logits[mask], text[:, 1:][mask])
        else:
            loss = loss_of(model, text)
        losses.append(loss.item())
        plain_step(optimizer, loss, rate * factor(step), clip=1.0)
    state = models.state(run)
    for name, each in [*model.named_parameters(), *model.named_buffers()]:
        assert torch.allclose(each, state[name], rtol=1e-8, atol=1e-10), name
    assert history[:, run].tolist() == pytest.approx(losses, rel=1e-10)
    assert steps == experiment.BINS["tiny"]  # so that a bin is a step


def test_only_batch_statistics_read_the_future():
    texts, others = text_of(2, 3, 9), text_of(5, 3, 9)[:2].flip(0)
    reading, honest = model_of("BatchNorm"), model_of("BatchNorm").eval()
    for model in (model_of("LayerNorm"), model_of("RMSNorm"), honest):
        loss = scored(experiment.loss_on(texts), model)
        cut = scored(experiment.loss_without_future(texts, others), model)
        assert float((loss - cut).detach().abs()) < 1e-12
        assert float(scored(experiment.reach_on(texts), model).detach()) < 1e-12
    assert float(scored(experiment.reach_on(texts), reading).detach()) > 1e-4
    # By hand, one batch and one position at a time.
    total = 0.0
    for text, other in zip(texts, others, strict=True):
        for t in range(8):
            inputs = torch.cat((text[:, : t + 1], other[:, t + 1 : 8]), dim=1)
            logits = reading(inputs)[:, t]
            total += torch.nn.functional.cross_entropy(logits, text[:, t + 1])
    cut = scored(experiment.loss_without_future(texts, others), reading)
    assert isclose(float(cut.detach()), float(total.detach()) / 16, rel_tol=1e-12)


def test_decoding_with_running_statistics_does_not_look_at_the_batch():
    """Batches of 1 and of 6 score alike, and so does one token at a time."""
    texts, model = text_of(1, 6, 9), model_of("BatchNorm").eval()
    whole = scored(nats_on(texts), model)[0]
    single = texts.transpose(0, 1)
    apart = scored(nats_on(single), model)[:, 0]
    assert torch.allclose(whole, apart, rtol=1e-12)
    for t in range(8):
        last = model(texts[0, :, : t + 1])[:, -1]
        loss = torch.nn.functional.cross_entropy(
            last, texts[0, :, t + 1], reduction="none"
        )
        assert torch.allclose(loss, whole[:, t], rtol=1e-10)


def test_exact_statistics_are_those_of_the_large_batch():
    text = text_of(6, 9)
    model = model_of("BatchNorm")
    heard = experiment.statistics_of(model, text)
    models = Together([model])
    experiment.move(models, heard[None], 1.0)
    assert torch.allclose(experiment.running(models)[0], heard)
    settled = alone(models, 0).eval()
    inputs = {}
    for name, module in settled.named_modules():
        if isinstance(module, BatchNorm):
            module.register_forward_pre_hook(
                lambda module, x, name=name: inputs.__setitem__(name, x[0])
            )
    settled(text[:, :-1])
    first = inputs["branches.0.norm"].flatten(end_dim=1)
    assert torch.allclose(heard[0, 0], first.mean(0))
    assert torch.allclose(heard[0, 1], first.var(0))


def test_padding_reaches_real_tokens_through_pooled_statistics_alone():
    texts = text_of(2, 3, 9)
    model = model_of("BatchNorm")
    losses, moves, masked, none, shift = scored(experiment.pad_scores(texts), model)
    assert moves[0] == 0 < float(moves[1].detach()) < float(moves[2].detach())
    assert float(none.detach().max()) < 1e-12
    assert torch.allclose(masked, losses[0].expand(3), rtol=1e-12)
    # The first norm's shift by hand, with the page's masked BatchNorm.
    inputs, _, counted = experiment.padded(texts, 2, 8)
    assert counted.sum() == 2 * 3 * 2 and not inputs[~counted].any()
    squares = []
    for tokens, mask in zip(inputs, counted, strict=True):
        x = model.token(tokens) + model.position.weight
        means = x.flatten(end_dim=1).mean(0), x[mask].mean(0)
        squares.append((means[0] - means[1]) ** 2 / x[mask].var(0))
    by_hand = torch.stack(squares).mean().sqrt()
    assert isclose(float(shift[0].detach()), float(by_hand.detach()), rel_tol=1e-9)
    layer_norm, found = model_of("LayerNorm"), []
    for length in (2, 4, 8):
        inputs, targets, _ = experiment.padded(texts, 2, length)
        of = partial(experiment.nats, inputs=inputs, targets=targets)
        found.append(scored(of, layer_norm)[..., :2])
    assert torch.allclose(found[0], found[1], rtol=1e-12)
    assert torch.allclose(found[0], found[2], rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_shared_share_finds_what_was_put_in(share):
    generator = torch.Generator().manual_seed(0)
    topic = torch.randn(4000, 1, 16, generator=generator)
    token = torch.randn(4000, 8, 16, generator=generator)
    x = share**0.5 * topic + (1 - share) ** 0.5 * token + 7
    assert float(experiment.shared_share(x)) == pytest.approx(share, abs=0.01)


def test_best_rate_is_the_least_median_and_infinity_counts():
    nan = float("nan")
    assert experiment.best_rate([1, 1, 1, 2, 2, 2], [3, 9, 3, 4, 4, 4]) == 1
    assert experiment.best_rate([1, 1, 1, 2, 2, 2], [3, nan, nan, 4, 4, 4]) == 2


def test_batch_sizes_see_the_same_tokens_and_norms_start_alike():
    for name, setting in experiment.SIZES.items():
        tokens = {
            experiment.steps_of(setting, batch) * batch * setting["context"]
            for batch in setting["batches"]
        }
        assert tokens == {setting["tokens"]}
        assert all(experiment.HELD_OUT[name] % b == 0 for b in setting["batches"])
    one, other = (experiment.fresh(n, TINY, 3) for n in ("BatchNorm", "RMSNorm"))
    assert torch.equal(one.head.weight, other.head.weight)
    text, counted = experiment.batches(TINY, "pooled", 4)(0)
    assert len(text) == len(counted) == RUNS
    assert torch.equal(text[1], text[1 + len(SEEDS)])
    assert not torch.equal(text[0], text[1])
    assert int(counted.sum(-1).min()) >= TINY["context"] // 4


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""
    best = {"LayerNorm": 4e-3, "RMSNorm": 4e-3, "BatchNorm": 1.6e-2}

    def value(row):
        leaks = row["steps"] == 8 and row["rate"] == 1e-3
        if row["quantity"] == "loss_batch":
            return 1.5 if row["rate"] == 1e-3 else 2.0
        if row["quantity"] == "loss_no_future":
            return 4.5 if leaks else 2.25
        if row["quantity"] == "loss_exact":
            return 5.0
        loss = {"LayerNorm": 2.0, "RMSNorm": 2.25, "BatchNorm": 2.5}[row["norm"]]
        if row["padding"] == "pooled":
            loss += 0.25
        worse = 1 if row["rate"] != best[row["norm"]] else 0
        return None if leaks and row["norm"] == "BatchNorm" else loss + worse

    rows = [r for r in record.rows if r["quantity"] not in CLOSELY]
    rows = [
        {**r, "values": [value(r)]} if r["quantity"].startswith("loss") else r
        for r in rows
    ]
    some = {"norm": "BatchNorm", "place": None}
    cells = [("none", 1, 8), ("none", 1, 2), ("none", 4, 2)]
    cells += [("pooled", 4, 2), ("masked", 4, 2)]
    for padding, batch, steps in cells:
        for rate in (1e-3, 1.6e-2):
            for seed in SEEDS:
                one = {**some, "padding": padding, "batch": batch, "steps": steps}
                one |= {"rate": rate, "seed": seed}
                made = [("reach", [0.1]), ("pad_shift", [0.5, 0.25, 0.75])]
                made += [
                    (f"pad_{name}", [2.0, 2.5, 3.0])
                    for name in ("loss_pooled", "move_pooled", "move_masked")
                ]
                made.append(
                    ("loss_no_future", [value({**one, "quantity": "loss_no_future"})])
                )
                rows += [{**one, "quantity": q, "values": v} for q, v in made]
                for place in range(3):
                    rows += [
                        {
                            **one,
                            "quantity": q,
                            "place": place,
                            "values": [9.0, place / 2],
                        }
                        for q in ("fluctuation_mean", "fluctuation_variance")
                    ]
    for norm, steps, rate, values in (
        ("BatchNorm", 8, 1e-3, [3.0, 1.0]),
        ("LayerNorm", 8, 4e-3, [2.0, 2.0]),
    ):
        one = {"norm": norm, "padding": "none", "batch": 1, "steps": steps}
        one |= {"rate": rate, "quantity": "training", "place": None}
        rows += [{**one, "seed": seed, "values": values} for seed in SEEDS]
    for seed in SEEDS:
        for place, batch, rate in product(range(3), (1, 4), experiment.RATES):
            one = {"norm": "BatchNorm", "padding": "none", "batch": batch}
            one |= {"steps": 8 // batch, "rate": rate, "seed": seed}
            one |= {"quantity": "shared", "place": place}
            rows.append({**one, "values": [place / 10 / batch]})
    made = replace(record, rows=rows)
    expected = {
        "layer_norm_least": "2.000",
        "rms_norm_behind": "0.250",
        "running_least": "2.500",
        "behind_least": "0.500",
        "behind_least_range": "[0.500, 0.500]",
        "rate_least": "0.016",
        "layer_norm_rate_most": "0.004",
        "own_least": "2.000",
        "leak_least": "0.250",
        "trusting_rate_least": "0.001",
        "trusting_own_least": "1.500",
        "trusting_leak_least": "3.000",
        "trusting_running_least": "\u221e",
        "trusting_seems_ahead_least": "0.500",
        "ahead_from": "50%",
        "padded_exact_pooled": "5.000",
        "short_leak": "0.250",
        "batch_norm_diverged": "5",
        "layer_norm_diverged": "0",
        "fluctuation_most": "0.50",
        "independent_least": "0.35",
        "shared_first": "0%",
        "shared_least": "2%",
        "shared_most": "5%",
        "shared_alone_least": "10%",
        "shared_alone_most": "20%",
        "pooled_behind_masked": "0.250",
        "none_loss_pooled_75": "3.000",
        "steps_most": "2",
    }
    check_facts(experiment, made, expected)
