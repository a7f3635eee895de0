"""Runs the pages: ``pytest --codeblocks docs`` executes every Python block.

pytest-codeblocks executes each fence as it stands and alone. A page of this
site is one program whose fences are embeds, so its collector is replaced here:
the blocks of a page run top to bottom in one namespace, one test item a block,
and what a block prints must be the ``.out`` file shown right under it. Twins of
the same blocks are one program, which runs once for both languages.
"""

import difflib
import gc
import io
import os
import re
import sys
import traceback
import types
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pytest_codeblocks.plugin import MarkdownFile

from scripts.site.reading import source
from tests.isolate_program import alone, forget_main, runs_alone

pytest_plugins = ["tests.summary_line", "tests.xdist_schedule"]
# Before torch is imported: outputs do not depend on threads, and workers share cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

PAGE = re.compile(r"docs/(?P<lang>zh|en)/pages/(?P<name>.+)\.md")
SKIP = re.compile(r"<!-- skip: (?P<reason>\S.*) -->")
PROGRAMS = pytest.StashKey[dict[tuple, "Program"]]()


@dataclass(frozen=True)
class Block:
    """One Python fence: its line on the page and what it must print."""

    line: int
    file: str
    section: str | None
    output: str = ""
    skip: str | None = None

    def code(self, snippets: Path) -> types.CodeType:
        """Compiled at the lines of its own file, so that tracebacks, breakpoints
        and ``inspect.getsource`` (Triton) find the snippet."""
        text = source.embedded(self.file, self.section, snippets)
        first = source.first_line(self.file, self.section, snippets)
        padded = "\n" * (first - 1) + text
        return compile(padded, snippets / self.file, "exec", dont_inherit=True)


def blocks(text: str, snippets: Path) -> list[Block]:
    """The Python blocks of a page. SourceError for a fence that cannot run."""
    found: list[Block] = []
    above = ["", *text.splitlines()]
    for fence in source.fences(text):
        if fence.info not in ("python", "text") or fence.embed is None:
            raise source.SourceError(f"line {fence.line}: fence is not one embed")
        if fence.info == "python":
            skip = SKIP.fullmatch(above[fence.line - 1].strip())
            found.append(Block(fence.line, *fence.embed, skip=skip and skip["reason"]))
        elif not found or found[-1].output:
            raise source.SourceError(f"line {fence.line}: output of no block")
        else:
            output = source.embedded(*fence.embed, snippets)
            found[-1] = Block(**(vars(found[-1]) | {"output": output}))
    if found and all(block.skip for block in found):
        raise source.SourceError("has Python, but nothing of it runs")
    return found


class Wrong(Exception):
    """What is wrong with a block, in the words that the reader of it needs."""


class Program:
    """The blocks of a page, run as far as its items ask for."""

    def __init__(self, path: Path, blocks: list[Block], snippets: Path):
        self.path, self.blocks, self.snippets = path, blocks, snippets
        self.module = types.ModuleType("__main__")
        # What came of each block; a number is that of the block that failed before.
        self.ran: list[Exception | int | None] = []

    def run_to(self, index: int) -> None:
        """Run the blocks up to ``index`` that have not run yet."""
        if not self.ran and runs_alone(self.path.as_posix()):
            said = alone(str(self.path))
            self.ran = [said and Wrong(said)] * len(self.blocks)
        if not self.ran:
            forget_main()
        for block in self.blocks[len(self.ran) : index + 1]:
            failed = next((i for i, error in enumerate(self.ran) if error), None)
            if failed is not None:
                self.ran.append(failed)
            else:
                self.ran.append(None if block.skip else self.attempt(block))

    def attempt(self, block: Block) -> Exception | None:
        printed, before = io.StringIO(), torch_settings()
        main, sys.modules["__main__"] = sys.modules["__main__"], self.module
        try:
            with redirect_stdout(printed):
                exec(block.code(self.snippets), vars(self.module))
        except (Exception, SystemExit) as error:
            return error
        finally:
            sys.modules["__main__"] = main
        after = torch_settings()
        if changed := [name for name in before if before[name] != after[name]]:
            return Wrong(f"leaves torch's {', '.join(changed)} changed")
        if printed.getvalue().rstrip("\n") != block.output.rstrip("\n"):
            return Wrong(difference(block.output, printed.getvalue()))
        return None


class Page(pytest.File):
    """One Markdown page, whose program is its twin's if their blocks are the same."""

    def collect(self):
        snippets = self.config.rootpath / "snippets"
        try:
            self.blocks = blocks(self.path.read_text(encoding="utf-8"), snippets)
        except source.SourceError as error:
            raise self.CollectError(f"{self.path}: {error}") from None
        name = PAGE.fullmatch(self.where)["name"]
        same = name, *(replace(block, line=0) for block in self.blocks)
        programs = self.session.stash.setdefault(PROGRAMS, {})
        program = Program(self.path, self.blocks, snippets)
        self.program = programs.setdefault(same, program)
        for index, block in enumerate(self.blocks):
            yield Item.from_parent(self, name=f"line {block.line}", index=index)

    @property
    def where(self) -> str:
        return self.path.relative_to(self.config.rootpath).as_posix()


class Item(pytest.Item):
    """One Python block of a page."""

    def __init__(self, *, index: int, **kwargs):
        super().__init__(**kwargs)
        self.block, self.index = self.parent.blocks[index], index
        if self.block.skip:
            self.add_marker(pytest.mark.skip(reason=self.block.skip))

    def runtest(self):
        page = self.parent
        page.program.run_to(self.index)
        language = PAGE.fullmatch(page.where)["lang"]
        self.user_properties += [("page", page.where), ("block", language)]
        error = page.program.ran[self.index]
        if isinstance(error, int):
            raise Wrong(f"line {page.blocks[error].line} failed before it")
        if error:
            raise error

    def repr_failure(self, excinfo):
        error, block = excinfo.value, self.block
        shown = ":".join(filter(None, (block.file, block.section)))
        head = f"{self.path}:{block.line} ({shown})\n"
        if isinstance(error, Wrong):
            return head + str(error)
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        return head + "".join(traceback.format_exception(type(error), error, trace))

    def reportinfo(self):
        return self.path, self.block.line - 1, f"block at line {self.block.line}"


def difference(shown: str, printed: str) -> str:
    """A short diff from what the page shows to what the block prints."""
    pair = shown.rstrip("\n").splitlines(), printed.rstrip("\n").splitlines()
    lines = difflib.unified_diff(*pair, "shown", "printed", n=1, lineterm="")
    return "\n".join(list(lines)[:20])


def torch_settings() -> dict[str, object]:
    """Process-wide settings that one page must not leave to the next."""
    if (torch := sys.modules.get("torch")) is None:  # what its import will set
        return {"default dtype": "torch.float32", "gradient mode": True}
    return {
        "default dtype": str(torch.get_default_dtype()),
        "default device": str(torch.get_default_device()),
        "gradient mode": torch.is_grad_enabled(),
        "number of threads": torch.get_num_threads(),
        "deterministic mode": torch.are_deterministic_algorithms_enabled(),
    }


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector):
    found = [node for node in (yield) if not isinstance(node, MarkdownFile)]
    root = parent.config.rootpath
    inside = file_path.is_relative_to(root)
    where = file_path.relative_to(root).as_posix() if inside else ""
    if parent.config.option.codeblocks and PAGE.fullmatch(where):
        found.append(Page.from_parent(parent, path=file_path))
    return found


def pytest_collection_finish():
    """Torch's modules stay for good: spare each garbage collection walking them."""
    gc.collect()
    gc.freeze()
