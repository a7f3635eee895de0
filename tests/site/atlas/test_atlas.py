"""The atlas's pages from a record: table, entries, drawings, downloads."""

import csv
import importlib.util
import io
import json
import re
from pathlib import Path

import pytest

from scripts.site import atlas
from scripts.site.atlas import downloads, drawing, entries, models, words
from scripts.site.atlas import rows as read
from scripts.site.atlas import table as tables
from scripts.site.reading import files
from scripts.site.reading.source import SourceError

PRE = ["a = x + Attention(N[ln_1](x))", "y = a + FFN(N[ln_2](a))"]


def norm(site, name, **changes):
    """A norm as the record keeps it, a plain RMSNorm but for the changes."""
    plain = dict(
        kind="RMSNorm",
        gain="w",
        bias=False,
        eps=1e-6,
        cast="cast, then gain",
        fp16=True,
    )
    found = {"site": site, "name": name, "class": "Norm", "line": "m.py:1"} | plain
    found["within"] = ""
    return [(found | changes)[field] for field in read.NORM]


def row(architecture, **changes):
    plain = dict(
        model_class="M",
        layer="",
        layers=[0, 1],
        status="resolved",
        reason=None,
        placement="pre",
        equations=PRE,
        norms=[norm("attention-in", "ln_1"), norm("ffn-in", "ln_2")],
        qk=[],
        functional=[],
        caps=[],
        multipliers=[],
        source=[["Block", "modeling_plain.py", 10, 20]],
    )
    plain["norms"] = [*plain["norms"], norm("final", "norm")]
    return {"architecture": architecture} | plain | changes


ROWS = [
    row("alpha"),
    row("alpha2_text"),
    row(
        "gamma",
        layer="full_attention",
        placement="sandwich",
        norms=[norm("attention-in", "pre", gain="1+w"), norm("final", "norm")],
        qk=[
            ["q", "RMSNorm", "1+w", "head", "after"],
            ["k", "RMSNorm", "w", "head", "after"],
        ],
        caps=[["attn_logit_softcapping", 50.0]],
        multipliers=[["residual_multiplier", 0.5]],
        equations=["y = N[post](x + 0.5·Attention(x))"],
    ),
    row("gamma", layer="mamba", layers=[2], placement=None, equations=[], norms=[]),
    row("gamma", layer="mamba (layer 3)", placement=None, equations=[], norms=[]),
    row("omega", status="unresolved", reason="needs <1 GB", norms=[], equations=[]),
]


@pytest.fixture
def record(monkeypatch):
    monkeypatch.setattr(read, "rows", lambda: ROWS)
    monkeypatch.setattr(read, "version", lambda package="transformers": "9.9.9")
    found = type("Record", (), {"date": "2026-11-21"})
    monkeypatch.setattr(read, "record", lambda: found)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_table(record, language):
    found = tables.table(language)
    assert found.count("<tr data-") == len(ROWS) - 1  # two layers read alike
    assert 'data-family="alpha"' in found and 'data-family="gamma"' not in found
    assert 'href="blocks-a-d.md#alpha2-text"' in found
    assert 'data-placement="unresolved"' in found and 'data-gain="1+w"' in found
    assert 'data-eps="1e-6"' in found and 'data-cast="cast, then gain"' in found
    assert f"<td>{words.rounds_words('cast, then gain', language)}</td>" in found
    labels = json.loads(
        re.search(r'data-labels="([^"]*)"', found)[1].replace("&quot;", '"')
    )
    chosen = set(re.findall(r'data-placement="([^"]*)"', found))
    assert chosen <= labels.keys()


def test_each_line_leads_to_an_entry(record):
    for part, anchor in re.findall(
        r'href="blocks-([a-z]-[a-z])\.md#([\w-]+)"', tables.table("en")
    ):
        assert f"{{ #{anchor} }}" in entries.blocks(part.replace("-", "_"), "en")


