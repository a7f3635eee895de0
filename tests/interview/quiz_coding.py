"""The keys of the quiz on code: each line is run as it stands in the question."""

import torch
from torch import nn
from torch.nn import functional as F

from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.transformer_block.parameter_groups import parameter_groups


def _is(found: torch.Tensor, *numbers: float) -> bool:
    """The same numbers after rounding to two digits behind the point."""
    return torch.allclose(found, found.new_tensor(numbers), atol=0.006)


def rms_norm_of_three_and_four() -> dict[str, bool]:
    found = F.rms_norm(torch.tensor([3.0, 4.0]), (2,), eps=0.0)
    return {
        "unit": _is(found, 0.6, 0.8),
        "rms": _is(found, 0.85, 1.13),
        "mean": _is(found, 0.86, 1.14),
        "centred": _is(found, -1, 1),
    }


def standardized_with_torch_std() -> dict[str, bool]:
    x = torch.tensor([1.0, 2.0, 3.0])
    ours, theirs = (x - x.mean()) / x.std(), F.layer_norm(x, (3,), eps=0)

    def are(ours_end: float, theirs_end: float) -> bool:
        pair = ((ours, ours_end), (theirs, theirs_end))
        return all(_is(found, -end, 0, end) for found, end in pair)

    return {
        "same-one": are(1, 1),
        "ours-small": are(1, 1.22),
        "ours-large": are(1.22, 1),
        "same-other": are(1.22, 1.22),
    }


def root_mean_square_without_keepdim() -> dict[str, bool]:
    torch.manual_seed(0)
    x = torch.randn(16, 16)
    try:
        found = x / x.square().mean(-1).sqrt()
    except RuntimeError:
        found = None
    rms = x.square().mean(-1)
    each = torch.stack([x[:, j] / rms[j].sqrt() for j in range(16)], dim=1)
    expected = {
        "right": x / rms.sqrt()[:, None],
        "features": each,
        "batch": x / x.square().mean(0).sqrt(),
    }
    return {"error": found is None} | {
        name: found is not None and torch.allclose(found, y)
        for name, y in expected.items()
    }


def sum_in_the_rmsnorm_backward() -> dict[str, bool]:
    torch.manual_seed(0)
    x, dy = torch.randn(2, 5, 16, dtype=torch.float64)
    gain = 0.5 + torch.rand(16, dtype=torch.float64)
    x.requires_grad_()
    (exact,) = torch.autograd.grad(rms_norm(x, gain, eps=0), x, dy)
    r = x.detach().square().mean(-1, keepdim=True).rsqrt()
    n, u = x.detach() * r, dy * gain
    versions = {
        "nothing": r * (u - n * (u * n).sum(-1, keepdim=True)),
        "mean": r * (u - n * (u * n).mean(-1, keepdim=True)),
        "square": r**2 * (u - n * (u * n).sum(-1, keepdim=True)),
        "gain": r * (dy - n * (dy * n).sum(-1, keepdim=True)),
    }
    return {name: torch.allclose(found, exact) for name, found in versions.items()}


def cap_times_tanh_over_cap() -> dict[str, bool]:
    cap, scores = 50, torch.tensor([0.5, 20.0])
    found = cap * torch.tanh(scores) / cap

    def near(*numbers: float) -> bool:
        return torch.allclose(found, found.new_tensor(numbers), rtol=0.02)

    return {
        "capped": near(0.5, 19),
        "ones": near(0.46, 1),
        "fifty": near(23, 50),
        "nothing": near(0.5, 20),
    }


def gain_with_two_axes() -> dict[str, bool]:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q = nn.Linear(16, 16, bias=False)
            self.q_gain = nn.Parameter(torch.ones(4, 4))  # (heads, width)

    model = nn.ModuleDict({"norm": RMSNorm(16), "attention": Attention()})
    decayed = {id(p) for p in parameter_groups(model, 0.1)[0]["params"]}
    gains = {n: id(p) in decayed for n, p in model.named_parameters() if "gain" in n}
    assert id(model["attention"].q.weight) in decayed
    return {
        "none": not any(gains.values()),
        "qk": gains == {"norm.gain": False, "attention.q_gain": True},
        "stream": gains == {"norm.gain": True, "attention.q_gain": False},
        "all": all(gains.values()),
    }


def stream_changed_in_place() -> dict[str, bool]:
    def step(in_place: bool) -> tuple[str, torch.Tensor | None]:
        """Where the step stops, and the embedding's gradient."""
        torch.manual_seed(0)
        embedding, branch = nn.Embedding(10, 8), nn.Linear(8, 8)
        gain = torch.ones(8, requires_grad=True)
        x = embedding(torch.arange(4))
        h = F.rms_norm(x, (8,), gain)
        try:
            if in_place:
                x += branch(h)
            else:
                x = x + branch(h)
        except RuntimeError:
            return "forward", None
        try:
            x.square().sum().backward()
        except RuntimeError:
            return "backward", None
        return "end", embedding.weight.grad

    (reached, found), (end, exact) = step(True), step(False)
    assert end == "end"
    right = found is not None and torch.allclose(found, exact)
    return {
        "forward": reached == "forward",
        "backward": reached == "backward",
        "silent": reached == "end" and not right,
        "right": reached == "end" and right,
    }
