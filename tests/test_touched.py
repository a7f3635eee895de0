"""``make test-fast`` runs laws, and whatever belongs to what was touched."""

import pytest

from tests.touched import LAWS, ROOT, git, selected

RMS_NORM = [
    "docs/en/pages/rmsnorm/rms-norm.md",
    "docs/zh/pages/rmsnorm/rms-norm.md",
    "tests/snippets/rms_norm",
]


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("docs/zh/pages/rmsnorm/rms-norm.md", RMS_NORM),
        ("docs/en/pages/rmsnorm/rms-norm.md", RMS_NORM),
        ("snippets/rms_norm/worked_example.out", RMS_NORM),
        ("tests/snippets/rms_norm/wrong_rms_norm.py", RMS_NORM),
        ("tests/measure/test_digest.py", ["tests/measure/test_digest.py"]),
        ("tests/pages/test_facts.py", []),  # a law, which runs anyway
        ("tests/measure/test_that_was_deleted.py", []),
        ("scripts/build.py", []),
    ],
)
def test_selected(path, tests):
    assert selected([path, path]) == tests


def test_what_it_names_is_there():
    assert all((ROOT / law).exists() for law in LAWS)


def test_no_git_is_no_error():
    assert git("no-such-verb") is None
