"""`build.py examine`: a report in both languages, or one line that says why not."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from scripts.examine import command, page, text
from scripts.examine.load import Refusal, load
from scripts.examine.words import RULES, WORDS

ROOT = Path(__file__).resolve().parents[2]
GIVEN = "tests.examine.samples"


def examine(*arguments, cwd=ROOT):
    """(exit status, standard output, lines of standard error)."""
    build = [sys.executable, str(ROOT / "scripts" / "build.py"), "examine"]
    done = subprocess.run(
        [*build, *map(str, arguments)], cwd=cwd, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr.splitlines()


def test_options_say_what_they_take():
    from argparse import ArgumentParser

    from scripts.examine import command

    parser = ArgumentParser()
    command.arguments(parser)
    shown = " ".join(parser.format_help().split())
    for option in (
        "--report DIR",
        "--against OTHER",
        "--input 2x3x32x32",
        "--vocab N",
        "--length N",
        "--seconds N",
    ):
        assert option in shown


def refusal(spec: str, **options) -> str:
    with pytest.raises(Refusal) as caught:
        load(spec, options)
    return str(caught.value)


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A reader's own folder, the terminal's text, and the folder of the report."""
    folder = tmp_path_factory.mktemp("reader")
    source = (ROOT / "tests" / "examine" / "faulty.py").read_text(encoding="utf-8")
    (folder / "mine.py").write_text(source, encoding="utf-8")
    asked = ("mine:NoFinal", "--report", "out", "--language", "en")
    status, out, errors = examine(*asked, cwd=folder)
    assert (status, errors) == (0, [])
    return out, folder / "out"


def test_a_decoder_from_the_current_folder(reported):
    out, _ = reported
    for said in (
        "a = x + Attention(N[norm_1](x))",
        "y = a + FFN(N[norm_2](a))",
        "RMSNorm, gain w, ε 1e-6",
        "QK-Norm: q, k: RMSNorm, per head, before RoPE",
        "its own token and earlier ones",
        "no norm between the last layer and the head",
    ):
        assert said in out
    assert max(map(len, out.splitlines()[:-1])) <= text.WIDTH


def test_the_report_is_written_in_both_languages(reported):
    out, folder = reported
    assert (folder / "report.en.txt").read_text(encoding="utf-8") in out
    chinese = (folder / "report.zh.txt").read_text(encoding="utf-8")
    assert "最后一层和输出层之间没有归一化" in chinese
    written = (folder / "report.html").read_text(encoding="utf-8")
    assert written.count("<svg") == 2
    assert 'lang="zh-Hans"' in written and "没有归一化" in written
    assert not re.search(r"(?:src|href)=\"(?!#)|url\(|@import", written)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("decoder", "is not of the form module:factory"),
        ("nowhere_at_all:decoder", "no module 'nowhere_at_all'"),
        ("nowhere/at_all.py:decoder", "no file 'nowhere/at_all.py'"),
        (f"{GIVEN}:decoder", "has no 'decoder'; it has: raises, a_dict"),
        (f"{GIVEN}:raises", "does not run: ValueError: no weights"),
        (f"{GIVEN}:a_dict", "gave a dict; needed: a torch.nn.Module"),
        (f"{GIVEN}:Two", "its forward: missing a required argument: 'mask'"),
        (f"{GIVEN}:nothing", "cannot guess an input"),
        (f"{GIVEN}:example_of_words", "no tensor, tuple or dict"),
        (f"{GIVEN}:large", "too large: 1600 million parameters"),
    ],
)
def test_a_model_that_cannot_be_had(spec, says):
    said = refusal(spec)
    assert says in said
    assert "\n" not in said


def test_a_path_to_a_file_is_a_module(tmp_path):
    for name, width in (("a", 4), ("b", 8)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "beside.py").write_text("from torch import nn\n", encoding="utf-8")
        text = (
            f"from beside import nn\ndef model():\n    return nn.Linear({width}, 4)\n"
        )
        (folder / "one.py").write_text(text, encoding="utf-8")
    a, b = (load(f"{tmp_path}/{n}/one.py:model", {}).model for n in "ab")
    assert (a.in_features, b.in_features) == (4, 8)
    assert "has no 'mode'; it has: model" in refusal(f"{tmp_path}/a/one.py:mode")


def test_inputs_that_are_none():
    assert "is no shape" in refusal(f"{GIVEN}:no_blocks", input="2xa")
    assert "--input" in refusal(f"{GIVEN}:no_blocks", input="2x3x5")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        ('{"model_type": "llama"', "is no JSON"),
        ("[]", "has no model_type"),
        ('{"hidden_size": 8}', "has no model_type"),
        ('{"model_type": "lama"}', "knows no model_type 'lama'"),
        ('{"model_type": "llama", "hidden_act": "none"}', "cannot be built"),
    ],
)
def test_a_configuration_that_is_none(tmp_path, content, says):
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    said = refusal(str(file), transformers=str(file))
    assert says in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((f"{GIVEN}:no_blocks",), "no list of blocks"),
        ((f"{GIVEN}:memory",), "needs more than"),
        ((f"{GIVEN}:dies",), "the process died with status 3"),
        ((f"{GIVEN}:hangs", "--seconds", "5"), "not done after 5 s"),
        (("tests.examine.faulty:clean", "--against", "lama"), "no row 'lama'; near"),
        (("a:b", "--report", "README.md/x"), "cannot write to"),
        ((), "examine what?"),
        (("a:b", "--transformers", "c.json"), "not both"),
        (("a:b", "--seconds", "abc"), "--seconds 'abc' is no positive number"),
        (("a:b", "--vocab", "0"), "--vocab '0' is no positive number"),
        (("a:b", "--length", "²"), "is no positive number"),
        (("a:b", "--input", "axb"), "is no shape"),
    ],
)
def test_one_line_and_a_status(arguments, says):
    status, out, errors = examine(*arguments)
    assert status == 1
    assert not out
    (line,) = errors
    assert says in line


def test_no_line_begins_with_a_full_stop():
    for n in range(60, 90):
        lines = text._wrapped("- " + "字" * (n // 2) + " bfloat16。然后")
        assert not any(line.lstrip().startswith("。") for line in lines)


def test_help_says_whose_code_runs():
    assert "runs your code with your rights" in command.HELP


def test_a_configuration_keeps_its_switches(tmp_path):
    file = tmp_path / "config.json"
    fields = {"model_type": "llama", "hidden_size": 4096, "rms_norm_eps": 3e-5}
    file.write_text(json.dumps(fields | {"attention_bias": True}), encoding="utf-8")
    loaded = load(str(file), {"transformers": str(file)})
    assert loaded.model.config.rms_norm_eps == 3e-5
    assert loaded.model.config.hidden_size < 4096
    assert loaded.model.model.layers[0].self_attn.q_proj.bias is not None


def test_every_word_in_both_languages():
    assert set(WORDS["en"]) == set(WORDS["zh"])
    for name in ("fields", "sites"):
        assert set(WORDS["en"][name]) == set(WORDS["zh"][name])
    assert all(set(rule) == {"en", "zh"} for rule in RULES.values())


def test_a_name_cannot_break_the_page():
    report = {
        **{"name": "a:<script>", "parameters": 1, "input": [], "lists": []},
        **{"rows": [], "faults": [], "remarks": [], "reads": None, "against": None},
    }
    assert "<script" not in page.page(report)
