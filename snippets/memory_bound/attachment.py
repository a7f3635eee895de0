# --8<-- [start:operator]
import torch

LIBRARIES = {}  # an operator lasts as long as its library


def operator(name: str):
    """Makes the function below an operator, on every device.

    Its schema comes from its annotations; the function is __wrapped__.
    """
    space, own = name.split("::")

    def register(function):
        known = torch.library.infer_schema(
            function, mutates_args=(), op_name=own
        )
        LIBRARIES.pop(name, None)  # (1)!
        library = LIBRARIES[name] = torch.library.Library(space, "FRAGMENT")
        library.define(known)
        library.impl(own, function, "CompositeExplicitAutograd")  # (2)!
        made = getattr(getattr(torch.ops, space), own).default
        made.__wrapped__ = function
        return made

    return register


def fake(of):
    """The function below stands in for an operator in a traced graph."""
    return torch.library.register_fake(of.name(), lib=LIBRARIES[of.name()])


# --8<-- [end:operator]


# --8<-- [start:last]
class Last(torch.autograd.Function):
    """An operator whose result has no derivative."""

    @staticmethod
    def forward(ctx, of, *inputs):
        ctx.name = of.name()
        return of(*inputs)

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(f"{ctx.name}: no second derivative")


def last(of, *inputs):
    """What a backward operator returns; to differentiate it is an error."""
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        return Last.apply(of, *inputs)  # with create_graph=True
    return of(*inputs)


# --8<-- [end:last]