@pytest.mark.parametrize("language", ["zh", "en"])
def test_entries(record, language):
    first = entries.blocks("a_d", language)
    assert first.count("### `") == 2 and first.count("<svg") == 2
    assert (
        "blob/v9.9.9/src/transformers/models/plain/modeling_plain.py#L10-L20" in first
    )
    second = entries.blocks("e_g", language)
    assert second.count("### `gamma`") == 1 and "**mamba**" in second
    assert "attn_logit_softcapping` = 50" in second
    assert "needs &lt;1 GB" in entries.blocks("n_q", language)


@pytest.mark.parametrize("status", ["partial", "unresolved"])
def test_what_was_not_resolved_is_not_called_none(status):
    found = row("beta", status=status, reason="r", norms=[])
    assert tables.norm_words(found, words.WORDS["en"]) == "–"
    assert (
        tables.norm_words(found | {"status": "resolved"}, words.WORDS["en"]) == "none"
    )


def test_plain_text_for_programs(record):
    lines = atlas.make_plain("table", "en").splitlines()
    expected = "alpha | RMSNorm | pre | none | 1e-6 | before gain |"
    assert expected in [line.strip() for line in lines]
    text = atlas.make_plain("blocks_a_d", "en")
    assert "`y = a + FFN(N[ln_2](a))`" in text and "<" not in text


def test_what_is_unusual():
    plain, odd = ROWS[0], ROWS[2]
    assert read.oddities(plain) == {}
    assert set(read.oddities(odd)) == {"one_plus", "after_rope", "factors"}
    strange = row(
        "beta",
        norms=[
            norm("attention-in", "a", eps=1e-3, gain="none"),
            norm("v", "b", kind="LayerNorm", fp16=False),
            norm("latent-kv", "c"),
            norm("gated", "d"),
        ],
    )
    assert set(read.oddities(strange)) == {
        *("no_gain", "kinds", "eps", "v", "latent", "gated", "no_final", "overflow")
    }


@pytest.mark.parametrize(
    ("reason", "en", "zh"),
    [
        ("not done after 60 s", "not done after 60 s", "60 秒内没有跑完"),
        (
            "branches differ: Attention pre, FFN sandwich",
            "branches differ: Attention pre, FFN sandwich",
            "各分支不同：Attention Pre、FFN 夹心",
        ),
        (
            "StrictError: Class validation error for validator 'v': ValueError: "
            "`a` must match <b>",
            "does not run as a tiny text-only instance: `a must match <b>`",
            "缩小后，只输入文本时无法运行（`a must match <b>`）",
        ),
        ("needs <1 GB", "needs &lt;1 GB", "needs &lt;1 GB"),
    ],
)
def test_reasons_are_for_people(reason, en, zh):
    assert words.reason_words(reason, "en") == en
    assert words.reason_words(reason, "zh") == zh


def test_reasons_of_the_record_are_put_in_words(no_violations):
    said = {row["reason"] for row in read.rows() if row["reason"]}
    no_violations(
        f"no words for {reason!r}"
        for reason in said
        if not any(re.fullmatch(pattern, reason) for pattern, _ in words.REASONS)
    )


def test_source_files_exist_and_hold_the_lines(no_violations):
    """What a link leads to, looked up in the installed packages."""
    pytest.importorskip("transformers")
    roots = {
        package: Path(importlib.util.find_spec(package).origin).parents[1]
        for package in ("transformers", "torch")
    }
    places = {tuple(place) for row in read.rows() for place in row["source"] if place}
    places |= {
        ("norm", *norm["line"].split(":"), norm["line"].split(":")[1])
        for row in read.rows()
        for norm in read.norms(row)
    }
    wrong = []
    for _, file, first, last in places:
        package, path = entries.source_path(file)
        found = roots[package] / path.removeprefix("src/")
        if not found.is_file():
            wrong.append(f"no {path} in {package}")
            continue
        lines = found.read_text(encoding="utf-8").splitlines()
        if not 0 < int(first) <= int(last) <= len(lines):
            wrong.append(f"{path} has no lines {first}-{last}")
        elif not lines[int(first) - 1].strip():
            wrong.append(f"{path}: line {first} is empty")
    no_violations(sorted(wrong))


