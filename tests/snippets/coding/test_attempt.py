"""``--attempt``: a reader's file is judged, and a bad one gets one clear line."""

import re
import subprocess
import sys
import types

import pytest

from scripts.site.reading.source import ROOT, SNIPPETS
from tests.snippets import conftest, judging

RIGHT = (SNIPPETS / "coding" / "layer_norm.py").read_text(encoding="utf-8")
WRONG = """
def rms_norm(x, gain, eps=1e-6):
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * gain


def group_norm(x, groups, gain, bias, eps=1e-5):
    raise NotImplementedError


def soft_cap(z, cap):
    return undefined
"""
TASKS = "layer_norm or rms_norm or group_norm or soft_cap or fold_norm"


def pytest_on(*arguments) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    folder = "tests/snippets/coding"
    done = [*command, folder, *arguments]
    return subprocess.run(done, cwd=ROOT, capture_output=True, text=True)


def test_right_passes_and_wrong_fails(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(RIGHT + WRONG, encoding="utf-8")
    done = pytest_on("--attempt", str(file), "-k", TASKS, "-rA")
    assert done.returncode == 1
    verdicts = set(re.findall(r"(PASSED|FAILED) .*/test_(\w+)\.py::(\S+)", done.stdout))
    by_task = {(verdict, task) for verdict, task, _ in verdicts}
    assert {test for _, _, test in verdicts if "known_wrong" in test} == set()
    assert ("PASSED", "layer_norm") in by_task
    assert ("FAILED", "layer_norm") not in by_task
    for task in ("rms_norm", "group_norm", "soft_cap"):
        assert ("FAILED", task) in by_task
    assert not any("fold_norm" in task for _, task in by_task)  # not in the file
    assert "group_norm is not written yet" in done.stdout
    assert re.search(
        r"\nsoft_cap: NameError: name 'undefined' is not defined\n"
        r"  with z \(.*\n  line \d+: return undefined\n",
        done.stdout,
    )
    assert re.search(
        r"rms_norm: x of size 300 in torch.float16.*: y is torch.float32, expected "
        r"torch.float16|rms_norm: .*float16.*: y\[0, \d+\] is .*, expected",
        done.stdout,
    )


def test_no_such_file_is_one_line(tmp_path):
    with pytest.raises(pytest.UsageError) as caught:
        conftest.load(tmp_path / "nowhere.py", "nowhere.py")
    assert str(caught.value) == "--attempt: no such file: nowhere.py"


def test_what_a_check_cannot_use():
    try:
        len(None)
    except TypeError as error:
        said = judging.raised(error, types.ModuleType("mine"))
    assert said.startswith("does not take or return what the stub says: TypeError: ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nothing_of_this_name", "does not import: ModuleNotFoundError: No mod"),
        ("def layer_norm(:", "does not import: SyntaxError: "),
        ("1 / 0", "does not import: ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_that_does_not_import(tmp_path, text, says):
    file = tmp_path / "mine.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(pytest.UsageError, match="--attempt: mine.py " + says) as caught:
        conftest.load(file, "mine.py")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "__pycache__").exists()


class _Item:
    def __init__(self, name, fixtures=("judge",)):
        judged = type(name, (), {"__name__": name})
        self.module = type("module", (), {"JUDGED": judged})
        self.fixturenames = fixtures


def test_only_what_the_file_defines_is_judged(tmp_path):
    file = tmp_path / "mine.py"
    imports = "from collections.abc import Callable as rms_norm\n"
    file.write_text(imports + "def layer_norm(): ...\n", encoding="utf-8")
    attempt = conftest.load(file, "mine.py")
    items = [_Item("layer_norm"), _Item("layer_norm", ("known_wrong",))]
    others = [_Item("rms_norm"), _Item("fold_norm")]
    assert conftest.select(items + others, attempt, "mine.py") == items[:1]
    with pytest.raises(pytest.UsageError) as caught:
        conftest.select(others, attempt, "mine.py")
    assert str(caught.value) == "--attempt: mine.py defines no fold_norm or rms_norm"
    with pytest.raises(pytest.UsageError, match="no selected test judges"):
        conftest.select(items[1:], attempt, "mine.py")


@pytest.mark.parametrize(
    "stub", sorted(p.stem for p in (SNIPPETS / "coding").glob("*_stub.py"))
)
def test_a_stub_fits_its_solution(stub):
    """Same signature, and nothing solved yet."""
    texts = [
        (SNIPPETS / "coding" / f"{name}.py").read_text(encoding="utf-8")
        for name in (stub, stub.removesuffix("_stub"))
    ]
    heads = [
        re.findall(r"^ *(?:def|class) .*?:\n", text, re.DOTALL | re.MULTILINE)
        for text in texts
    ]
    assert set(heads[1]) <= set(heads[0])
    assert "raise NotImplementedError" in texts[0]
