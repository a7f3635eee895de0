"""Live figures: what they show is what torch computes; both languages; small; alone."""

import gzip
import re

import pytest
import torch
from torch.nn import functional as F

from scripts.site.data import claims
from scripts.site.pictures import explore
from scripts.site.reading.source import LANGUAGES
from snippets.layer_norm.backward import layer_norm_backward
from snippets.rms_norm.backward import rms_norm_backward
from tests.pages import numbers, prose, test_numbers, test_terms
from tests.pages.page_prose import EN

NAMES = explore.names()
MOST_BYTES = 40_000  # scripts and style of a page's live figures, compressed
MOST_BYTES_OF_ENGINE = 10_000
FORBIDDEN = re.compile(
    r"\b(?:eval|Function|fetch|XMLHttpRequest|WebSocket|sendBeacon|import)\(|https?:"
)


def texts(words: dict) -> dict[str, str]:
    return {key: text for key, text in words.items() if isinstance(text, str)}


@pytest.mark.parametrize("name", NAMES)
def test_figure_is_on_a_page(name):
    assert any(f"[[ explore.{name} ]]" in page.text for page in EN.values())


def test_figures_of_a_page_are_small():
    style = explore.STYLE.read_bytes()
    for page in EN.values():
        names = re.findall(r"\[\[ explore\.(\w+) \]\]", page.text)
        parts = style, *(explore.script(name).encode() for name in names)
        assert sum(len(gzip.compress(part)) for part in parts) <= MOST_BYTES, page.path


def test_engine_is_small():
    whole = explore.joined(*sorted(explore.ENGINE.glob("*.js"))).encode()
    assert len(gzip.compress(whole)) <= MOST_BYTES_OF_ENGINE


@pytest.mark.parametrize("name", NAMES)
def test_figure_asks_nobody(name):
    assert not FORBIDDEN.search(explore.script(name))


@pytest.mark.parametrize("planted", ["eval('1')", "new Function('x')", "import('./a')"])
def test_a_planted_request_is_found(planted):
    assert FORBIDDEN.search(planted)


@pytest.mark.parametrize("name", NAMES)
def test_figure_speaks_both_languages(name, no_violations):
    words = {
        language: explore.ask(name, f"Object.keys(figure.words.{language})")
        for language in LANGUAGES
    }
    assert words["zh"] == words["en"]
    presets = explore.ask(name, "figure.presets")
    for language in LANGUAGES:
        said = list(texts(explore.ask(name, f"figure.words.{language}")).values())
        said += [
            explore.ask(name, f"figure.says(figure.opening, figure.words.{language})")
        ]
        said += [text for p in presets for text in (p[language], p["shows"][language])]
        computed = numbers.numbers_of(*said)  # by the engine, which torch judges
        found = [v for text in said for v in test_numbers.violations(text, computed)]
        if language == "zh":
            long = [text for text in said if len(text) > 4]
            found += [v for text in long for v in prose.violations(text, language)]
            found += [v for t in said for v in test_terms.refused(t, test_terms.TERMS)]
        no_violations(f"{name}: {language}: {v}" for v in found)


@pytest.mark.parametrize("name", NAMES)
def test_presets_are_claims_of_the_ledger(name):
    verdicts = {row["id"]: row["verdict"] for _, row in claims.everything()}
    for preset in explore.ask(name, "figure.presets"):
        assert verdicts[preset["claim"]] == preset["verdict"]
        assert preset["state"].keys() == explore.ask(name, "figure.opening").keys()


@pytest.mark.parametrize("name", NAMES)
def test_the_page_holds_the_opening_state(name):
    for language in LANGUAGES:
        page = explore.page(name, language, "../")
        call = f"figure.view(figure.opening, figure.words.{language})"
        assert explore.ask(name, call) in page and "\n" not in page
        assert explore.text(name, language).count("*") == 2


