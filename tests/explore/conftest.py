"""The engine of the live figures in V8, whole or with a planted mistake."""

import contextlib
import json

import pytest
import torch

from scripts.site.pictures import explore
from tests import javascript

# Numbers travel as the bits of float32, so that NaN and -0 arrive.
BRIDGE = """
const floats = (bits) => new Float32Array(Uint32Array.from(bits).buffer);
const bitsOf = (x) => Array.from(new Uint32Array(Float32Array.from(x).buffer));
"""


def bits(x: torch.Tensor) -> list[int]:
    return [b & 0xFFFFFFFF for b in x.float().flatten().view(torch.int32).tolist()]


def floats(found: list[int]) -> torch.Tensor:
    return torch.tensor(found, dtype=torch.int64).to(torch.int32).view(torch.float32)


class Engine:
    """Every module of the engine in one scope; `run` calls a function given as text."""

    def __init__(self, context):
        self._context = context

    def run(self, function: str, *arguments):
        given = ", ".join(json.dumps(argument) for argument in arguments)
        return json.loads(self._context.eval(f"JSON.stringify(({function})({given}))"))


@contextlib.contextmanager
def loaded(old: str = "", new: str = ""):
    """The engine, with the one place that reads ``old`` reading ``new``."""
    source = explore.joined(*sorted(explore.ENGINE.glob("*.js")))
    with javascript.context(BRIDGE + source, old, new) as context:
        yield Engine(context)


@pytest.fixture(scope="module")
def engine():
    with loaded() as right:
        yield right
