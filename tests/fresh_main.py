"""One process runs many programs: none may see what torch kept of another."""

import sys
import types


def forget_main() -> None:
    """Drop what torch.compile keeps of the program before this one.

    Dynamo leaves an alias of ``__main__`` in the globals of what it compiles, also
    in torch's own modules, and remembers every module it imported by name.
    """
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType):
            vars(module).pop("__import___main__", None)
    if compiler := sys.modules.get("torch._dynamo"):
        compiler.reset()
        compiler.symbolic_convert._import_module.cache_clear()