def computed(name, state: dict) -> dict:
    """What a figure computes for a state; numbers JSON has not come as text."""
    opening = explore.ask(name, "figure.opening") | state
    return explore.ask(
        name,
        "JSON.parse(JSON.stringify(figure.compute("
        + str(opening).replace("'", '"')
        + "), (_, v) => typeof v === 'number' && !Number.isFinite(v) ? String(v) : v))",
    )


def preset(name, claim: str) -> dict:
    found = explore.ask(name, "figure.presets")
    return computed(name, next(p["state"] for p in found if p["claim"] == claim))


def outputs(found: dict) -> dict[str, list]:
    return {order["order"]: order["y"] for order in found["orders"]}


def test_numbers_overflow_gives_zeros():
    found = outputs(preset("numbers", "overflow-in-rms-norm-gives-nan"))
    assert set(found["naive"]) == {0} and 0 not in found["gemma"]


def test_numbers_the_sum_may_overflow():
    found = preset("numbers", "the-sum-of-squares-is-what-overflows")
    squares = [v * v for v in found["row"]]
    assert max(squares) < 65504 < sum(squares)
    assert outputs(found)["naive"] == pytest.approx(found["exact"], rel=2e-3)


def test_numbers_an_epsilon_that_vanishes():
    found = preset("numbers", "a-tiny-epsilon-prevents-division-by-zero")
    stored = next(s for s in found["stored"] if s["name"] == "float16")
    assert found["eps"] > 0 and stored["eps"] == stored["square"] == 0
    assert set(outputs(found)["naive"]) == {"Infinity", "-Infinity"}


def misses(found: dict) -> dict[str, int]:
    return {
        order: sum(a != b for a, b in zip(y, found["nearest"], strict=True))
        for order, y in outputs(found).items()
    }


def test_numbers_bfloat16_and_the_upcast():
    found = preset("numbers", "bfloat16-makes-the-upcast-unnecessary")
    assert misses(found)["naive"] > misses(found)["gemma"]
    assert all(isinstance(v, float) for v in outputs(found)["naive"])


def test_numbers_cast_orders_differ():
    found = preset("numbers", "the-order-of-cast-and-gain-does-not-matter")
    assert misses(found)["llama"] > misses(found)["gemma"] == 0


def test_numbers_float32_overflows():
    found = preset("numbers", "float32-rms-norm-cannot-overflow")
    assert all(set(y) == {0} for y in outputs(found).values())


@pytest.mark.parametrize("format", ["bfloat16", "float16", "float32", "float8_e5m2"])
def test_numbers_exact_and_nearest_are_torchs(format):
    state = {
        "row": "0.7, -3, 12.5, 0.01",
        "scale": "-1",
        "gain": "1.7",
        "format": format,
    }
    found, dtype = computed("numbers", state), getattr(torch, format)
    x = (torch.tensor([0.7, -3, 12.5, 0.01]) / 2).to(dtype).double()
    gain = torch.full((4,), 1.7).to(dtype).double()
    exact = F.rms_norm(x, (4,), gain, 1e-6)
    assert found["row"] == x.tolist()
    assert found["exact"] == pytest.approx(exact.tolist(), rel=1e-12)
    assert found["nearest"] == exact.float().to(dtype).double().tolist()
    for stored in found["stored"]:
        kind = getattr(torch, stored["name"])
        kept = torch.tensor(6.25).to(kind).float()
        assert stored["x"] == kept.item()
        assert stored["square"] == (kept * kept).to(kind).float().item()
        assert stored["eps"] == torch.tensor(1e-6).to(kind).float().item()


@pytest.mark.parametrize(
    "text", ["", "x", "1e999", "1,2,3,4,5,6,7,8,9,10", "0 0", "，3、4"]
)
def test_numbers_any_row_is_read(text):
    found = computed("numbers", {"row": text})
    assert 1 <= len(found["row"]) <= 8
    state = f'{{...figure.opening, row: "{text}"}}'
    assert explore.ask("numbers", f"figure.says({state}, figure.words.en)")


N, L, C = 2, 5, 4
NORMS = ("train", "eval", "layer", "rms", "group", "instance")


