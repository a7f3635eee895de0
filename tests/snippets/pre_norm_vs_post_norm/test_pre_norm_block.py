"""PreNormBlock against explicit Jacobians, and wrong blocks against the checks."""

from snippets.pre_norm_vs_post_norm.blocks import PreNormBlock
from tests.snippets.pre_norm_vs_post_norm.block_checks import checks
from tests.wrong import suite

CHECKS = checks("pre")


test_right, test_known_wrong = suite(PreNormBlock, CHECKS)
