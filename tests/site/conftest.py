"""A copy of the project that a test may break."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = [
    "docs",
    "snippets",
    "scripts",
    "tests/claims",
    "tests/interview",
    "tests/snippets/coding",
    "tests/snippets/spot_the_bug",
    "tests/snippets/judging.py",
    "mkdocs.yml",
    "requirements.txt",
]


@pytest.fixture(autouse=True)
def named_encodings(monkeypatch):
    """Scripts that read or write text name its encoding: systems differ in theirs."""
    plain = io.text_encoding

    def named(encoding, stacklevel=2):
        caller = sys._getframe(2).f_code.co_filename
        ours = Path(caller).is_relative_to(ROOT / "scripts")
        assert encoding or not ours, f"{caller} names no encoding"
        return plain(encoding, stacklevel + 1)

    monkeypatch.setattr(io, "text_encoding", named)


UNUSED = [  # by one topic alone
    "scripts/site/pictures/diagrams",
    "docs/data/claims",
    "docs/data/interview",
    "docs/data/quiz",
    "tests/claims",
    "tests/interview",
]
# A link to a page of another topic.
ELSEWHERE = re.compile(r"\((?:\.\./)[\w-]+/[\w-]+\.md(?:#[\w-]+)?\)")
DRAWING = re.compile(r"\[\[ *diagrams\.\w+ *\]\]")
FACT = re.compile(r"\[\[ *facts\.(\w+)\.\w+ *\]\]")

# Python that has imported what a build needs and read the records, and forks for each
# line of arguments. V8, whose threads a fork would lose, starts in the children.
WARM = """
import json, os, runpy, signal, sys
import jieba, mkdocs.__main__, mkdocs_jupyter.plugin, mkdocs_macros.plugin
from scripts.site import hooks
hooks.citations.references(), hooks.facts.facts(), hooks.search.teach_jieba()
print(flush=True)
for line in sys.stdin:
    arguments, said, seconds = json.loads(line)
    if not (child := os.fork()):
        signal.alarm(seconds)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(2, 1)
        sys.argv = arguments[arguments[0] == "-m":]
        run = runpy.run_module if arguments[0] == "-m" else runpy.run_path
        run(sys.argv[0], run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def _environment() -> dict[str, str]:
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    environment.pop("PYTHONPATH", None)
    return environment


def _of_topic(nav: list[str], topic: str) -> list[str]:
    """The lines of a navigation whose pages are kept, and the groups above them."""
    kept: list[str] = []

    def depth(line: str) -> int:
        return len(line) - len(line.lstrip())

    for line in reversed(nav):
        group = line.endswith(":") and kept and depth(kept[-1]) > depth(line)
        if group or re.search(rf" ({topic}/|labs/|index\.md)", line):
            kept.append(line)
    return kept[::-1]


class Project:
    """A copy of what the site is built from."""

    def __init__(self, root: Path):
        self.root = root
        for name in COPIED:
            source, target = ROOT / name, root / name
            if source.is_dir():
                shutil.copytree(
                    source, target, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)

    def run(self, *arguments: str, seconds: int = 300):
        """Run Python with the arguments, in the copy; returns the finished process."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def build(self):
        return self.run("-m", "mkdocs", "build", "--strict")

    @contextlib.contextmanager
    def restored(self):
        """What a test changes is put back as it was, times too."""
        sources = [self.root / name for name in COPIED]
        before = {path: (path.read_bytes(), path.stat()) for path in _files(sources)}
        yield
        for path in set(_files(sources)) - before.keys():
            path.unlink()
        for path, (content, was) in before.items():
            if not path.exists() or path.stat().st_mtime_ns != was.st_mtime_ns:
                path.write_bytes(content)
                os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    def page(self, path="rmsnorm/speed.md", language="zh") -> Path:
        return self.root / "docs" / language / "pages" / path

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {path.name}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def append(self, path: Path, text: str) -> None:
        path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")

    def keep_only(self, topic: str) -> None:
        """Leave the pages and snippets of one topic, the labs, and a bare home."""
        kept = set()
        for language in ("zh", "en"):
            pages = self.root / "docs" / language / "pages"
            for folder in pages.iterdir():
                if folder.is_dir() and folder.name != topic:
                    shutil.rmtree(folder)
            kept |= {file.stem.replace("-", "_") for file in (pages / topic).iterdir()}
            for page in (pages / topic).iterdir():
                text = page.read_text(encoding="utf-8")
                page.write_text(ELSEWHERE.sub("(../index.md)", text), encoding="utf-8")
            front = f"---\ntitle: Home\ndescription: {'A home. ' * 8}\n---\n"
            (pages / "index.md").write_text(front + "\n# Home { #home }\n")
            config = pages.parent / "mkdocs.yml"
            text = config.read_text(encoding="utf-8")
            nav = text[text.index("\nnav:\n") + 6 : text.index("\nextra:\n")]
            here = _of_topic(nav.strip("\n").splitlines(), topic)
            config.write_text(text.replace(nav, "\n" + "\n".join(here)))
        for folder in (self.root / "snippets").iterdir():
            if folder.is_dir() and folder.name not in kept:
                shutil.rmtree(folder)
        self._keep_experiments(topic)
        for unused in UNUSED:
            shutil.rmtree(self.root / unused, ignore_errors=True)

    def _keep_experiments(self, topic: str) -> None:
        """Leave the experiments whose figures the topic's pages show.

        A number of another experiment, which a page may quote, becomes a dash; the
        drawings go.
        """
        pages = [
            page
            for language in ("zh", "en")
            for page in (self.root / "docs" / language / "pages" / topic).iterdir()
        ]
        texts = {page: page.read_text(encoding="utf-8") for page in pages}
        shown = set(re.findall(r"figures\.(\w+)", "".join(texts.values())))
        for page, text in texts.items():
            text = FACT.sub(lambda f: f[0] if f[1] in shown else "–", text)
            page.write_text(DRAWING.sub("", text), encoding="utf-8")
        for script in (self.root / "scripts/experiments").glob("*.py"):
            if script.stem not in shown:
                script.unlink()
                for made in (self.root / "docs").glob(f"*/*/{script.stem}.*"):
                    made.unlink()


def _files(sources: list[Path]) -> list[Path]:
    found = (f for source in sources for f in (source, *source.rglob("*")))
    return [f for f in found if f.is_file() and "__pycache__" not in f.parts]


class WarmProject(Project):
    """A copy in which Python has started: each run is a fork of it."""

    def __enter__(self):
        self._python = subprocess.Popen(
            [sys.executable, "-c", WARM],
            cwd=self.root,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._python.stdout.readline() == "\n"
        return self

    def __exit__(self, *_):
        self._python.communicate()

    def run(self, *arguments: str, seconds: int = 300):
        said = self.root / "said.txt"
        self._python.stdin.write(json.dumps([arguments, str(said), seconds]) + "\n")
        self._python.stdin.flush()
        code = int(self._python.stdout.readline())
        text = said.read_text(encoding="utf-8")
        return subprocess.CompletedProcess(arguments, code, "", text)


@pytest.fixture
def project(tmp_path) -> Project:
    """One topic of the site: what a test of the build needs, quickly built."""
    project = Project(tmp_path)
    project.keep_only("rmsnorm")
    return project