def normed(name, x, mask) -> torch.Tensor:
    """x (N, L, C) by torch; statistics of BatchNorm over ``mask`` where it is given."""
    channels = x.movedim(-1, 1)
    if name == "layer":
        return F.layer_norm(x, (C,))
    if name == "rms":
        return F.rms_norm(x, (C,), eps=1e-5)
    if name == "eval":
        return F.batch_norm(channels, torch.zeros(C), torch.ones(C)).movedim(1, -1)
    if name == "train":
        kept = x.flatten(0, 1) if mask is None else x[mask]
        return (x - kept.mean(0)) * (kept.var(0, correction=0) + 1e-5).rsqrt()
    if mask is not None:  # each sequence alone, its padding left out
        groups = 2 if name == "group" else C
        parts = []
        for rows, kept in zip(x, mask, strict=True):
            split = rows.view(L, groups, C // groups)
            real = split[kept].movedim(1, 0).flatten(1)  # (groups, values)
            mean, variance = real.mean(1), real.var(1, correction=0)
            scaled = (split - mean[:, None]) * (variance[:, None] + 1e-5).rsqrt()
            parts.append(scaled.reshape(L, C))
        return torch.stack(parts)
    norm = F.group_norm(channels, 2) if name == "group" else F.instance_norm(channels)
    return norm.movedim(1, -1)


@pytest.mark.parametrize("padding", ["counted", "masked"])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    ("cell", "value"), [(17, 4.0), (0, -3.5), (26, 0.1), (39, 5.0)]
)
def test_cells_that_move_are_torchs(cell, value, batch, padding):
    state = {"cell": str(cell), "value": str(value), "batch": str(batch)}
    found = computed("cells", state | {"padding": padding})
    chosen = cell % (batch * L * C)
    assert found["chosen"] == chosen
    before = torch.tensor(list(found["before"].values())).view(batch, L, C)
    after = before.clone()
    after.view(-1)[chosen] = value
    mask = None
    if padding == "masked":
        mask = torch.ones(batch, L, dtype=torch.bool)
        mask[1:, -2:] = False
    for norm in found["norms"]:
        alone = norm["name"] in ("layer", "rms", "eval")
        used = None if alone else mask
        by = (
            normed(norm["name"], after, used) - normed(norm["name"], before, used)
        ).abs()
        assert norm["moved"] == (by.flatten() > 0.005).nonzero().flatten().tolist()
        assert norm["by"] == pytest.approx(by.flatten().tolist(), abs=1e-5)


def of(found: dict) -> dict[str, dict]:
    return {norm["name"]: norm for norm in found["norms"]}


def test_cells_show_the_claims():
    leak = of(preset("cells", "the-causal-mask-keeps-a-decoder-causal"))
    assert leak["train"]["earlier"] and not leak["layer"]["earlier"]
    alone = of(preset("cells", "layer-norm-sees-one-token"))
    assert alone["layer"]["tokens"] == alone["rms"]["tokens"] == 0
    assert len(alone["layer"]["moved"]) == len(alone["rms"]["moved"]) == 4
    ignored = of(preset("cells", "groupnorm-and-instancenorm-ignore-the-batch"))
    for name in ("group", "instance"):
        assert min(ignored[name]["moved"]) >= L * C and ignored[name]["tokens"] == L - 1
    assert not ignored["train"]["earlier"]  # other sequences are no past
    masked = of(preset("cells", "padding-is-why-text-dropped-batchnorm"))
    assert masked["train"]["tokens"] == 0
    counted = of(computed("cells", {"cell": "36", "padding": "counted"}))
    assert counted["train"]["tokens"] == N * L - 1
    one = of(preset("cells", "decoding-with-a-batch-of-one-breaks-batchnorm"))
    assert one["eval"]["tokens"] == 0 and one["train"]["tokens"] == L - 1


def arrows(found: list) -> dict[str, dict]:
    return {arrow["name"]: arrow for arrow in found}


