"""parameter_groups and training_step; what the page says about bfloat16."""

import copy

import pytest
import torch
from torch import nn

from snippets.rms_norm.reference import RMSNorm
from snippets.transformer_block.decoder import Decoder
from snippets.transformer_block.norm_calls import norm_calls
from snippets.transformer_block.parameter_groups import parameter_groups
from snippets.transformer_block.training_step import training_step
from tests.snippets.transformer_block import float64
from tests.snippets.transformer_block.float64 import QK, close
from tests.wrong import suite


class Mixed(nn.Module):
    """Everything that a rule by name or by class gets wrong."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.first = nn.Linear(4, 4)
        self.normalizer = RMSNorm(4)
        self.ln_1 = nn.LayerNorm(4)
        self.norm_projection = nn.Linear(4, 4, bias=False)
        self.scale = nn.Parameter(torch.ones(()))
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight  # tied


def decayed(groups, model):
    """{name: weight decay}; every parameter must be in exactly one group."""
    names = {id(p): name for name, p in model.named_parameters()}
    found = {}
    for group in groups:
        for parameter in group["params"]:
            name = names[id(parameter)]
            assert name not in found, f"{name} twice"
            found[name] = group["weight_decay"]
    assert found.keys() == set(names.values()), "parameters left out"
    return found


def check_decoder(groups_of):
    model = Decoder(QK)
    for name, decay in decayed(groups_of(model, 0.1), model).items():
        assert decay == (0.0 if name.endswith("gain") else 0.1), name


def check_mixed(groups_of):
    model = Mixed()
    found = decayed(groups_of(model, 0.25), model)
    matrices = {"embedding.weight", "first.weight", "norm_projection.weight"}
    assert {name for name, decay in found.items() if decay == 0.25} == matrices


def check_decay_reaches_the_optimizer(groups_of):
    """Without gradients only decay acts: matrices shrink, gains stay."""
    model = Decoder(QK)
    start = copy.deepcopy(dict(model.named_parameters()))
    optimizer = torch.optim.AdamW(groups_of(model, 0.5), lr=0.1)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        expected = start[name] * (1.0 if name.endswith("gain") else 0.95)
        assert torch.allclose(parameter, expected), name


CHECKS = [check_decoder, check_mixed, check_decay_reaches_the_optimizer]


test_right, test_known_wrong = suite(parameter_groups, CHECKS)


# The step --------------------------------------------------------------------


def step(model, autocast, steps=1, lr=1e-3, ids=None):
    optimizer = torch.optim.AdamW(parameter_groups(model, 0.1), lr=lr)
    ids = float64.tokens(QK, (3, 9)) if ids is None else ids
    return [training_step(model, optimizer, ids, autocast) for _ in range(steps)]


def test_loss_and_gradient_are_those_of_the_reference():
    p, ids = float64.parameters(QK), float64.tokens(QK, (3, 9))
    model = Decoder(QK)
    model.load_state_dict(p)
    (found,) = step(model, autocast=False, ids=ids)
    expected = float64.loss(float64.logits(p, QK, ids), ids)
    assert found == pytest.approx(float(expected), rel=1e-5)
    gradients = float64.gradients(p, QK, ids)
    total = sum(g.square().sum() for g in gradients.values()).sqrt()
    clip = min(1.0, 1.0 / float(total))
    for name, parameter in model.named_parameters():
        close(parameter.grad, clip * gradients[name], 1e-4, name)


def test_gradients_do_not_pile_up():
    model = Decoder(QK)
    step(model, autocast=False, steps=3, lr=0.0)
    grads = {name: p.grad.clone() for name, p in model.named_parameters()}
    step(model, autocast=False, lr=0.0)
    for name, parameter in model.named_parameters():
        assert torch.allclose(parameter.grad, grads[name]), name


def test_autocast_leaves_weights_and_gradients_float32():
    model = Decoder(QK)
    step(model, autocast=True)
    for parameter in model.parameters():
        assert parameter.dtype == parameter.grad.dtype == torch.float32
    assert not torch.is_autocast_enabled("cpu")


def test_dtypes_at_the_norms_under_autocast():
    with torch.autocast("cpu", torch.bfloat16):
        calls = norm_calls(Decoder(QK), float64.tokens(QK))
    for call in calls:
        on_heads = call.name.endswith(("q_norm", "k_norm"))
        expected = torch.bfloat16 if on_heads else torch.float32
        assert call.x.dtype == call.y.dtype == expected, call.name


def moved(model, before):
    return {
        name: float((p != before[name]).double().mean())
        for name, p in model.named_parameters()
    }


@pytest.mark.parametrize("seed", (0, 1, 2))
def test_bfloat16_weights_freeze_the_gains(seed):
    torch.manual_seed(seed)
    model = Decoder(QK).bfloat16()
    before = {name: p.clone() for name, p in model.named_parameters()}
    losses = step(model, autocast=False, steps=20)
    assert losses[-1] < losses[0], "the loss falls all the same"
    for name, share in moved(model, before).items():
        assert (share == 0) if name.endswith("gain") else (share > 0.9), name


def test_float32_weights_train_the_gains():
    torch.manual_seed(0)
    model = Decoder(QK)
    before = {name: p.clone() for name, p in model.named_parameters()}
    step(model, autocast=True, steps=20)
    assert all(share > 0.9 for share in moved(model, before).values())


def test_a_larger_step_gets_through():
    """The page's limit: half the distance to the next number below one."""
    one = torch.ones((), dtype=torch.bfloat16)
    assert one - 0.0019 == 1
    assert one - 0.0021 < 1
