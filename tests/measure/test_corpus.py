"""The text that models are trained on: held-out text is never trained on."""

from math import log

import torch

from scripts.measure.corpus import corpus, loss_of, sample


def test_held_out_text_is_not_in_the_training_text():
    training, held_out = corpus()
    assert len(training) > 5 * len(held_out) > 100_000
    assert int(training.max()) < 256
    piece = bytes(held_out[:200].tolist())
    assert piece not in bytes(training.tolist())


def test_samples_are_consecutive_and_repeat_with_the_seed():
    data = torch.arange(50)
    generators = [torch.Generator().manual_seed(3) for _ in range(2)]
    one, other = (sample(data, 64, 7, generator) for generator in generators)
    assert torch.equal(one, other)
    assert one.shape == (64, 8)
    assert (one.diff(dim=1) == 1).all()
    assert one.min() < 5
    assert one.max() > 44


def test_the_loss_is_that_of_the_next_byte():
    text = torch.randint(4, (2, 6), generator=torch.Generator().manual_seed(0))

    def knows(read):
        assert torch.equal(read, text[:, :-1])
        return 100.0 * torch.eye(4)[text[:, 1:]]

    assert loss_of(knows, text) < 1e-6
    uniform = loss_of(lambda read: torch.zeros(2, 5, 4), text)
    assert torch.isclose(uniform, torch.tensor(log(4)))