@pytest.mark.parametrize("features", [("2", "-0.4", "1.1"), ("1", "1", "1"), "000"])
@pytest.mark.parametrize("eps", ["-5", "0"])
def test_geometry_is_torchs(features, eps):
    state = dict(zip("xyz", features, strict=True)) | {"eps": eps, "gain": "1.5"}
    found = arrows(computed("geometry", state | {"add": "0.3", "times": "-2"}))
    x = (torch.tensor([float(v) for v in features]) + 0.3) / 4
    gain = torch.tensor([1, 1, 1.5])
    wanted = {
        "input": x,
        "layer": F.layer_norm(x, (3,), gain, None, 10.0 ** int(eps)),
        "rms": F.rms_norm(x, (3,), gain, 10.0 ** int(eps)),
    }
    for name, right in wanted.items():
        assert found[name]["v"] == pytest.approx(right.tolist(), rel=1e-5, abs=1e-4)
        assert found[name]["length"] == pytest.approx(right.norm().item(), abs=2e-4)
        assert found[name]["mean"] == pytest.approx(right.mean().item(), abs=1e-4)
        if right.norm() > 0.1:
            cosine = F.cosine_similarity(right, x, 0)
            turned = torch.rad2deg(torch.acos(cosine.clamp(-1, 1))).item()
            assert found[name]["turned"] == pytest.approx(turned, abs=0.1)


def test_geometry_shows_the_claims():
    opening = arrows(preset("geometry", "layer-norm-keeps-the-direction"))
    assert opening["layer"]["turned"] > 10 and opening["rms"]["turned"] < 0.1
    gained = arrows(preset("geometry", "rms-norm-keeps-the-direction"))
    assert gained["rms"]["turned"] > 5
    long = arrows(preset("geometry", "rms-norm-gives-unit-length"))
    assert long["rms"]["length"] == pytest.approx(3**0.5, abs=1e-3)
    half = arrows(preset("geometry", "no-information-is-lost"))
    for name in ("layer", "rms"):
        assert half[name]["v"] == pytest.approx(opening[name]["v"], abs=1e-3)
    assert half["input"]["length"] == pytest.approx(opening["input"]["length"] / 2)
    near = arrows(preset("geometry", "layernorm-outputs-mean-zero-and-variance-one"))
    assert near["layer"]["length"] < 0.5 * 3**0.5


@pytest.mark.parametrize(
    ("dy", "gain", "times", "eps"),
    [(("-0.5", "1.5", "1"), "1", "0", "-5"), (("2", "-0.3", "0.7"), "1.5", "-3", "-1")],
)
def test_backward_is_the_snippets(dy, gain, times, eps):
    state = dict(zip(("one", "two", "three"), dy, strict=True))
    state |= {"gain": gain, "times": times, "eps": eps}
    x = torch.tensor([0.8, -0.6, 1.8], dtype=torch.float64) * 2 ** float(times)
    g = torch.tensor([float(v) for v in dy], dtype=torch.float64)
    gains = torch.tensor([1, 1, float(gain)], dtype=torch.float64)
    small = 10.0 ** float(eps)
    squares = {"layer": x.var(correction=0), "rms": x.square().mean()}
    right = {
        "layer": layer_norm_backward(g, x, gains, small)[0],
        "rms": rms_norm_backward(g, x, gains, small)[0],
    }
    found = arrows(computed("backward", state))
    cut = arrows(computed("backward", state | {"statistics": "cut"}))
    assert found["input"]["v"] == g.tolist()
    for name, dx in right.items():
        scale = (squares[name] + small).sqrt()
        assert found[name]["scale"] == pytest.approx(scale.item(), rel=1e-6)
        assert cut[name]["v"] == pytest.approx((g * gains / scale).tolist(), rel=1e-6)
        assert found[name]["v"] == pytest.approx(dx.tolist(), rel=1e-5, abs=1e-5)
        assert found[name]["sum"] == pytest.approx(dx.sum().item(), abs=1e-5)
        cosine = F.cosine_similarity(dx, x, 0)
        angle = torch.rad2deg(torch.acos(cosine)).item()
        assert found[name]["angle"] == pytest.approx(angle, abs=1e-2)
        path = torch.tensor(found[name]["path"], dtype=torch.float64)
        assert path[[0, -1]].tolist() == [g.tolist(), found[name]["v"]]
        assert path[-2].tolist() == pytest.approx((dx * scale).tolist(), abs=1e-5)
    flat = found["layer"]["path"][2]
    assert sum(flat) == pytest.approx(0, abs=1e-9)
    assert found["rms"]["path"][1] == pytest.approx((g * gains).tolist())


