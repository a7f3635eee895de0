"""The experiment measures what its page says, and says it in both languages."""

from math import inf, log

import pytest
import torch

from scripts.experiments import qk_norm_stability
from scripts.measure.corpus import loss_of, sample
from scripts.measure.together import Together, warm_up
from snippets.qk_norm.attention import Attention, largest_logit
from snippets.qk_norm.clip import qk_clip
from snippets.soft_capping.reference import soft_cap
from tests.experiment_checks import check_facts, select, with_values

TINY = qk_norm_stability.SIZES["tiny"]
SEEDS = list(qk_norm_stability.SEEDS)
ARMS, RATES = qk_norm_stability.ARMS, qk_norm_stability.RATES
SMALL = 0.25  # a cap, a threshold that the tiny models' logits exceed
LINES = [len(ARMS) + 1, len(ARMS), len(ARMS)]


@pytest.fixture(scope="module")
def texts():
    return qk_norm_stability.texts(TINY)


def test_rows(rows):
    looks = len(qk_norm_stability.moments(TINY))
    assert qk_norm_stability.moments(TINY)[-1] == TINY["steps"]
    for arm in ARMS:
        for rate in RATES:
            for quantity in ("loss", "largest_logit", "entropy", "least_entropy"):
                found = select(rows, arm=arm, rate=rate, quantity=quantity)
                assert [row["seed"] for row in found] == SEEDS
                assert all(len(row["values"]) == looks for row in found)
            bounds = select(rows, arm=arm, rate=rate, quantity="bound")
            assert len(bounds) == (len(SEEDS) if arm in ("qk_norm", "both") else 0)
            acted = select(rows, arm=arm, rate=rate, quantity="clipped")
            assert len(acted) == (len(SEEDS) if arm == "qk_clip" else 0)
    for arm in ("qk_norm", "both"):
        for row in select(rows, arm=arm, quantity="largest_logit"):
            same = {name: row[name] for name in ("arm", "rate", "seed")}
            (bound,) = select(rows, quantity="bound", **same)
            assert bound["values"][0] == pytest.approx(8**0.5)  # all gains are one
            for logit, most in zip(row["values"], bound["values"], strict=True):
                assert logit <= most * (1 + 1e-5)
    for row in select(rows, quantity="entropy"):
        assert all(0 <= value <= 1 + 1e-6 for value in row["values"])
    (frequency,) = select(rows, quantity="frequency_loss")
    assert 2 < frequency["values"][0] < log(256)


def test_runs_start_from_the_same_matrices(rows):
    plain, normed = (
        dict(qk_norm_stability.fresh(arm, TINY, 3).named_parameters())
        for arm in ("plain", "both")
    )
    assert {name for name in normed if name not in plain} == {
        f"blocks.{2 * layer}.sublayer.{part}_norm.gain"
        for layer in range(TINY["layers"])
        for part in ("query", "key")
    }
    assert all(torch.equal(plain[name], normed[name]) for name in plain)
    for seed in SEEDS:
        wanted = dict(seed=seed, quantity="loss")
        starts = {row["values"][0] for row in select(rows, arm="plain", **wanted)}
        starts |= {row["values"][0] for row in select(rows, arm="qk_clip", **wanted)}
        assert len(starts) == 1


def test_what_is_watched_is_what_the_model_computes(texts, monkeypatch):
    monkeypatch.setattr(qk_norm_stability, "CAP", SMALL)
    text = texts[1]
    for arm in ("plain", "both"):
        model = qk_norm_stability.fresh(arm, TINY, 0)
        inputs = []
        for block in model.blocks[0::2]:
            block.sublayer.register_forward_pre_hook(
                lambda module, given, into=inputs: into.append((module, given[0]))
            )
        loss, largest, mean, least = qk_norm_stability.watched(
            model, text, capped=arm == "both"
        )
        assert torch.equal(loss, loss_of(model, text))
        logits = [module.logits(x) for module, x in inputs[: TINY["layers"]]]
        peaks = torch.stack([largest_logit(layer) for layer in logits])
        assert largest.item() == peaks.max().item()
        found = qk_norm_stability.largest_logits(model, text)
        assert torch.allclose(found, peaks)
        shares = []
        for module, x in inputs[: TINY["layers"]]:
            z = module.logits(x)
            z = soft_cap(z, SMALL) if arm == "both" else z
            total = torch.zeros(TINY["heads"])
            for t in range(TINY["time"]):
                p = z[:, :, t, : t + 1].softmax(dim=-1)
                total += -(p * p.log()).sum(dim=-1).mean(dim=0)
            uniform = sum(log(t + 1) for t in range(TINY["time"]))
            shares.append(total / uniform)
            # The model's own output comes from these weights.
            future = torch.ones_like(z, dtype=torch.bool).triu(1)
            weights = z.masked_fill(future, -inf).softmax(dim=-1)
            y = weights @ module.split(module.value(x))
            y = module.output(y.transpose(1, 2).flatten(start_dim=2))
            assert torch.allclose(module(x), y, atol=1e-5)
        assert torch.allclose(mean, torch.stack(shares).mean(), atol=1e-5)
        assert torch.allclose(least, torch.stack(shares).min(), atol=1e-5)


