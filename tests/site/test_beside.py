"""A function beside this process: its words and its error come when asked."""

import os
import sys
import time

import pytest

from scripts.site.beside import Beside


def says(words, error=None):
    os.write(2, f"{words}\n".encode())  # sys.stderr is pytest's
    if error:
        raise error


def test_words_wait_for_the_result(capfd):
    with Beside(says, "built") as other:
        print("first", file=sys.stderr)
        other.result()
    assert capfd.readouterr().err == "first\nbuilt\n"


@pytest.mark.parametrize("error", [ValueError("no such page"), SystemExit("strict")])
def test_error_is_raised_here(error, capfd):
    with (
        Beside(says, "why", error) as other,
        pytest.raises(type(error), match=str(error)),
    ):
        other.result()
    assert capfd.readouterr().err == "why\n"


def test_an_error_here_stops_it_and_is_the_only_one_told(capfd):
    started = time.monotonic()
    with pytest.raises(KeyError), Beside(time.sleep, 60):
        raise KeyError("page")
    assert time.monotonic() - started < 30
    with pytest.raises(KeyError), Beside(says, "the same fault"):
        time.sleep(0.5)
        raise KeyError("page")
    assert capfd.readouterr().err == ""


def test_a_death_is_an_error():
    with Beside(os._exit, 3) as other, pytest.raises(ChildProcessError, match="3"):
        other.result()