def test_backward_shows_the_claims():
    opening = arrows(computed("backward", {}))
    larger = arrows(preset("backward", "gradients-keep-their-size"))
    root = arrows(preset("backward", "the-root-may-be-detached"))
    along = {"one": "0.8", "two": "-0.6", "three": "1.8"}
    true = arrows(computed("backward", along))
    cut = arrows(preset("backward", "the-statistics-may-be-detached"))
    leaky = arrows(preset("backward", "the-gradient-is-orthogonal-to-the-input"))
    for name in ("layer", "rms"):
        half = pytest.approx(opening[name]["length"] / 2, rel=1e-3)
        assert larger[name]["length"] == half
        assert opening[name]["angle"] == pytest.approx(90, abs=0.1)
    assert true["rms"]["length"] < 1e-4
    assert root["rms"]["angle"] < 0.1 and root["rms"]["length"] > 0.5
    assert abs(opening["layer"]["sum"]) < 1e-6 < 1 < cut["layer"]["sum"]
    assert abs(leaky["layer"]["angle"] - 90) > 20


KEYS = (15, 40, 70, 100, 215, 330)


def row_of(state: dict) -> dict[str, torch.Tensor]:
    """The row by torch: vectors of 64 features in a plane, and what is done to them."""
    start = 4.0 * 2 ** float(state["grown"])

    def vectors(*degrees):
        angle = torch.deg2rad(torch.tensor(degrees, dtype=torch.float64))
        plane = start * torch.stack([angle.cos(), angle.sin()], dim=1)
        return F.pad(plane, (0, 62))

    q, k = vectors(float(state["angle"])), vectors(*KEYS)
    if state["remedy"] == "norm":
        gain = torch.full((64,), float(state["gain"]), dtype=torch.float64)
        q, k = (F.rms_norm(x, (64,), gain, 0.0) for x in (q, k))
    if state["remedy"] == "clip" and (most := (q @ k.T / 8).max()) > 100:
        q, k = (x * (100 / most).sqrt() for x in (q, k))
    raw = (q @ k.T / 8)[0]

    def weights(z):
        cap = float(state["cap"])
        return (cap * torch.tanh(z / cap) if state["remedy"] == "cap" else z).softmax(0)

    cap = float(state["cap"])
    logits = cap * torch.tanh(raw / cap) if state["remedy"] == "cap" else raw
    p = weights(raw)
    slope = torch.func.jacrev(weights)(raw).norm()
    return {
        "logits": logits,
        "weights": p,
        "entropy": torch.special.entr(p).sum(),
        "slope": slope,
    }


@pytest.mark.parametrize("remedy", ["none", "norm", "cap", "clip"])
@pytest.mark.parametrize(
    ("angle", "grown"), [("30", "0"), ("215", "2.5"), ("100", "4")]
)
def test_attention_is_torchs(remedy, angle, grown):
    state = {"angle": angle, "grown": grown, "remedy": remedy, "gain": "1.5"}
    state |= {"cap": "30"}
    found = computed("attention", state)
    for name, right in row_of(state).items():
        assert found[name] == pytest.approx(right.tolist(), rel=1e-6, abs=1e-8), name


