"""Texts of experiments: both languages from one file, and what is out of form."""

import pytest

from scripts.measure.experiment_words import FOLDER, design_words, figure_words
from scripts.measure.records import RecordError, experiments, load_experiment

GOOD = """
figure:
  title: {en: Loss, zh: 损失}
  arms: {post: Post-Norm, plain: {en: as it is, zh: 原样}}
design:
  question: {en: Why?, zh: 为什么？}
lacks:
  edges.post: {en: at {n}, zh: 在 {n}}
""".replace("at {n}", "'at {n}'").replace("在 {n}", "'在 {n}'")


@pytest.fixture
def written(tmp_path):
    def write(text: str) -> tuple:
        (tmp_path / "toy_loss.yml").write_text(text, encoding="utf-8")
        return "anywhere/toy_loss.py", tmp_path

    return write


def test_each_language_has_its_words_and_what_both_share(written):
    where = written(GOOD)
    assert figure_words(*where) == {
        "en": {"title": "Loss", "arms": {"post": "Post-Norm", "plain": "as it is"}},
        "zh": {"title": "损失", "arms": {"post": "Post-Norm", "plain": "原样"}},
    }
    assert design_words(*where) == {
        "words": {"en": {"question": "Why?"}, "zh": {"question": "为什么？"}},
        "lacks": {"edges.post": {"en": "at {n}", "zh": "在 {n}"}},
    }


def test_a_design_may_lack_nothing(written):
    assert design_words(*written(GOOD.partition("lacks:")[0]))["lacks"] == {}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{en: Loss, zh: 损失}", "{en: Loss}", "figure.title wants zh and en"),
        ("zh: 损失", "zh: 损失, de: Verlust", "figure.title wants zh and en"),
        ("zh: 损失", "zh: 3", "figure.title is no text"),
        ("zh: 损失", "zh: ''", "figure.title is no text"),
        ("zh: 损失", "zh: {a: 损失}", "figure.title is no text"),
        ("Post-Norm", "3", "figure.arms.post is no text"),
        ("Post-Norm", "[Post-Norm]", "figure.arms.post is no text"),
        ("Post-Norm", "''", "figure.arms.post is no text"),
        ("design:", "designs:", "wants figure and design"),
        ("lacks:", "lack:", "wants figure and design"),
        ("figure:", "- figure:", "toy_loss.yml: "),
        ("{en: Loss", "{en: Loss: {", "toy_loss.yml: "),
    ],
)
def test_refused_in_one_line(written, old, new, says):
    assert old in GOOD
    with pytest.raises(RecordError) as caught:
        figure_words(*written(GOOD.replace(old, new)))
    assert str(caught.value).startswith("toy_loss.yml: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_is_one_line(tmp_path):
    with pytest.raises(RecordError, match=r"^toy_loss\.yml: no words in "):
        figure_words("toy_loss.py", tmp_path)


def test_every_file_is_an_experiments_and_read_by_it():
    named = {path.stem for path in FOLDER.iterdir()}
    assert named <= set(experiments()) and len(named) > 20
    for name in named:
        assert figure_words(name) == load_experiment(name).WORDS
