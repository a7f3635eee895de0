"""Checks that need no reference: what must not change a result does not.

Inputs may be views, the same numbers laid out otherwise in memory; a module without
dropout or running statistics does in evaluation what it does in training.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tests.snippets.judging import said


def views(x: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Views of the shape of x, by name; what lies between their elements is NaN."""
    padded = x.new_full((*x.shape[:-1], 2 * x.shape[-1] + 3), torch.nan)
    padded[..., 3::2] = x
    yield "sliced with an offset and a step", padded[..., 3::2]
    if x.ndim > 1:
        yield "transposed", x.mT.contiguous().mT
        yield "broadcast", x[:1].expand(x.shape)


def on_views(
    *inputs, call: Callable = lambda judged, *given: judged(*given)
) -> Callable:
    """A check: each tensor of ``inputs`` may be a view, the results stay the same.

    ``call(judged, *inputs)`` gives a tensor or a tuple of them. They are compared with
    those of contiguous copies, which the other checks of a suite hold to float64.
    """

    def results(judged, place: int, x: Tensor) -> list[Tensor]:
        torch.manual_seed(0)
        found = call(judged, *inputs[:place], x, *inputs[place + 1 :])
        found = found if isinstance(found, tuple) else (found,)
        return [torch.as_tensor(each).detach() for each in found]

    def check_views(judged) -> None:
        for place, given in enumerate(inputs):
            if not (isinstance(given, Tensor) and given.is_floating_point()):
                continue
            for name, view in views(given) if given.ndim else ():
                copy = view.clone(memory_format=torch.contiguous_format)
                wanted = results(judged, place, copy)
                for a, b in zip(results(judged, place, view), wanted, strict=True):
                    case = f"input {place + 1} is a view, {name}"
                    words = "another result than for the same numbers in one block"
                    assert near(a, b), f"{said(case)}: {said(words)}"

    return check_views


def near(a: Tensor, b: Tensor) -> bool:
    """Equal but for the order of sums in float32, or a rounding of a half type."""
    a, b = a.detach(), b.detach()
    size = float(b.abs().max()) if b.numel() else 0.0
    unit = torch.finfo(b.dtype).eps if b.is_floating_point() else 0.0
    return torch.allclose(a, b, rtol=max(1e-5, unit), atol=1e-6 * size + 1e-12)


def of_module(build: Callable, *inputs) -> list[Callable]:
    """Two checks of a module, ``build(judged)``: its inputs as views, and its modes."""

    def check_evaluation(judged) -> None:
        torch.manual_seed(0)
        module = build(judged)
        assert near(module.eval()(*inputs), module.train()(*inputs)), "the mode counts"

    views_of = on_views(*inputs, call=lambda judged, *given: build(judged)(*given))
    return [views_of, check_evaluation]
