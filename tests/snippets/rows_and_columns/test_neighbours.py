"""Whose output a neighbour changes: the chapter's table, with other numbers."""

import torch
from torch import nn


def outputs(norm, mine, others):
    norm(torch.cat([mine, others[0]]).flatten(0, 1))
    return [
        norm(torch.cat([mine, o]).flatten(0, 1))[: mine[0].shape[0]] for o in others
    ]


def test_whom_a_neighbour_changes():
    torch.manual_seed(1)
    mine, others = (
        torch.randn(1, 5, 7),
        (torch.randn(1, 5, 7), 3 + torch.randn(1, 5, 7)),
    )
    one, two = outputs(nn.LayerNorm(7), mine, others)
    assert torch.equal(one, two)
    batch = nn.BatchNorm1d(7)
    one, two = outputs(batch, mine, others)
    assert (one - two).abs().max() > 0.1
    trained = two
    one, two = outputs(batch.eval(), mine, others)
    assert torch.equal(one, two) and (two - trained).abs().max() > 0.1


def test_in_inference_one_sentence_is_enough():
    torch.manual_seed(1)
    batch = nn.BatchNorm1d(7)
    batch(torch.randn(64, 7))
    batch.eval()
    tokens = torch.randn(6, 7)
    assert torch.equal(batch(tokens)[:1], batch(tokens[:1]))


def test_a_later_token_reaches_an_earlier_one():
    torch.manual_seed(1)
    tokens = torch.randn(6, 7)
    changed = tokens.clone()
    changed[-1] *= 10
    batch, layer = nn.BatchNorm1d(7), nn.LayerNorm(7)
    assert (batch(tokens)[0] - batch(changed)[0]).abs().max() > 0.1
    assert torch.equal(layer(tokens)[0], layer(changed)[0])
