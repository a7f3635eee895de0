"""What a residual block must do, for either placement."""

import torch
from torch import nn

from tests.same_results import of_module
from tests.snippets.pre_norm_vs_post_norm.float64 import (
    SHAPES,
    close,
    draw,
    parts,
    reference,
)


class Zero(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)


def checks(placement):
    """The checks of one placement, "pre" or "post"."""

    def check_equation(build):
        for kind in ("rms", "layer"):
            for shape in SHAPES:
                for scale in (1e-4, 1.0, 1e4):
                    sublayer, norm = parts(shape[-1], kind)
                    x = draw(shape, scale=scale)
                    wanted, _ = reference(placement, sublayer, norm, x, x)
                    close(build(sublayer, norm)(x.clone()), wanted)

    def check_gradient(build):
        for kind in ("rms", "layer"):
            for shape in SHAPES[2:]:
                sublayer, norm = parts(shape[-1], kind)
                x, grad_y = draw(shape), draw(shape, seed=1)
                _, wanted = reference(placement, sublayer, norm, x, grad_y)
                leaf = x.clone().requires_grad_()
                y = build(sublayer, norm)(leaf)
                assert y.requires_grad, "the output carries no gradient"
                (actual,) = torch.autograd.grad(y, leaf, grad_y)
                close(actual, wanted)

    def check_silent_branch(build):
        x = draw((2, 5, 8))
        _, norm = parts(8, "layer")
        wanted = x if placement == "pre" else norm(x)
        assert torch.equal(build(Zero(), norm)(x.clone()), wanted)

    def check_order(build):
        """Each part runs once, in the order of the equation."""
        log = []
        sublayer, norm = parts(8, "rms")
        sublayer.register_forward_hook(lambda *_: log.append("sublayer"))
        norm.register_forward_hook(lambda *_: log.append("norm"))
        build(sublayer, norm)(draw((2, 8)))
        order = ["norm", "sublayer"]
        assert log == (order if placement == "pre" else order[::-1]), log

    def check_parameters_learn(build):
        sublayer, norm = parts(8, "layer")
        block = build(sublayer, norm)
        block(draw((3, 8))).square().sum().backward()
        for name, parameter in (*sublayer.named_parameters(), *norm.named_parameters()):
            assert parameter.grad is not None, f"no gradient for {name}"
        assert len(list(block.parameters())) == 4

    def check_input_unchanged(build):
        x = draw((3, 8))
        before = x.clone()
        build(*parts(8, "rms"))(x)
        assert torch.equal(x, before), "the input was overwritten"

    def check_dtype(build):
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            sublayer, norm = (part.to(dtype) for part in parts(8, "layer"))
            assert build(sublayer, norm)(draw((3, 8)).to(dtype)).dtype == dtype

    own = [value for name, value in locals().items() if name.startswith("check_")]
    return own + of_module(lambda build: build(*parts(8, "rms")), draw((2, 5, 8)))