def test_attention_shows_the_claims():
    opening = computed("attention", {})
    collapsed = preset("attention", "large-logits-kill-the-softmax-gradient")
    way = computed("attention", {"grown": "1.5"})
    assert collapsed["slope"] < 1e-3 < opening["slope"] < way["slope"]
    grown = preset("attention", "pre-norm-keeps-attention-logits-in-bounds")["logits"]
    assert grown == pytest.approx([64 * z for z in opening["logits"]])
    bound = preset("attention", "qk-norm-bounds-logits-by-the-root-of-the-width")
    ones = computed("attention", {"remedy": "norm", "grown": "3"})["logits"]
    assert bound["logits"] == pytest.approx([9 * z for z in ones]) and max(ones) < 8
    alone = preset("attention", "a-cap-of-50-prevents-one-hot-attention")
    assert max(alone["logits"]) < 50 and max(alone["weights"]) > 0.999
    crowd = {"grown": "4", "remedy": "cap", "cap": "50"}
    flat = computed("attention", crowd)["weights"]
    assert max(flat) < 0.5 < max(computed("attention", {"grown": "4"})["weights"])
    bent = preset("attention", "soft-capping-truncates-logits")["logits"]
    straight = computed("attention", {"grown": "2"})["logits"]
    assert all(abs(b) < abs(z) for b, z in zip(bent, straight, strict=True))
    clipped = preset("attention", "qk-clip-adds-a-layer-to-the-model")
    assert max(clipped["logits"]) == pytest.approx(100)
    assert clipped["kept"] == pytest.approx(100 / max(grown))  # the arrows' square
    assert opening["kept"] == 1


def the_laws() -> None:
    test_cells_show_the_claims()
    for padding in ("counted", "masked"):
        test_cells_that_move_are_torchs(26, 0.1, 2, padding)
    test_numbers_exact_and_nearest_are_torchs("bfloat16")
    test_numbers_cast_orders_differ()
    test_geometry_is_torchs(("2", "-0.4", "1.1"), "0")
    test_backward_is_the_snippets(("2", "-0.3", "0.7"), "1.5", "-3", "-1")
    for remedy in ("none", "norm", "cap", "clip"):
        test_attention_is_torchs(remedy, "100", "4")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("cells", "const MOVED = 0.005", "const MOVED = 0.2"),
        ("cells", "const EPS = 1e-5", "const EPS = 0.1"),
        ("cells", 'centred: name !== "rms"', "centred: true"),
        ("cells", 'if (name === "eval")', "if (false)"),
        ("cells", "masked && cells.count", "cells.count"),
        ("cells", "t >= first && t < mine", "t > mine"),
        ("numbers", "round(Number(one), format)", "Number(one)"),
        ("numbers", "round(v, format));", "Math.fround(v));"),
        ("numbers", "kept.length + eps", "kept.length"),
        ("numbers", "eps: round(eps, format)", "eps"),
        ("numbers", "Math.fround(kept * kept)", "x * x"),
        ("geometry", 'centred: name === "layer"', "centred: true"),
        ("geometry", "const eps = 10 ** state.eps", "const eps = 1e-5"),
        ("geometry", "factor * (Number(v) +", "(factor * Number(v) +"),
        ("geometry", "180) / Math.PI", "90) / Math.PI"),
        ("backward", 'centred: name === "layer"', "centred: true"),
        ("backward", "spec.fixed = saved", "spec.centred = false"),
        ("backward", "v * gain[i]", "v"),
        ("backward", "sum(gained) / 3", "sum(dy) / 3"),
        ("backward", "scaled(dx, scale)", "dx"),
        ("attention", "(length * length) / unit", "length / unit"),
        ("attention", "state.gain * unit", "unit"),
        ("attention", "1 - t * t", "1 - t"),
        ("attention", "z * kept", "Math.min(z, THRESHOLD)"),
        ("attention", "k === i ? 0 : w * w", "w * w"),
        ("attention", "-p * log(p)", "-p * log(p) / Math.LN2"),
    ],
)
def test_a_mistake_is_noticed(name, old, new, monkeypatch):
    right = explore.script(name)
    assert right.count(old) == 1
    other = {n: explore.script(n) for n in NAMES} | {name: right.replace(old, new)}
    monkeypatch.setattr(explore, "script", other.__getitem__)
    with pytest.raises(AssertionError):
        the_laws()
