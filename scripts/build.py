"""The one entry point: python scripts/build.py VERB (make VERB does the same).

serve     render what is stale, then serve both languages with live reload
site      render what is stale, then build strictly into site/; with --offline into
          site-offline/, a folder and a zip that a browser opens as files
measure   run experiments on this machine and write records
examine   probe a reader's own model: its equation, its norms, faults
accept    check a bundle of records made elsewhere and file it
restamp   accept cleaned code for a record: steps run again must give its rows
render    figures from records, .out files from snippets, notebooks from labs
check     everything CI checks, and a list of what is stale
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path.cwd()  # where the command was given: a reader's own modules are there
ROOT = Path(__file__).resolve().parents[1]
os.chdir(ROOT)  # snippets are found from here, wherever the command was given
sys.path.insert(0, str(ROOT))
os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")

STRICT = ["build", "--strict"]
# In workers: a test that ends its process fails; alone it would end pytest with 0.
TESTS = ["pytest", "--quiet", "--numprocesses", "auto", "--dist", "loadfile"]
TESTS += ["--max-worker-restart", "0", "-m", "not slow"]


OWN = ("scripts", "snippets")  # a verb imports what it needs, and no more


def main(arguments: list[str] | None = None) -> int:
    from scripts.errors import UserError

    try:
        options = _parser().parse_args(arguments)
        return options.run(options) or 0
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OWN:
            raise
        print(
            f"build.py: this Python lacks {error.name}; make VERB installs what is "
            "needed into .venv, for instance: make site",
            file=sys.stderr,
        )
        return 1
    except UserError as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    except OSError as error:  # a disk that is full or read-only, a folder that is none
        where = f"{error.filename}: " if error.filename else ""
        print(f"build.py: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    from scripts.examine import command as examination

    summary, verbs = __doc__.split("\n\n", 1)
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "build.py", description=summary, epilog=verbs, formatter_class=formatter
    )
    commands = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name, run):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        return command

    verb("serve", serve).add_argument("--address", default="127.0.0.1:8000")
    verb("site", site).add_argument(
        "--offline", action="store_true", help="as files to open without a server"
    )
    command = verb("measure", measure)
    command.add_argument("names", nargs="*", help="experiments; all when none is named")
    command.add_argument("--size", help="tiny, small, medium or full")
    command.add_argument(
        "--missing", action="store_true", help="leave out what has its record"
    )
    command.add_argument(
        "--deadline",
        type=float,
        metavar="SECONDS",
        help="no step begins that ends later",
    )
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="which steps would run after the start, a second for each unit of cost",
    )
    command.add_argument(
        "--journal", type=Path, metavar="DIR", help="where unfinished runs are kept"
    )
    examination.arguments(verb("examine", examine))
    verb("accept", accept).add_argument("file", type=Path)
    command = verb("restamp", restamp)
    command.add_argument("name", help="an experiment")
    command.add_argument("--steps", type=int, default=5, help="how many to run again")
    verb("render", render_all).add_argument(
        "--all", action="store_true", help="also what is up to date"
    )
    verb("check", check)
    return parser


def free(address: str) -> str:
    """The address, if a server can listen there. UserError, at once."""
    from scripts.errors import UserError

    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UserError(f"{address!r} is no address like 127.0.0.1:8000")
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, int(port)))
        except OSError as error:
            how = "another port: make serve PORT=8001"
            raise UserError(f"{address}: {error.strerror}; {how}") from None
    return address


def serve(options) -> int:
    from scripts.site import render

    address = free(options.address)
    render.changed_only()
    # Replace this process, so that Ctrl-C and signals reach the server alone.
    mkdocs = [sys.executable, "-m", "mkdocs", "serve", "--dirty"]
    os.execv(sys.executable, [*mkdocs, "--dev-addr", address])


def site(options) -> int:
    from scripts.site import render

    with tempfile.TemporaryFile(dir=ROOT):
        pass  # a read-only disk is told before the build, not by its traceback
    render.changed_only()
    if options.offline:
        from scripts.site.publish import offline

        print(f"wrote {offline.build().relative_to(ROOT)}")
        return 0
    return subprocess.run([sys.executable, "-m", "mkdocs", *STRICT]).returncode


def measure(options) -> int:
    from scripts.measure import runner

    if options.dry_run:
        left = options.deadline or float("inf")
        found = runner.simulate(options.names, options.size or "full", left)
        for end, name, cell in found:
            print(f"{end:6.0f} s  {name} ({runner.shown(cell)})")
        return 0
    journal = HERE / options.journal if options.journal else runner.CACHE
    journal.mkdir(parents=True, exist_ok=True)  # now, not after the first step
    outcome = runner.measure(
        options.names,
        options.size,
        missing=options.missing,
        deadline=options.deadline,
        cache=journal,
    )
    for path in outcome.written:
        print(f"wrote {path.relative_to(ROOT)}")
    return 1 if outcome.skipped else 0


def examine(options) -> int:
    from scripts.examine import command

    return command.run(options, HERE)


def accept(options) -> int:
    from scripts.measure.accept import accept as file_bundle

    for path in file_bundle(HERE / options.file):
        print(f"filed {path.relative_to(ROOT)}")
    return 0


def restamp(options) -> int:
    from scripts.measure.restamp import restamp as run_again

    for path, steps in run_again(options.name, options.steps):
        cells = "; ".join(str(step.cell) for step in steps)
        print(f"restamped {path.relative_to(ROOT)}, after {len(steps)} steps: {cells}")
    return 0


def render_all(options) -> int:
    from scripts.site import render

    done = render.everything() if options.all else render.stale_only(mend=True)
    print(f"rendered: {done}" if done else "nothing to render: all is up to date")
    return 0


def check(_) -> int:
    from scripts.site import render

    stale = [f"stale: {what}" for what in render.stale()]
    print("\n".join(stale or ["nothing is stale"]))
    python = [sys.executable, "-m"]
    failed = [
        " ".join(step)
        for step in (
            ["ruff", "check", "--quiet", "."],
            ["ruff", "format", "--check", "--quiet", "."],
            TESTS,
            ["mkdocs", *STRICT],
        )
        if subprocess.run(python + step).returncode
    ]
    for step in failed:
        print(f"failed: {step}", file=sys.stderr)
    return 1 if stale or failed else 0


if __name__ == "__main__":
    sys.exit(main())
