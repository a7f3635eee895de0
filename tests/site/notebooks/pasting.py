"""Runs programs as a reader does who pastes them: with what pages name installed, in
an empty folder, and nothing of this project to import.

One process imports torch, and each program runs in a fork of it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

# Imported before the forks; what must see a program's environment is not among these.
FIRST = ("torch", "transformers")
RUNNER = """
import importlib, json, os, sys, tempfile, types

asked = json.load(sys.stdin)
for name in asked["first"]:
    importlib.import_module(name)

def run(text, folder):
    os.chdir(folder)
    path = os.path.join(folder, "pasted.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = path
    exec(compile(text, path, "exec"), vars(main))

def one(text):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            code = 1
            try:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                run(text, folder)
                code = 0
            except BaseException:
                import traceback
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return [os.waitstatus_to_exitcode(status), said.read().decode()]

json.dump([one(text) for text in asked["texts"]], sys.stdout)
"""


def run(texts: list[str], folder: Path) -> list[tuple[int, str]]:
    """The exit status and the output of each program."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "TRITON"))
    }
    first = [name for name in FIRST if any(name in text for text in texts)]
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUNNER],
        input=json.dumps({"first": first, "texts": texts}),
        cwd=folder,
        env=environment | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [(code, said) for code, said in json.loads(done.stdout)]
