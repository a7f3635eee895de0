"""One process runs many programs: none may see what torch kept of another."""

import sys
import types


def forget_main() -> None:
    """Drop the names under which torch.compile keeps the program before this one.

    Dynamo leaves an alias of ``__main__`` in the globals of what it compiles, also
    in torch's own modules.
    """
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType):
            vars(module).pop("__import___main__", None)
    if compiler := sys.modules.get("torch._dynamo"):
        compiler.reset()
