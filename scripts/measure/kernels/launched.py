"""Which Triton kernels a call launches, and what the compiler made of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

COLUMNS = (
    *("kernel", "programs", "warps", "stages"),
    *("registers", "spilled", "shared_bytes"),
)


def described(name: str, grid, kernel) -> list:
    """The COLUMNS of one launch; None for what cannot be told."""
    made = getattr(kernel, "metadata", None)
    return [
        name,
        prod(grid) if isinstance(grid, (tuple, list)) else None,
        getattr(made, "num_warps", None),
        getattr(made, "num_stages", None),
        getattr(kernel, "n_regs", None),
        getattr(kernel, "n_spills", None),
        getattr(made, "shared", None),
    ]


@contextmanager
def watched() -> Iterator[list[list]]:
    """A list that grows by each compiled kernel launched meanwhile.

    The interpreter compiles nothing, and inductor launches in its own way.
    """
    found: list[list] = []
    try:
        from triton.runtime.jit import JITFunction
    except ImportError:
        yield found
        return
    run = JITFunction.run

    def seen(self, *args, grid, **kwargs):
        kernel = run(self, *args, grid=grid, **kwargs)
        name = getattr(self, "__name__", type(self).__name__)
        found.append(described(name, grid, kernel))
        return kernel

    JITFunction.run = seen
    try:
        yield found
    finally:
        JITFunction.run = run
