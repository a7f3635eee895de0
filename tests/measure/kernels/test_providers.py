"""Providers run both passes, in the dtypes that models use."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from scripts.measure.kernels import cells, providers, rows
from scripts.measure.kernels.cells import OPERATIONS
from tests.measure.kernels.given import broken, cell


def test_options_are_those_that_this_torch_knows(monkeypatch):
    monkeypatch.setitem(providers.TUNED, "an_option_of_another_version", True)
    assert "coordinate_descent_tuning" in providers._tuned()
    assert "an_option_of_another_version" not in providers._tuned()


def test_a_model_s_norm_holds_its_weight_in_the_forward_pass(monkeypatch):
    """A caller's time must not hold what only the gradient needs."""
    monkeypatch.setattr(torch.func, "functional_call", broken)
    for operation in (
        *("rms_norm", "add_rms_norm", "qk_norm_rope"),
        *("rms_norm_forward_backward", "add_rms_norm_forward_backward"),
    ):
        (found,) = rows.measured(cell(operation), ["torch_unfused"], rounds=2)
        assert found["status"] == "ok", found["why"]


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("torch", torch.bfloat16),
        ("torch_unfused", torch.bfloat16),
        ("compile", torch.float32),
    ],
)
def test_models_rotate_in_their_own_dtype(name, tables, monkeypatch):
    real, seen = providers._rotated, set()

    def rotated(x, cos, sin):
        seen.add((x.dtype, cos.dtype, sin.dtype))
        return real(x, cos, sin)

    monkeypatch.setattr(providers, "_rotated", rotated)
    made = cell("qk_norm_rope", dtype="bfloat16", gain_dtype="bfloat16")
    if name == "compile":  # dynamo would not write into the set
        monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    (found,) = rows.measured(made, [name], rounds=2)
    assert found["status"] == "ok"
    assert seen == {(torch.bfloat16, tables, tables)}


class Asked(TorchDispatchMode):
    """The operators that run, by name."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.name().partition(".")[0])
        return function(*args, **kwargs or {})


@pytest.mark.parametrize("norm", cells.NORMS)
@pytest.mark.parametrize("name", ["ours", "torch", "torch_unfused"])
def test_both_passes_run_in_every_call(norm, name):
    if (norm, name) == ("layer_norm", "torch_unfused"):
        return  # there is none
    asked = {}
    for way in ("", "_backward", "_forward_backward"):
        made = cell(f"{norm}{way}")
        inputs = OPERATIONS[made.operation].inputs(made, 0, "cpu")
        call = providers.PROVIDERS[name](made, inputs)
        call()
        with Asked() as seen:
            call()
        apart = {"aten::detach", "aten::zeros"}  # autograd's, for the statistics
        asked[way] = [each for each in seen.names if each not in apart]
    assert asked[""] and asked["_backward"]
    assert sorted(asked["_forward_backward"]) == sorted(asked[""] + asked["_backward"])


def test_jax_is_a_row_that_says_why_it_is_not_timed():
    (found,) = rows.measured(cell("rms_norm"), ["jax"], rounds=2)
    assert found["status"] == "skipped" and "JAX" in found["why"]
