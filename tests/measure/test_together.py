"""Many runs at once are the same runs, one by one."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from scripts.measure import together
from scripts.measure.together import Together
from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock
from snippets.pre_norm_vs_post_norm.decoder import Decoder

RUNS, STEPS = 3, 5
RATES = [1e-2, 3e-3, 1e-3]


def models(count=RUNS):
    found = []
    for seed in range(count):
        torch.manual_seed(seed)
        found.append(Decoder(8, 2, 2, 11, PostNormBlock, nn.LayerNorm, False).double())
    return found


def texts(step=0):
    generator = torch.Generator().manual_seed(step)
    return torch.randint(11, (RUNS, 2, 7), generator=generator)


def loss_of(model, text):
    logits = model(text[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


def gap(one, other):
    return float((one.detach() - other.detach()).abs().max())


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_losses_and_gradients_are_those_of_the_loop(chunk):
    alone, text = models(), texts()
    losses, gradients = Together(alone).gradients(loss_of, text, chunk=chunk)
    only = Together(alone).losses(loss_of, text, chunk=chunk)
    for run, model in enumerate(alone):
        loss = loss_of(model, text[run])
        loss.backward()
        assert gap(losses[run], loss) < 1e-13
        assert gap(only[run], loss) < 1e-13
        named = dict(model.named_parameters())
        assert named.keys() == gradients.keys()
        for name, parameter in named.items():
            assert gap(gradients[name][run], parameter.grad) < 1e-13, name
    assert not losses.requires_grad
    assert losses.shape == (RUNS,)


def test_stacking_copies():
    alone = models()
    stacked = Together(alone)
    before = alone[0].head.weight.clone()
    stacked.parameters["head.weight"].zero_()
    assert torch.equal(alone[0].head.weight, before)


def test_a_run_can_be_taken_out():
    stacked, text = Together(models()), texts()
    optimizer = together.AdamW(stacked.parameters, RATES)
    optimizer.step(stacked.gradients(loss_of, text)[1])
    losses = stacked.losses(loss_of, text)
    for run in range(RUNS):
        model = together.alone(stacked, run)
        assert gap(loss_of(model, text[run]), losses[run]) < 1e-13
        assert model.head.weight.requires_grad
    with torch.no_grad():
        model.head.weight.zero_()
    assert stacked.parameters["head.weight"][-1].any()


def test_buffers_and_ties():
    """A buffer counts run by run; a tied matrix is one parameter."""

    class Tied(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.embedding = nn.Embedding(11, 8)
            self.head = nn.Linear(8, 11, bias=False)
            self.head.weight = self.embedding.weight
            self.register_buffer("factor", torch.tensor(factor))

        def forward(self, tokens):
            return self.factor * self.head(self.embedding(tokens))

    torch.manual_seed(0)
    alone, text = [Tied(1.0), Tied(3.0), Tied(0.5)], texts()
    stacked = Together(alone)
    assert list(stacked.parameters) == ["embedding.weight"]
    losses, gradients = stacked.gradients(loss_of, text)
    for run, model in enumerate(alone):
        loss = loss_of(model, text[run])
        loss.backward()
        assert gap(losses[run], loss) < 1e-5
        found = gradients["embedding.weight"][run]
        assert gap(found, model.embedding.weight.grad) < 1e-6


@pytest.mark.parametrize("most", [None, 0.3])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_training_is_that_of_the_loop(most, decay):
    alone = models()
    stacked = Together(alone)
    schedule = together.warm_up(STEPS, 2, last=0.1)
    history = together.train(
        stacked,
        loss_of,
        lambda step: (texts(step),),
        STEPS,
        RATES,
        schedule=schedule,
        most=most,
        betas=(0.9, 0.98),
        weight_decay=decay,
        decays=lambda name: "norm" not in name,
    )
    assert history.shape == (STEPS, RUNS)
    for run, model in enumerate(alone):
        plain = [p for name, p in model.named_parameters() if "norm" in name]
        others = [p for name, p in model.named_parameters() if "norm" not in name]
        groups = [
            {"params": others, "weight_decay": decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=RATES[run], betas=(0.9, 0.98))
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
        for step in range(STEPS):
            loss = loss_of(model, texts(step)[run])
            assert gap(history[step, run], loss) < 1e-12
            optimizer.zero_grad()
            loss.backward()
            if most is not None:
                nn.utils.clip_grad_norm_(model.parameters(), most)
            optimizer.step()
            scheduler.step()
        state = stacked.state(run)
        assert state.keys() == model.state_dict().keys()
        for name, tensor in model.state_dict().items():
            assert gap(state[name], tensor) < 1e-10, (
                name
            )  # keys' biases: 0 / 0 but for eps


def test_one_learning_rate_for_all():
    one, each = Together(models()), Together(models())
    for stacked, rates in ((one, 1e-3), (each, [1e-3] * RUNS)):
        together.train(stacked, loss_of, lambda step: (texts(step),), 2, rates)
    for name, tensor in one.parameters.items():
        assert torch.equal(tensor, each.parameters[name])


@pytest.mark.parametrize("most", [None, 1.0])
@pytest.mark.parametrize("harm", ["rate", "weights"])
def test_a_diverged_run_leaves_the_others_alone(harm, most):
    def trained(sick):
        stacked = Together(models())
        rates = list(RATES)
        if sick and harm == "rate":
            rates[1] = 1e300
        if sick and harm == "weights":
            stacked.parameters["head.weight"][1] = float("inf")
        history = together.train(
            stacked, loss_of, lambda step: (texts(step),), STEPS, rates, most=most
        )
        return stacked, history

    (well, fine), (sick, ill) = trained(False), trained(True)
    assert not ill[-1, 1].isfinite()
    for run in (0, 2):
        assert torch.equal(fine[:, run], ill[:, run])
        for name, tensor in well.parameters.items():
            assert torch.equal(tensor[run], sick.parameters[name][run]), name


def test_clip_is_by_run():
    gradients = {"a": torch.tensor([[3.0], [0.3]]), "b": torch.tensor([[4.0], [0.4]])}
    before = together.clip(gradients, 1.0)
    assert before.tolist() == pytest.approx([5.0, 0.5])
    assert together.norms(gradients).tolist() == pytest.approx([1.0, 0.5], rel=1e-5)


def test_seen_gets_unclipped_gradients():
    sizes = []
    together.train(
        Together(models()),
        loss_of,
        lambda step: (texts(step),),
        2,
        0.0,
        most=1e-3,
        seen=lambda step, gradients: sizes.append((step, together.norms(gradients))),
    )
    assert [step for step, _ in sizes] == [0, 1]
    assert all((size > 1e-2).all() for _, size in sizes)


def test_warm_up():
    factor = together.warm_up(10, 4, last=0.5)
    assert [factor(step) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert factor(4) == 1.0
    assert factor(9) == pytest.approx(0.5 + 0.5 / 6)
    assert together.warm_up(3, 0)(0) == 1.0


def test_without_a_schedule_rates_stay_as_they_are():
    kept, named = Together(models()), Together(models())
    given = loss_of, lambda step: (texts(step),), STEPS, RATES
    together.train(kept, *given)
    together.train(named, *given, schedule=lambda step: 1.0)
    for name, parameter in kept.parameters.items():
        assert torch.equal(parameter, named.parameters[name])
