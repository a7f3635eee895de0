"""layer_norm in NumPy: the checks of its form with tensors, given arrays."""

import pytest

from snippets.coding.numpy_layer_norm import numpy_layer_norm
from tests.snippets.coding.cases import in_numpy
from tests.snippets.coding.test_layer_norm import CHECKS as OF_TENSORS
from tests.wrong import rejects

JUDGED = numpy_layer_norm
CHECKS = [in_numpy(c) for c in OF_TENSORS if c.__name__ != "check_gradients"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(numpy_layer_norm, CHECKS)
