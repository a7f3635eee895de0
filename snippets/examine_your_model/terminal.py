import subprocess
import sys


def report(factory: str) -> None:
    """What the command prints, here in both languages."""
    examine = [sys.executable, "scripts/build.py", "examine"]
    model = f"snippets.examine_your_model.{factory}"
    command = [*examine, model, "--language", "both"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    print(done.stdout + done.stderr, end="")
