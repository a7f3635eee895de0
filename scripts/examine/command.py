"""`build.py examine`: run the probes in a process of their own, write what they say."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.errors import UserError
from scripts.examine.load import Refusal, shape_of
from scripts.measure.records import write_whole

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
HELP = (
    "Probe your own PyTorch model on the CPU: the equation of its block, its norms as "
    "they act, and faults. This imports and runs your code with your rights: examine "
    "only code that you would run."
)


class ExamineError(UserError):
    """Why there is no report. One line."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = HELP
    parser.add_argument(
        "target",
        nargs="?",
        metavar="module:factory",
        help="or path/to/file.py:factory; called without arguments, returns a module "
        "or (module, example input)",
    )
    parser.add_argument(
        "--transformers",
        metavar="CONFIG.json",
        help="a local configuration file instead; its sizes are made tiny",
    )
    parser.add_argument(
        "--against",
        metavar="OTHER",
        help="module:factory, or a row of the model atlas, as llama",
    )
    parser.add_argument(
        "--report", type=Path, metavar="DIR", help="write text and an HTML page there"
    )
    parser.add_argument("--input", metavar="2x3x32x32", help="shape of a real input")
    parser.add_argument("--vocab", metavar="N", help="tokens are below this")
    parser.add_argument("--length", metavar="N", help="tokens in a sequence")
    parser.add_argument(
        "--causal",
        action="store_true",
        help="no token may read a later one: attention that does is a fault",
    )
    parser.add_argument("--seconds", metavar="N", default=SECONDS, help="time limit")
    parser.add_argument("--language", choices=("en", "zh", "both"), default=_language())


def _positive(options, name: str) -> int | None:
    """An option as a number; ExamineError, in one line, if it is none above zero."""
    value = getattr(options, name)
    if value is None or isinstance(value, int):
        return value
    if not value.isdecimal() or not int(value):
        raise ExamineError(f"--{name} {value!r} is no positive number")
    return int(value)


def _language() -> str:
    spoken = os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    return "zh" if spoken.startswith("zh") else "en"


def run(options, here: Path) -> int:
    """Examine and report. ExamineError in one line where that fails."""
    if not options.target and not options.transformers:
        raise ExamineError("examine what? give module:factory or --transformers FILE")
    if options.target and options.transformers:
        raise ExamineError("give module:factory or --transformers FILE, not both")
    numbers = {n: _positive(options, n) for n in ("vocab", "length", "seconds")}
    if options.input:
        try:
            shape_of(options.input)
        except Refusal as refusal:
            raise ExamineError(str(refusal)) from None
    folder = options.report and here / options.report
    if folder:
        _writable(folder)
    request = {
        name: getattr(options, name)
        for name in ("target", "transformers", "against", "input", "causal")
    }
    seconds = numbers.pop("seconds")
    report = examined(request | numbers, here, seconds)
    from scripts.examine import page  # only now: it needs what builds the site
    from scripts.examine.text import text

    both = ("en", "zh")
    shown = both if options.language == "both" else (options.language,)
    print("\n".join(text(report, language) for language in shown), end="")
    if folder:
        for language in both:
            write_whole(folder / f"report.{language}.txt", text(report, language))
        write_whole(folder / "report.html", page.page(report))
        print(f"wrote {folder / 'report.html'}")
    return 0


def _writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ExamineError(f"cannot write to {folder}: {error.strerror}") from None


def examined(request: dict, here: Path, seconds: float) -> dict:
    """The report that the other process makes. ExamineError if it makes none."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(
                filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
            ),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_VERBOSITY": "error",
            "PYTHONWARNINGS": "ignore",
            "TORCHDYNAMO_DISABLE": "1",  # compiled functions are run as written
            "OMP_NUM_THREADS": "1",
        }
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "scripts.examine.work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=here,
            env=environment,
            start_new_session=True,
        )
        asked = json.dumps(request | {"answer": str(answer)})
        try:
            child.communicate(asked.encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            raise ExamineError(f"not done after {seconds:g} s") from None
        finally:
            if child.poll() is None:
                _end(child)
        if not answer.is_file():
            raise ExamineError(f"the process died with status {child.returncode}")
        said = json.loads(answer.read_text(encoding="utf-8"))
    if "problem" in said:
        raise ExamineError(said["problem"])
    return said["report"]


def _end(child) -> None:
    """Stop the process and those it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (AttributeError, OSError):
        child.kill()
    child.wait()
