"""The fixture ``known_wrong``: what counts as a rejection and what does not."""

import pytest


def check_doubles(function):
    assert function(3) == 6


def check_refuses_none(function):
    with pytest.raises(TypeError):
        function(None)


def squares(x):
    return x * x


def doubles_and_forgives(x):
    return 2 * x if x is not None else 0


def doubles(x):
    return 2 * x


def crashes(x):
    raise RuntimeError("not a rejection")


@pytest.mark.parametrize("wrong", [squares, doubles_and_forgives])
def test_rejects(wrong, known_wrong):
    known_wrong.rejected_by([check_doubles, check_refuses_none], wrong)


def test_a_right_variant_is_reported(known_wrong):
    with pytest.raises(pytest.fail.Exception, match=r"no check rejects .* doubles"):
        known_wrong.rejected_by([check_doubles, check_refuses_none], doubles)


def test_a_crash_is_no_rejection(known_wrong):
    with pytest.raises(RuntimeError):
        known_wrong.rejected_by([check_doubles], crashes)
