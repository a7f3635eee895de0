"""PostNormBlock against explicit Jacobians, and wrong blocks against the checks."""

import pytest

from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock
from tests.snippets.pre_norm_vs_post_norm.block_checks import checks
from tests.snippets.pre_norm_vs_post_norm.wrong_blocks import WRONG_POST

CHECKS = checks("post")
VARIANTS = WRONG_POST


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(PostNormBlock)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
