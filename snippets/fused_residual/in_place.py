import torch
from torch import Tensor

from snippets.fused_residual.device import device
from snippets.triton_rms_norm.formula import formula


@torch.library.custom_op("norms::add_then_return_x", mutates_args=("x",))
def add_then_return_x(x: Tensor, branch: Tensor) -> tuple[Tensor, Tensor]:
    x += branch
    return x, formula(x, gain)  # (1)!


@torch.library.custom_op("norms::add_into_x", mutates_args=("x",))
def add_into_x(x: Tensor, branch: Tensor) -> Tensor:
    x += branch
    return formula(x, gain)  # (2)!


REASONS = (
    "must not also be an input",
    "non-functional operator",
    "modified by an inplace op",
)


def attempt(what: str, function, *arguments) -> None:
    try:
        function(*arguments)
    except RuntimeError as error:
        print(f"{what}:", *(r for r in REASONS if r in str(error)))
    else:
        print(f"{what}: works")


gain = torch.ones(8, device=device)
x, branch = torch.randn(2, 4, 8, device=device)
attempt("returns its input", add_then_return_x, x.clone(), branch)
attempt("without gradients", add_into_x, x.clone(), branch)
rule = add_into_x.register_autograd
attempt("gradient rule", rule, lambda ctx, dy: dy)  # (3)!


def overwritten(x: Tensor) -> None:
    """The stream that the first norm saved is gone when it is needed."""
    x = x.clone().requires_grad_() * 1
    y = formula(x, gain)
    x += y  # (4)!
    formula(x, gain).sum().backward()


attempt("backward pass", overwritten, x)
