"""Every bit pattern of the small formats, and every place where rounding turns."""

import random

import pytest
import torch

from tests.explore.conftest import bits, floats, loaded

# The type whose bits are read, and how many patterns there are.
FORMATS = {
    "float8_e4m3fn": (torch.float8_e4m3fn, torch.uint8, 1 << 8),
    "float8_e5m2": (torch.float8_e5m2, torch.uint8, 1 << 8),
    "float16": (torch.float16, torch.int16, 1 << 16),
    "bfloat16": (torch.bfloat16, torch.int16, 1 << 16),
}
DECODE = """(name, count) =>
  bitsOf(Array.from({ length: count }, (_, code) => decode(code, FORMATS[name])))"""
ENCODE = "(name, given) => Array.from(floats(given), (v) => encode(v, FORMATS[name]))"


def every(name) -> torch.Tensor:
    """The numbers of all patterns, in order, as float32."""
    dtype, whole, count = FORMATS[name]
    return torch.arange(count).to(whole).view(dtype).float()


def codes(x: torch.Tensor, name) -> torch.Tensor:
    """torch's bits of float32 numbers in a format; NaN is one code for all."""
    dtype, whole, count = FORMATS[name]
    found = x.to(dtype).view(whole).long() % count
    return torch.where(x.to(dtype).float().isnan(), -1, found)


def same(a, b) -> bool:
    """Equal bits, where any NaN is as good as another."""
    nan = a.isnan() & b.isnan()
    return bool((nan | (a.view(torch.int32) == b.view(torch.int32))).all())


def turns(name) -> torch.Tensor:
    """All numbers of a format, the middles between neighbours, and what lies beside."""
    x = every(name)
    x = x[x.isfinite()].unique()
    middles = ((x[1:].double() + x[:-1].double()) / 2).float()
    edge = torch.tensor(
        [448.0, 464.0, 480.0, 57344.0, 61440.0, 65504.0, 65520.0, 3.4e38]
    )
    points = torch.cat([x, middles, edge, -edge])
    up = torch.full_like(points, torch.inf)
    beside = [points.nextafter(up), points.nextafter(-up)]
    odd = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-45, -1e-45])
    return torch.cat([points, *beside, odd])


def any_floats(count: int) -> torch.Tensor:
    """float32 numbers with random bits: all magnitudes, infinities and NaN."""
    draw = random.Random(0)
    return floats([draw.getrandbits(32) for _ in range(count)])


def decodes(engine, name) -> bool:
    return same(floats(engine.run(DECODE, name, FORMATS[name][2])), every(name))


def encodes(engine, name, x) -> bool:
    found = torch.tensor(engine.run(ENCODE, name, bits(x)))
    nan = floats(engine.run(DECODE, name, FORMATS[name][2])).isnan()
    return torch.equal(torch.where(nan[found], -1, found), codes(x, name))


@pytest.mark.parametrize("name", FORMATS)
def test_every_pattern_decodes(engine, name):
    assert decodes(engine, name)


@pytest.mark.parametrize("name", FORMATS)
def test_every_pattern_encodes_back(engine, name):
    assert encodes(engine, name, every(name))


@pytest.mark.parametrize("name", FORMATS)
def test_rounds_at_every_turn(engine, name):
    assert encodes(engine, name, turns(name))


@pytest.mark.parametrize("name", FORMATS)
def test_rounds_any_float32(engine, name):
    assert encodes(engine, name, any_floats(100_000))


@pytest.mark.parametrize("name", [n for n in FORMATS if n.startswith("float8")])
@pytest.mark.parametrize("source", ["bfloat16", "float16"])
def test_every_half_to_eight_bits(engine, name, source):
    assert encodes(engine, name, every(source))


def test_float32_keeps_float32(engine):
    x = any_floats(20_000)
    x = x[~x.isnan()]
    assert engine.run(ENCODE, "float32", bits(x)) == bits(x)
    call = "(codes) => bitsOf(codes.map((code) => decode(code, FORMATS.float32)))"
    assert engine.run(call, bits(x)) == bits(x)


def test_rounds_float64_to_float32(engine):
    draw = random.Random(1)
    x = [draw.uniform(-1, 1) * 2.0 ** draw.randint(-150, 130) for _ in range(20_000)]
    found = engine.run("(x) => x.map((v) => encode(v, FORMATS.float32))", x)
    assert found == bits(torch.tensor(x, dtype=torch.float64).float())


@pytest.mark.parametrize("name", ["float32", *FORMATS])
def test_limits(engine, name):
    info = torch.finfo(getattr(torch, name))
    found = engine.run("(name) => limits(FORMATS[name])", name)
    assert found["largest"] == info.max
    assert found["normal"] == info.smallest_normal
    assert found["step"] == info.eps
    assert found["smallest"] == info.smallest_normal * info.eps


def test_fields(engine):
    call = "(v, name) => fields(encode(v, FORMATS[name]), FORMATS[name]).join(' ')"
    assert engine.run(call, -1.5, "bfloat16") == "1 01111111 1000000"
    assert engine.run(call, 65504, "float16") == "0 11110 1111111111"
    assert engine.run(call, 2.0**-9, "float8_e4m3fn") == "0 0000 001"


def agrees(engine) -> bool:
    return all(
        decodes(engine, name) and encodes(engine, name, turns(name)) for name in FORMATS
    )


WRONG = {
    "ties away from zero": ("low % 2 === 1", "true"),
    "ties to zero": (" || (over === 0.5 && low % 2 === 1)", ""),
    "ties to odd": ("low % 2 === 1", "low % 2 === 0"),
    "cut off": ("over > 0.5 || (over === 0.5 && low % 2 === 1)", "false"),
    "subnormals read as zero": (
        "step + (code % step) : code",
        "step + (code % step) : 0",
    ),
    "subnormals read too small": ("Math.max(field, 1) - bias", "field - bias"),
    "subnormals written as zero": (
        "return minus + Math.min(code, over)",
        "return minus + (code < step ? 0 : Math.min(code, over))",
    ),
    "sign of zero lost": (" || Object.is(x, -0)", ""),
    "all formats saturate": ("Math.min(code, over)", "Math.min(code, over - 1)"),
    "infinity saturates": ("return minus + over", "return minus + over - 1"),
    "e4m3fn overflows to NaN": ("Math.min(code, over)", "Math.min(code, nan)"),
    "e4m3 with infinity": (", finite: true", ""),
    "bias one too large": ("2 ** (exponent - 1) - 1", "2 ** (exponent - 1)"),
    "float16 for bfloat16": ("exponent: 8, fraction: 7", "exponent: 5, fraction: 10"),
    "NaN read as infinity": (
        "(code > over) return NaN",
        "(code > over) return Infinity",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_rejected(mistake):
    with loaded(*WRONG[mistake]) as wrong:
        assert not agrees(wrong)
