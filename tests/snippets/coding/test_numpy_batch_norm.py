"""batch_norm in NumPy: the checks of its form with tensors, given arrays."""

import pytest

from snippets.coding.numpy_batch_norm import numpy_batch_norm
from tests.snippets.coding.cases import in_numpy
from tests.snippets.coding.test_batch_norm import CHECKS as OF_TENSORS
from tests.wrong import rejects

JUDGED = numpy_batch_norm
CHECKS = [in_numpy(c) for c in OF_TENSORS if c.__name__ != "check_gradients"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(numpy_batch_norm, CHECKS)
