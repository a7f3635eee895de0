"""Two rows of the atlas against each other: what differs, in V8 as in a browser."""

import gzip
import html
import inspect
import itertools
import json
import re
from string import Formatter
from types import SimpleNamespace

import pytest

from scripts.site import atlas, hooks
from scripts.site.atlas import compare, compare_words
from scripts.site.reading import source
from scripts.site.reading.javascript import running
from scripts.site.reading.source import LANGUAGES, SourceError
from snippets.port_a_norm import folding, gains, state

GZIPPED = 48_000  # bytes that a reader who compares loads once


def answer(pair, language="en"):
    return compare.ask(language, f"atlasCompare.pair(data, {json.dumps(pair)})")


def said(pair, language="en") -> str:
    return "\n".join(answer(pair, language)["differences"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_pair_has_an_answer(language, no_violations):
    """Words for everything, and the same verdict both ways: each row, a part of all."""
    wrong = compare.ask(
        language,
        """(() => {
          const wrong = [], key = (row) => `${row.name}:${row.layers[0]}`;
          const gaps = /undefined|null|NaN|[{]\\w+[}]|\\(\\)|（）/;
          const like = ({ name, href, layers, indices, kind, ...rest }) =>
            JSON.stringify(rest);
          const rows = [...new Map(data.rows.map((row) => [like(row), row])).values()];
          for (const a of rows) for (const b of rows) {
            if (rows.indexOf(b) % EVERY) continue;
            const text = `${key(a)},${key(b)}`;
            const found = atlasCompare.pair(data, text);
            const { line, differences, steps } = found;
            const said = (steps ?? []).map(({ code, ...step }) => step);
            const all = JSON.stringify([line, differences ?? [], said]);
            if (!line || gaps.test(all)) wrong.push(`${text}: ${all}`);
            if (!differences) continue;
            if (differences.length && !steps.length) wrong.push(`${text}: no steps`);
            const back = atlasCompare.pair(data, `${key(b)},${key(a)}`).differences;
            if (!differences.length !== !back.length) wrong.push(`${text}: one way`);
            found.rows.forEach((row, i) => {
              if (row.drawing === null) return;
              for (const label of Object.keys(row.boxes)) {
                if (!data.drawings[row.drawing].includes(`>${label}</text>`))
                  wrong.push(`${key(row)}: draws no ${label}`);
              }
            });
          }
          return [...new Set(wrong)].slice(0, 9);
        })()""".replace("EVERY", "16" if language == "zh" else "4"),
    )
    no_violations(wrong)


# What one changes in a row, and how the difference between it and the old one begins.
CHANGES = {
    "kind": ("norm: RMSNorm → LayerNorm", "LayerNorm"),
    "gain": ("gain: w → 1 + w", "1+w"),
    "bias": ("bias: no bias → with bias", "yes"),
    "eps": ("ε: 1e-6 → 3e-5", "3e-5"),
    "cast": ("rounding: cast before the gain → cast after the gain",) * 2,
    "dtype": ("dtype out: float32 → float16", "float16"),
}
CHANGES["cast"] = (CHANGES["cast"][0], "gain in fp32, then cast")


@pytest.mark.parametrize("field", CHANGES)
def test_a_changed_field_is_the_one_difference(field):
    begins, value = CHANGES[field]
    found = compare.ask(
        "en",
        f"""(() => {{
          const other = structuredClone(data);
          const row = other.rows.find((row) => row.name === "llama");
          const changed = {{ ...structuredClone(row), name: "changed" }};
          for (const part of Object.values(changed.parts)) {{
            const form = [...other.forms[part[1]]];
            form[other.fields.indexOf("{field}")] = "{value}";
            part[1] = other.forms.push(form) - 1;
          }}
          other.rows.push(changed);
          return atlasCompare.pair(other, "llama,changed");
        }})()""".replace("structuredClone(", "copy(").replace(
            "(() => {", "(() => { const copy = (x) => JSON.parse(JSON.stringify(x));", 1
        ),
    )
    assert found["differences"] == [begins] and len(found["steps"]) == 1
    assert set(found["marks"][0].values()) == {"differs"}
    assert len(found["marks"][0]) == 2  # the final norm is not drawn


@pytest.mark.parametrize(
    ("change", "begins"),
    [
        ("row.boxes = {}; delete row.parts['ffn-in']",
         "only in `llama`: `post_attention_layernorm`"),
        ("row.parts.q = ['q_norm', 0, 'head', 'after']", "only in `changed`: `q_norm`"),
        ("row.parts.final[1] = other.forms.push(['L2', 'none', 'no', '', '', '']) - 1",
         "norm: RMSNorm → L2 (final norm)"),
        ("row.placement = 'sandwich'", "placement: pre → sandwich"),
        ("row.branches = ['Mamba', 'FFN']", "branches: `Attention`, `FFN` → `Mamba`"),
        ("row.caps = ['final = 30']", "soft caps: none → `final = 30`"),
        ("row.factors = ['0.5·FFN']", "coefficients: none → `0.5·FFN`"),
        ("row.multipliers = ['m = 2']", "multipliers: none → `m = 2`"),
        ("row.functional = ['norm']", "norms without a module: none → `norm`"),
        ("row.overflow = true", "float16 at 300: safe → overflows"),
        ("row.boxes = {}; row.parts = {'ffn-out': row.parts['ffn-in']}",
         "the same name elsewhere: `post_attention_layernorm` is before the FFN"),
    ],
)  # fmt: skip
def test_a_planted_difference_is_found(change, begins):
    found = compare.ask(
        "en",
        f"""(() => {{
          const other = JSON.parse(JSON.stringify(data));
          const llama = other.rows.find((row) => row.name === "llama");
          const row = JSON.parse(JSON.stringify({{ ...llama, name: "changed" }}));
          {change};
          other.rows.push(row);
          return atlasCompare.pair(other, "llama,changed");
        }})()""",
    )
    assert any(line.startswith(begins) for line in found["differences"]), found
    assert found["steps"] or "placement" in change  # its norms say what to do


def test_from_llama_to_gemma_3():
    found = answer("llama,gemma3_text")
    steps = {step["id"]: step for step in found["steps"]}
    assert set(steps) == {
        *("add_tensors", "add_norm", "gain w 1+w", "cast", "dtype", "trap", "rename")
    }
    bugs = [bug for bug, _ in steps["gain w 1+w"]["bugs"]]
    assert bugs == ["one_plus_forgotten", "one_plus_rounds"]
    assert (
        "`pre_feedforward_layernorm` → `post_attention_layernorm`"
        in (steps["rename"]["text"])
    )
    assert found["marks"][1]["q_norm"] == "only"
    assert found["marks"][1]["input_layernorm"] == "differs"


def test_a_norm_around_a_sum_has_its_branchs_place():
    rows = {row["name"]: row for row in compare.feature_rows("en")}
    assert rows["bert"]["boxes"] == {
        "attention.output.LayerNorm": "attention-sum",
        "output.LayerNorm": "ffn-sum",
    }


def test_what_mixes_positions_need_not_be_attention():
    """Kimi's linear layers have their norm where others have attention's."""
    assert "input_layernorm" not in said("deepseek_v3,kimi_linear")


def test_a_norm_of_the_sum_is_not_one_of_the_branch():
    """Post-Norm against norms on the branch's output: two places."""
    found = answer("bert,olmo2")
    assert {"attention.output.LayerNorm", "output.LayerNorm"} <= {
        label for label, mark in found["marks"][0].items() if mark == "only"
    }
    assert "on the sum after the FFN" in "".join(found["differences"])


def test_what_was_measured_is_what_is_missing():
    """A norm on the embedding or a latent was not left out in the small model."""
    wrong = {
        step["text"].partition(":")[0]: step.get("wrong", [None])[0]
        for step in answer("llama,bert")["steps"]
    }
    assert wrong["Take out"] == "input_norms_added" and wrong["Add"] is None
    steps = answer("llama,deepseek_v3")["steps"]
    assert [step["id"] for step in steps] == ["add_inside"]
    assert "wrong" not in steps[0] and not steps[0]["bugs"]


def measured(pair, step):
    """The wrong choice whose cost stands under a step of a pair, and its bugs."""
    found = next(s for s in answer(pair)["steps"] if s["id"] == step)
    return found.get("wrong", [None])[0], [bug for bug, _ in found["bugs"]]


@pytest.mark.parametrize(
    ("pair", "step", "wrong", "bugs"),
    [
        ("llama,olmo2", "cast", "rounded_before_gain", []),
        ("olmo2,llama", "cast", "rounded_after_gain", []),
        ("gpt2,llama", "cast", "rounded_after_gain", []),
        ("llama,olmo2", "dtype", None, ["cast_back_forgotten"]),
        ("olmo2,llama", "dtype", None, []),
        ("gpt2,llama", "eps", "eps_ten_times", ["eps_hard_coded"]),
        ("llama,olmo2", "eps", None, ["eps_hard_coded"]),
        ("gpt2,bert", "eps", None, ["eps_hard_coded"]),
        ("gpt2,bert", "add_norm", None, []),
        ("gpt2,bert", "add_other", None, []),
        ("olmo2,llama", "add_norm", "input_norms_left_out", ["residual_after_norm"]),
        ("llama,olmo2", "add_norm", "output_norms_left_out", []),
        ("llama,axk1", "add_norm", None, []),
        ("llama,cohere2", "add_norm", None, ["residual_after_norm"]),
        ("llama,qwen3", "add_tensors", "qk_norm_left_out", ["across_heads"]),
        ("llama,olmo2", "add_tensors", None, ["per_shard"]),
        ("olmo2,llama", "drop_tensors", None, []),
        ("qwen3,olmo2", "scope head projection", None, ["per_shard"]),
        ("olmo2,qwen3", "scope", "qk_norm_whole_projection", ["across_heads"]),
        ("llama,gemma2", "trap", None, []),
        ("gemma2,llama", "gain 1+w w", "one_added", []),
    ],
)
def test_a_number_and_a_bug_are_of_this_change(pair, step, wrong, bugs):
    """The reverse of a change is another mistake, and so is another size of it."""
    assert measured(pair, step) == (wrong, bugs)


def test_every_number_named_was_measured():
    steps = compare_words.written()["steps"].values()
    named = [compare._by_side(step["wrong"]) for step in steps if "wrong" in step]
    assert {name for each in named for name in each.values()} <= {
        *compare_words.errors()
    }


def test_no_bias_is_taken_from_a_norm_that_has_none():
    """RMSNorm in LayerNorm's place: nothing to set to zero; LayerNorm's own: yes."""
    assert "bias yes no" not in {step["id"] for step in answer("gpt2,llama")["steps"]}
    assert "bias: with bias → no bias" in said("gpt2,llama")
    steps = {step["id"] for step in answer("bert,modernbert")["steps"]}
    assert "bias yes no" in steps


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("modernbert", "sliding_attention/full_attention (layers 1–3)"),
        ("modernbert-decoder", "sliding_attention/full_attention (layers 1–3)"),
        ("axk1", "layers 1–3"),
        ("kimi_linear", "linear_attention (layers 0–2)"),
        ("t5", "encoder (layers 0–3)"),
    ],
)
def test_a_name_alone_is_its_most_frequent_layer(name, kind):
    found = answer(f"llama,{name}")
    assert found["rows"][1]["kind"] == kind
    assert f"Of `{name}`, this compares {kind}; it also has: " in found["line"]
    key = found["rows"][1]["layers"][0]
    assert "it also has" not in answer(f"llama,{name}:{key}")["line"]