@pytest.mark.parametrize(
    ("file", "path"),
    [
        (
            "modeling_data2vec_text.py",
            "src/transformers/models/data2vec/modeling_data2vec_text.py",
        ),
        ("normalization.py", "torch/nn/modules/normalization.py"),
    ],
)
def test_source_paths(file, path):
    assert entries.source_path(file)[1] == path


def test_a_norm_of_k_alone_is_said_to_be_one(record):
    only = row("kappa", qk=[["k", "RMSNorm", "w", "head", "before"]])
    said = tables.qk_words(only, words.WORDS["en"])
    assert said == "k only, per head, before RoPE"


def test_downloads(record):
    found = json.loads(downloads.as_json())
    assert len(found["architectures"]) == len(ROWS)
    assert found["architectures"][0]["norms"][0]["eps"] == 1e-6
    lines = list(csv.DictReader(io.StringIO(downloads.as_csv())))
    assert [line["architecture"] for line in lines] == [r["architecture"] for r in ROWS]
    assert lines[2]["qk_rope"] == "after" and lines[5]["reason"] == "needs <1 GB"


def test_unknown_part_is_one_line():
    with pytest.raises(SourceError, match="unknown part of the atlas 'x'"):
        atlas.make("x", "en")


def test_no_record_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(read.records, "RECORDS", tmp_path)
    with pytest.raises(SourceError, match="no record of model_atlas"):
        read.record()


@pytest.mark.parametrize(("eps", "said"), [(1e-6, "ε 1e-6"), (None, "ε –")])
def test_the_table_of_models_says_the_epsilon(eps, said, monkeypatch):
    row = models.models()[0] | {"eps": eps}
    monkeypatch.setattr(models, "models", lambda: [row])
    assert f"<small>{said}</small>" in models.table("en")


def test_damaged_models_are_one_line(tmp_path, monkeypatch):
    (tmp_path / "models.yml").write_text("- model: [", encoding="utf-8")
    monkeypatch.setattr(files, "ROOT", tmp_path)
    monkeypatch.setattr(models, "FILE", tmp_path / "models.yml")
    with pytest.raises(SourceError, match=r"^models\.yml: ") as caught:
        models.models()
    assert "\n" not in str(caught.value)


# Drawings -------------------------------------------------------------------


def boxes(svg):
    """(kind, x, y, width) of each box, from the bottom upwards."""
    found = re.findall(
        r'<rect class="(norm|branch)" x="([\d.]+)" y="(-[\d.]+)" width="([\d.]+)',
        svg,
    )
    return sorted(
        ((k, float(x), -float(y), float(w)) for k, x, y, w in found), key=lambda b: b[2]
    )


def test_a_chain_is_read_from_inside():
    left, (stream, branch) = drawing.parse("a = 0.5·x + 2e-1*N[b](Attention(N[a](x)))")
    assert left == "a" and stream == drawing.Term("0.5", (), "x")
    assert branch == drawing.Term("2e-1", ("N[a]", "Attention", "N[b]"), "x")


def test_a_factor_may_differ_by_channel():
    _, (stream, _) = drawing.parse("y = c⊙x + FFN(x)")
    assert stream == drawing.Term("c", (), "x")


def test_boxes_stand_in_the_order_of_the_calls():
    svg = drawing.draw(PRE, "a block")
    assert [box[0] for box in boxes(svg)] == ["norm", "branch", "norm", "branch"]
    assert svg.count("<circle") == 2


def test_post_norm_stands_on_the_stream():
    found = boxes(drawing.draw(["y = N[ln](x + FFN(x))"], "a block"))
    assert [box[0] for box in found] == ["branch", "norm"]
    assert found[1][1] < found[0][1]  # left, where the stream runs


def test_a_shared_norm_is_drawn_once():
    svg = drawing.draw(["y = x + Attention(N[ln](x)) + FFN(N[ln](x))"], "a block")
    assert [box[0] for box in boxes(svg)] == ["norm", "branch", "branch"]