def test_stacked_clip_is_the_pages_clip():
    models = [qk_norm_stability.fresh("qk_clip", TINY, seed) for seed in SEEDS]
    together = Together(models)
    shape = (len(SEEDS), TINY["layers"], TINY["heads"])
    largest = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    assert largest.min() < 0 and largest.max() > SMALL
    count = qk_norm_stability.clip_heads(together.parameters, largest, SMALL)
    assert torch.equal(count, (largest > SMALL).sum(dim=(1, 2)))
    for run, model in enumerate(models):
        for layer, block in enumerate(model.blocks[0::2]):
            qk_clip(block.sublayer, largest[run, layer], SMALL)
        for name, weight in model.named_parameters():
            assert torch.allclose(together.state(run)[name], weight, rtol=1e-6)


@pytest.mark.parametrize("arm", ["soft_cap", "qk_norm", "qk_clip"])
def test_one_of_many_runs_is_a_plain_loop(arm, texts):
    seed, rates = SEEDS[2], (1e-2, 1e-1)
    trained, seen, clipped = qk_norm_stability.train(arm, rates, TINY, SMALL)
    run = len(SEEDS) + SEEDS.index(seed)  # at the second rate
    model = qk_norm_stability.fresh(arm, TINY, seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), rates[1], betas=(0.9, 0.95), weight_decay=0
    )
    factor = warm_up(TINY["steps"], 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    generator = torch.Generator().manual_seed(seed)
    count = 0
    for _ in range(TINY["steps"]):
        text = sample(texts[0], TINY["batch"], TINY["time"], generator)
        peaks = []
        hooks = [
            block.sublayer.register_forward_pre_hook(
                lambda module, given, into=peaks: into.append(
                    (module, largest_logit(module.logits(given[0])).detach())
                )
            )
            for block in model.blocks[0::2]
        ]
        loss = loss_of(model, text)
        for hook in hooks:
            hook.remove()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if arm == "qk_clip":
            for module, largest in peaks:
                qk_clip(module, largest, SMALL)
                count += int((largest > SMALL).sum())
    for name, weight in model.named_parameters():
        assert torch.allclose(trained.state(run)[name], weight, rtol=1e-3, atol=1e-4)
    final = loss_of(model, texts[1]).item()
    assert seen["loss"][-1][run].item() == pytest.approx(final, rel=1e-4)
    assert clipped[run].item() == count
    assert (count > 0) == (arm == "qk_clip")


def test_arms_are_what_they_say():
    for arm in ARMS:
        model = qk_norm_stability.fresh(arm, TINY, 0)
        for block in model.blocks[0::2]:
            attention = block.sublayer
            assert isinstance(attention, Attention) and attention.place == "head"
            capped = type(attention) is not Attention
            assert capped == (arm in ("soft_cap", "both"))
            normed = not isinstance(attention.query_norm, torch.nn.Identity)
            assert normed == (arm in ("qk_norm", "both"))


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""

    def values(row):
        arm, rate, quantity = row["arm"], row["rate"], row["quantity"]
        if quantity == "frequency_loss":
            return [3.0]
        if quantity == "clipped":
            return [0.25]
        count = len(row["values"])
        if quantity == "loss":
            if rate == 1.0 and arm == "plain":
                return [6.0] + [None] * (count - 1)
            if rate == 1.0 and arm == "soft_cap":
                return [6.0] + [3.5] * (count - 1)
            return [6.0] * (count - 1) + [2.0 if rate == 3e-2 else 2.5]
        if quantity == "largest_logit":
            return [1.0, 1234.0] + [7.0] * (count - 2)
        if quantity == "bound":
            return [4.0] + [40.0] * (count - 1)
        return [0.9] * (count - 1) + [0.0004 if arm == "plain" else 0.2]

    made = with_values(record, values)
    expected = {
        "seeds": "5",
        "runs_all": "150",
        "diverged_all": "10",
        "width": "8",
        "rates": "0.003, 0.01, 0.03, 0.1, 0.3, 1",
        "frequency_loss": "3.00",
        "plain_diverged": "5",
        "soft_cap_diverged": "5",
        "qk_norm_diverged": "0",
        "plain_best_rate": "0.03",
        "plain_best_loss": "2.00",
        "plain_loss_highest": "∞",
        "plain_sensitivity": "1.00",  # (4 * 0.5 + 4) / 6
        "qk_norm_sensitivity": "0.42",  # 5 * 0.5 / 6
        "qk_norm_sensitivity_minus_plain": "−0.583",
        "qk_norm_minus_plain_highest": "−∞",
        "qk_norm_best_minus_plain": "0.000",
        "qk_norm_logit_high": "1200",
        "qk_norm_bound_high": "40",
        "bound_start": "4.0",
        "plain_entropy_high": "< 0.1%",
        "both_least_entropy_high": "20%",
        "qk_clip_clipped_high": "25%",
    }
    check_facts(qk_norm_stability, made, expected)
