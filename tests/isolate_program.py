"""One process runs many programs: none may see what torch kept of another."""

import os
import subprocess
import sys
import types

ALONE = "ALONE"  # in the environment: this process runs one program


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


def runs_alone(name: str) -> bool:
    """Whether a page must be the only program of its process.

    A page on kernels registers operators that its snippets' modules register too,
    and the second registration leaves the first with a handle to nothing.
    """
    return "kernels/" in name and ALONE not in os.environ


def alone(test: str) -> str | None:
    """Run a test of this project in a process of its own; what it said if it failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", test]
    environment = {**os.environ, ALONE: "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.stdout[-3000:] if done.returncode else None