@pytest.mark.parametrize(
    "equations",
    [
        PRE,
        ["y = x + Attention(N[ln_1](x)) + FFN(N[ln_2](x))"],
        ["y = x + Attention(N[ln](x)) + FFN(N[ln](x))"],
        ["n = N[in](x)", "a = 3.5·n + 0.5·Attention(n)", "y = N[out](a + FFN(a))"],
    ],
)
def test_boxes_do_not_overlap_and_stand_inside(equations):
    svg = drawing.draw(equations, "a block")
    width, height = map(
        float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)', svg).groups()
    )
    found = boxes(svg)
    for number, (_, x, y, w) in enumerate(found):
        assert x >= 0 and x + w <= width and y <= height
        for _, other_x, other_y, other_w in found[:number]:
            apart = abs(y - other_y) >= drawing.BOX
            assert apart or x >= other_x + other_w or other_x >= x + w


def test_a_stored_factor_stands_on_the_stream_after_the_sum():
    _, (whole,) = drawing.parse("y = layer_scalar·(x + FFN(x))")
    assert whole.factor == "layer_scalar" and len(whole.inner) == 2
    svg = drawing.draw(["y = layer_scalar·(x + FFN(x))"], "a block")
    assert ">×layer_scalar</text>" in svg and svg.count("<circle") == 1


@pytest.mark.parametrize(
    ("line", "factor"),
    [
        ("y = x + (1.4/√L)·FFN(x)", "×1.4/√L"),
        ("y = scale⊙x + FFN(x)", "×scale"),
        ("y = x + 0.5·FFN(x)", "×0.5"),
    ],
)
def test_factors_are_shown(line, factor):
    assert f">{factor}</text>" in drawing.draw([line], "a block")


def test_norms_inside_a_branch_stand_in_its_box():
    within = {"Attention": (["q_norm", "k_norm"], ["o_norm"])}
    svg = drawing.draw(PRE, "a block", within)
    assert svg.count('class="inner"') == 3
    (x, y, w, h) = (
        float(v)
        for v in re.search(
            r'"branch" x="([\d.]+)" y="(-[\d.]+)" width="([\d.]+)" height="([\d.]+)"',
            svg,
        ).groups()
    )
    inner = re.findall(
        r'"inner" x="([\d.]+)" y="(-[\d.]+)" width="([\d.]+)" height="(\d+)"', svg
    )
    for ix, iy, iw, ih in (map(float, box) for box in inner):
        assert x < ix and ix + iw < x + w and y < iy and iy + ih < y + h
    assert drawing.draw(PRE, "a block", {"FFN": ([], [])}) == drawing.draw(
        PRE, "a block"
    )


def test_which_norms_stand_inside():
    found = row(
        "beta",
        norms=[
            norm("q", "q_norm", within="Attention"),
            norm("gated", "o_norm", within="Attention"),
            norm("ffn-in", "ln"),
        ],
    )
    assert read.within(found) == {"Attention": (["q_norm"], ["o_norm"])}


@pytest.mark.parametrize(
    "equations",
    [
        ["x + FFN(x)"],
        ["y = x + FFN(x"],
        ["y = x +"],
        ["y = x - FFN(x)"],
        ["y = x + bias + FFN(x)"],
        ["a = x + FFN(x)", "y = x + FFN(a)"],  # the stream would jump
    ],
)
def test_what_is_no_block_is_refused(equations):
    with pytest.raises(drawing.EquationError):
        drawing.draw(equations, "a block")


def test_what_is_chosen_now_is_counted():
    """The numbers of 'Which norm should I use?', counted another way."""
    rows = [
        row
        for row in files.read_yaml(models.FILE)
        if (row["released"] or [row["document"]])[0][:4] >= "2025"
    ]
    counted = {
        "recent": rows,
        "recent_rms_norm": [r for r in rows if r["norm"] == "RMSNorm"],
        "recent_pre": [r for r in rows if r["placement"] == "pre"],
        "recent_qk": [r for r in rows if r["qk_norm"] != "none"],
    }
    for name, wanted in counted.items():
        assert atlas.make(name, "en") == str(len(wanted)) != "0"
