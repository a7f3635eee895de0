"""Models that cannot be examined, each for another reason."""

import time

import torch
from torch import nn


def raises():
    raise ValueError("no\nweights")


def a_dict():
    return {}


def no_blocks():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU())


def nothing():
    return nn.Identity()


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 8)

    def forward(self, tokens, mask):
        return self.embedding(tokens) * mask


def example_of_words():
    return Two(), "tokens"


def large():
    with torch.device("meta"):
        return nn.Linear(40_000, 40_000)


def memory():
    return nn.Linear(200_000, 200_000)


def hangs():
    while True:
        time.sleep(1)


def dies():
    import os

    os._exit(3)