def test_a_module_in_a_block_is_named_by_its_path():
    assert "`attention.output.LayerNorm` (on the sum after attention)" in said(
        "gpt2,bert"
    )
    steps = {step["id"]: step["text"] for step in answer("bert,modernbert")["steps"]}
    assert "did not record" in steps["rename"]


def test_code_under_a_step_is_the_tested_snippet():
    steps = compare.data("en")["steps"]
    for key, snippet in {
        "gain w 1+w": gains.gain_of,
        "gain 1+w w": gains.weight_of,
        "gain none *": folding.fold,
        "bias no yes": folding.fold,
        "rename": state.ported,
        "trap": state.ported,
    }.items():
        lines = re.sub(r"  # \(\d+\)!", "", inspect.getsource(snippet)).strip()
        assert lines in steps[key]["code"] and "(1)!" not in steps[key]["code"]
        assert "--8<--" not in steps[key]["code"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_pair_of_the_table_has_its_checklist(language):
    """Folded, for a reader without scripts, with links that the build resolves."""
    cells = re.findall(r"<details>(.*?)</details>", compare.pairs(language))
    assert len(cells) == len(compare.PAIRS)
    for (a, b), cell in zip(compare.PAIRS, cells, strict=True):
        steps = answer(f"{a},{b}", language)["steps"]
        shown = re.findall(r"<li>(.*?)(?: <small>.*?</small>)?</li>", cell)
        texts = [html.escape(step["text"]) for step in steps]
        assert [re.sub(r"</?code>", "`", text) for text in shown] == texts
        assert compare_words.words(language)["not_compared"] in cell
        for page in re.findall(r'href="([^"#]*)', cell):
            folder = source.ROOT / "docs" / language / "pages/practice"
            assert hooks.RAW_LINK.match(f'href="{page}"') and (folder / page).exists()


@pytest.mark.parametrize(
    ("link", "file"),
    [
        ("port-a-norm.md#errors", "practice/port-a-norm.md"),
        ("../reference/bugs.md#axis", "reference/bugs.md"),
    ],
)
def test_a_link_beside_the_page_or_above_it_is_resolved(link, file):
    page = SimpleNamespace(file=SimpleNamespace(src_uri=compare.PAGE))
    target = SimpleNamespace(url_relative_to=lambda _: "found/")
    files = SimpleNamespace(get_file_from_path={file: target}.get)
    found = hooks.RAW_LINK.match(f'href="{link}"')
    anchor = link.partition("#")[2]
    assert hooks._resolved(found, page, files) == f'href="found/#{anchor}"'


def test_the_same_name_is_no_trap_where_it_stands_in_the_same_place():
    assert "the same name" not in said("gemma2,gemma3_text")


@pytest.mark.parametrize(
    ("pair", "line"),
    [
        ("llama", "An address names two architectures: `#compare=llama,gemma3_text`."),
        ("llama,", "An address names two architectures: `#compare=llama,gemma3_text`."),
        ("a,b,c", "An address names two architectures: `#compare=llama,gemma3_text`."),
        ("llama,llam", "The atlas has no architecture `llam`."),
        ("<b>,llama", "The atlas has no architecture `<b>`."),
        ("__proto__,llama", "The atlas has no architecture `__proto__`."),
        ("llama,llama", "Twice `llama`, the same row: nothing differs."),
        ("llama,reformer", "`reformer` was not resolved, so there is nothing"),
        ("llama:x,gpt2", "`llama` has one kind of layer, without a name; leave out"),
        ("gpt2,zamba2:x", "`zamba2` has no kind of layer `x`; it has "),
        ("qwen2,mistral", "The atlas shows no difference between"),
    ],
)
def test_bad_or_empty_input_is_one_line(pair, line):
    found = answer(pair)
    assert found["line"].startswith(line) and "\n" not in found["line"]
    assert not found.get("differences")


def test_a_partial_row_is_compared_and_said_to_be_one():
    found = answer("llama,mllama")
    assert "`mllama` is resolved in part" in found["line"] and found["differences"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_is_what_the_script_says(language):
    table = compare.pairs(language)
    rows = re.findall(r'href="#compare=([^"]*)">.*?<td><span>(.*?)</span>', table)
    assert len(rows) == len(compare.PAIRS) > 11
    words = compare_words.words(language)
    for address, cell in rows:
        differences = answer(address.replace("%2F", "/"), language)["differences"]
        expected = words["semicolon"].join(differences) + words["stop"]
        assert re.sub(r"</?code>", "`", cell) == expected
        assert differences


def test_a_pair_that_cannot_be_compared_stops_the_build(monkeypatch):
    monkeypatch.setattr(compare, "PAIRS", (("llama", "llam"),))
    with pytest.raises(SourceError, match="pair llama,llam: The atlas has no"):
        compare.pairs("en")


def leaves(words, prefix=""):
    if not isinstance(words, dict):
        return {prefix: words}
    found = (leaves(of, f"{prefix}/{key}") for key, of in words.items())
    return dict(itertools.chain.from_iterable(map(dict.items, found)))


def test_both_languages_have_the_same_words_and_gaps():
    of = [
        compare_words.words(language) | {"steps": compare_words.steps(language)}
        for language in LANGUAGES
    ]
    of = [leaves({k: v for k, v in each.items()}) for each in of]
    assert of[0].keys() == of[1].keys()
    for key in of[0]:
        gaps = [
            sorted(gap for _, gap, _, _ in Formatter().parse(str(each[key])) if gap)
            for each in of
        ]
        assert gaps[0] == gaps[1] or key.endswith("/bugs"), key


def test_bugs_hang_in_the_museum(no_violations):
    found = compare_words.written()
    wrong = [
        b
        for s in found["steps"].values()
        for b in itertools.chain(*compare._by_side(s.get("bugs", [])).values())
        if b not in found["bugs"]
    ]
    for language in LANGUAGES:
        text = (
            source.ROOT / "docs" / language / "pages" / "reference/bugs.md"
        ).read_text("utf-8")
        sections = re.split(r"^## ", text, flags=re.MULTILINE)
        for bug, room in found["bugs"].items():
            section = next(s for s in sections if f"{{ #{room} }}" in s)
            if f"**`{bug}`" not in section:
                wrong.append(f"{language}: no {bug} in #{room}")
    no_violations(wrong)


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_is_small(language):
    data = compare._json(compare.data(language)).encode()
    assert len(gzip.compress(data)) < GZIPPED


def test_the_script_makes_no_markup_of_text():
    script = compare.SCRIPT.read_text(encoding="utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "Function("):
        assert word not in script


def test_plain_text_for_programs():
    text = atlas.make_plain("pairs", "en")
    assert "llama → gemma3_text | placement: pre → sandwich" in text
    assert "table below has its checklist" in atlas.make_plain("compare", "en")
    assert "\nAdd one to each gain when you load it" in text


def test_script_runs_twice():
    """Instant navigation runs it again."""
    code = compare.SCRIPT.read_text(encoding="utf-8")
    assert running(code + code).eval("typeof atlasCompare.pair") == "function"
