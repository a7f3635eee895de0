"""The atlas says what the sources say, and says why where it cannot."""

import re

import pytest

pytest.importorskip("transformers")

import torch
from torch import nn

from scripts.experiments import model_atlas
from scripts.experiments.atlas import examine, tiny
from scripts.experiments.atlas.examine import COLUMNS, row
from scripts.experiments.atlas.isolate import isolated
from scripts.experiments.atlas.trace import follow
from scripts.measure.records import Record, rows_problem
from tests.experiment_checks import check_facts, draw, tiny_record, tiny_rows

LLAMA_SOURCE = "modeling_llama.py"


@pytest.fixture(scope="session")
def rows():
    return tiny_rows(model_atlas)


@pytest.fixture(scope="session")
def record(rows):
    versions = {"transformers": "5.23.0"}
    return tiny_record("model_atlas", rows, [], versions=versions, digest="0" * 16)


@pytest.fixture
def of(rows):
    """(architecture, layer) -> its one row; the layer may be left out if alone."""

    def of(architecture, layer=None):
        found = [
            r
            for r in rows
            if r["architecture"] == architecture and layer in (None, r["layer"])
        ]
        assert len(found) == 1, [(r["architecture"], r["layer"]) for r in rows]
        return found[0]

    return of


def norms_at(row, *sites):
    return [norm for norm in row["norms"] if norm[model_atlas.SITE] in sites]


def test_the_sample_is_resolved_in_a_record_s_form(rows):
    assert rows_problem(list(rows[0]), rows) is None
    assert list(rows[0]) == list(COLUMNS)
    assert {r["architecture"] for r in rows} == set(model_atlas.SAMPLE)
    unresolved = [(r["architecture"], r["reason"]) for r in rows]
    assert all(r["status"] == "resolved" for r in rows), unresolved
    for r in rows:
        for norm in r["norms"]:
            line = norm[model_atlas.LINE]
            assert len(norm) == 11 and re.fullmatch(r"\w+\.py:\d+", line)
        for file, first, last in (s[1:] for s in r["source"]):
            assert file.endswith(".py") and 0 < first < last


PLACEMENTS = {  # read in the source of each
    "bloom": "pre",
    "cohere": "pre-parallel",
    "deepseek_v3": "pre",
    "deepseek_v4": "multi-stream",
    "gemma2": "sandwich",
    "gemma3_text": "sandwich",
    "gpt_neox": "pre-parallel",
    "jamba": "pre",
    "llama": "pre",
    "minimax": "residual-after-norm",
    "nemotron": "pre",
    "olmo2": "branch-output",
    "qwen3": "pre",
    "qwen3_next": "pre",
    "t5": "pre",
}


def test_placements(rows):
    assert {r["architecture"]: r["placement"] for r in rows} == PLACEMENTS


EQUATIONS = {
    "gemma2": [
        "a = x + N[post_attention_layernorm](Attention(N[input_layernorm](x)))",
        "y = a + N[post_feedforward_layernorm](FFN(N[pre_feedforward_layernorm](a)))",
    ],
    "olmo2": [
        "a = x + N[post_attention_layernorm](Attention(x))",
        "y = a + N[post_feedforward_layernorm](FFN(a))",
    ],
    "gpt_neox": [
        "y = x + Attention(N[input_layernorm](x)) + FFN(N[post_attention_layernorm](x))"
    ],
    "cohere": ["y = x + Attention(N[input_layernorm](x)) + FFN(N[input_layernorm](x))"],
    "bloom": [  # the residual is added inside of the branches' modules
        "a = x + Attention(N[input_layernorm](x))",
        "y = a + FFN(N[post_attention_layernorm](a))",
    ],
}


@pytest.mark.parametrize("architecture", EQUATIONS)
def test_equations(of, architecture):
    assert of(architecture)["equations"] == EQUATIONS[architecture]


def test_the_decoder_of_t5_uses_no_later_tensor(of):
    """`layer.2`, which ends with y itself, must not stand for the residual."""
    assert of("t5", "decoder")["equations"] == [
        "a = x + Attention(N[0.layer_norm](x))",
        "b = a + CrossAttention(N[1.layer_norm](a))",
        "y = b + FFN(N[2.layer_norm](b))",
    ]
    assert len(of("t5", "encoder")["equations"]) == 2


def test_residual_after_the_norm(of):
    for layer in ("full_attention", "linear_attention"):
        first, _ = of("minimax", layer)["equations"]
        assert "N[input_layernorm](x) + " in first and " x " not in first


def test_several_streams(rows):
    found = [r for r in rows if r["architecture"] == "deepseek_v4"]
    for r in found:
        first, last = r["equations"]
        assert first.startswith("a[i] = Σ_j A[i,j]·x[j] + b[i]·Attention(")
        assert last.startswith("y[i] = Σ_j A[i,j]·a[j] + b[i]·FFN(")
    assert sum(len(r["layers"]) for r in found) >= 4


GAINS = {
    "gemma2": "1+w",
    "gemma3_text": "1+w",
    "qwen3_next": "1+w",
    "nemotron": "1+w",
    "llama": "w",
    "qwen3": "w",
    "t5": "w",
}


def test_gains_bias_and_kinds(rows):
    for r in rows:
        norms = norms_at(r, "attention-in", "ffn-in", "shared-in", "mixer-in")
        for norm in norms:
            _, _, _, kind, gain, bias, *_ = norm
            layer_norm = {"bloom", "cohere", "gpt_neox", "nemotron"}
            name = r["architecture"]
            assert kind == ("LayerNorm" if name in layer_norm else "RMSNorm"), name
            assert gain == GAINS.get(name, "w")
            assert bias == (name in layer_norm - {"cohere"})


def test_eps_and_cast(of):
    for name, eps, cast in (
        ("llama", 1e-6, "cast, then gain → float32"),
        ("gemma2", 1e-6, "gain in fp32, then cast → bfloat16"),
        ("olmo2", 1e-5, "gain in fp32, then cast → bfloat16"),
        ("cohere", 1e-5, "gain in fp32, then cast → bfloat16"),
    ):
        (norm, *_) = of(name)["norms"]
        assert norm[model_atlas.EPS] == eps
        assert norm[model_atlas.CAST] == cast
        assert norm[model_atlas.FP16] is True


def test_qk_norms(of):
    def qk(*where):
        return sorted(of(*where)["qk"])

    head, projection = ["head", "before"], ["projection", "before"]
    one = "1+w"
    assert qk("qwen3") == [[t, "RMSNorm", "w", *head] for t in "kq"]
    assert qk("gemma3_text") == [[t, "RMSNorm", one, *head] for t in "kq"]
    assert qk("olmo2") == [[t, "RMSNorm", "w", *projection] for t in "kq"]
    assert qk("qwen3_next", "full_attention") == qk("gemma3_text")
    length = ["L2", "none", "head", "none"]  # a function, not a module
    assert qk("qwen3_next", "linear_attention") == [[t, *length] for t in "kq"]
    assert qk("llama") == qk("gemma2") == []
    assert [entry[0] for entry in qk("deepseek_v3")] == ["latent-kv", "latent-q"]


def test_a_hybrid_has_a_row_for_each_kind_of_layer(of):
    linear = of("qwen3_next", "linear_attention")
    assert linear["layers"] == [0, 1, 2]
    (gated,) = norms_at(linear, "gated")
    assert gated[2:5] == ["Qwen3NextRMSNormGated", "RMSNorm", "w"]
    assert linear["functional"] == []
    for site in "qk":  # computed in float32 on its way, whatever the model's dtype
        (norm,) = norms_at(linear, site)
        assert norm[1:5] == ["l2norm", "function", "L2", "none"]
        assert norm[model_atlas.FP16] and norm[-1] == "LinearAttention"
    mamba = of("jamba", "linear_attention")
    assert "Mamba(" in mamba["equations"][0]
    names = {norm[1] for norm in norms_at(mamba, "other")}
    assert names == {"dt_layernorm", "b_layernorm", "c_layernorm"}


def test_norms_around_the_blocks(of):
    bloom = of("bloom")
    assert [n[1] for n in norms_at(bloom, "embedding")] == ["word_embeddings_layernorm"]
    assert [n[1] for n in norms_at(bloom, "final")] == ["ln_f"]
    assert not norms_at(of("llama"), "embedding")


def test_caps_multipliers_and_what_initialisation_does(of):
    caps = dict(of("gemma2")["caps"])
    assert (
        caps["attn_logit_softcapping"] == 50 and caps["final_logit_softcapping"] == 30
    )
    assert any(re.match(r"tanh modeling_gemma2\.py:\d+", name) for name in caps)
    assert not any(value for _, value in of("gemma3_text")["caps"])
    assert dict(of("cohere")["multipliers"]) == {"logit_scale": 0.0625}
    assert of("nemotron")["notes"] == ["gain 1+w starts at 2 (input_layernorm)"]
    assert of("gemma2")["notes"] == []


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "t5"])
def test_the_same_twice(rows, architecture):
    again = model_atlas.run(architecture)
    assert again == [r for r in rows if r["architecture"] == architecture]


# Odd ones, each read in its source ------------------------------------------


def test_a_norm_in_two_places_is_at_both():
    """nanochat calls one module before the blocks and behind them."""
    (found,) = model_atlas.run("nanochat")
    assert [n[1] for n in norms_at(found, "embedding", "final")] == ["norm", "norm"]


def test_a_norm_of_two_tensors_is_one_of_each():
    """ZayaQKNorm takes q and k; only k has a learned scale."""
    (found,) = model_atlas.run("zaya")
    gains = [("q", "none"), ("k", "w per head")]
    assert [(q[0], q[2]) for q in found["qk"]] == gains
    assert [(n[0], n[4]) for n in norms_at(found, "q", "k")] == gains
    assert found["notes"] == ["gain w starts at 0 (qk_norm)"]


def test_a_mixture_of_earlier_states_is_no_plain_pre_norm():
    """Inkling 2: attention over the states before is what a branch reads."""
    for found in model_atlas.run("inkling2_text"):
        assert found["placement"] == "multi-stream"
        assert "Mix(" not in " ".join(found["equations"])
        assert "linalg" not in found["reason"]
        for clip in ("q_l2_clip", "k_l2_clip"):  # not normed, and said
            assert f"vector_norm in self_attn.{clip}" in found["reason"]
            assert found["status"] == "partial"


def test_each_factor_of_a_configuration_is_listed():
    (found,) = model_atlas.run("falcon_h1")
    names = {name for name, _ in found["multipliers"]}
    assert names >= {"attention_in_multiplier", "attention_out_multiplier"}
    assert names >= {"ssm_in_multiplier", "ssm_out_multiplier", "key_multiplier"}
    assert names >= {"ssm_multipliers", "mlp_multipliers", "lm_head_multiplier"}

    class Config:
        def to_dict(self):
            return {"ssm_multipliers": [1, 2.0], "ffn_dim_multiplier": 1.5}

    assert examine.multipliers(Config()) == [
        ["ssm_multipliers[0]", 1.0],
        ["ssm_multipliers[1]", 2.0],
    ]


def test_a_class_s_name_does_not_hide_its_attention():
    rows = model_atlas.run("recurrent_gemma")
    branches = {r["layer"]: r["equations"][0].split("(")[0] for r in rows}
    assert branches == {
        "linear_attention": "a = x + Recurrent",
        "sliding_attention": "a = x + Attention",
    }


def test_layers_that_text_does_not_reach_are_said_to_be_unseen():
    (found,) = model_atlas.run("mllama")
    assert (found["status"], found["reason"]) == ("partial", "not run: layer 3")


def test_norms_in_a_list_keep_the_list_s_name():
    (found,) = model_atlas.run("longcat_flash")
    names = {n[1] for n in norms_at(found, "attention-in", "ffn-in")}
    assert "input_layernorm.0" in names and "post_attention_layernorm.1" in names


def test_a_stack_that_runs_in_turns_ends_with_its_norm():
    """hrm_text's first turns run before those that leave a graph."""
    for found in model_atlas.run("hrm_text"):
        assert [n[1] for n in norms_at(found, "final")] == ["final_norm"]
        assert not norms_at(found, "embedding")


@pytest.mark.parametrize("architecture", ["gpt2", "musicgen_melody"])
def test_who_has_no_cross_attention_is_given_no_encoder_states(architecture):
    _, given, _ = tiny.build(architecture)
    assert set(given) == {"input_ids", "use_cache"}


def test_a_layer_that_no_module_holds_is_one_all_the_same():
    """xlm keeps attention, feed-forward and norms in four lists."""
    (found,) = model_atlas.run("xlm")
    assert (found["status"], found["placement"]) == ("resolved", "post")
    assert (found["layer"], found["layers"]) == ("", [0, 1, 2, 3])
    assert found["equations"] == [
        "a = N[layer_norm1](x + Attention(x))",
        "y = N[layer_norm2](a + FFN(a))",
    ]
    assert [n[:2] for n in found["norms"]] == [
        ["attention-out", "layer_norm1"],
        ["ffn-out", "layer_norm2"],
        ["embedding", "layer_norm_emb"],
    ]


def test_sizes_of_a_composite_s_parts_follow_one_another():
    """dots3_note's adapters read the width of its towers."""
    rows = model_atlas.run("dots3_note")
    assert [r["layer"] for r in rows] == ["indexed_attention", "sliding_attention"]
    assert {(r["status"], r["placement"]) for r in rows} == {("resolved", "pre")}


# What once came out wrong ----------------------------------------------------


@pytest.mark.parametrize("architecture", ["gemma4_text", "gemma4_unified_text"])
def test_a_stored_factor_on_the_stream_shows(architecture):
    for found in model_atlas.run(architecture):
        assert found["equations"][-1].startswith("y = layer_scalar·(")
        assert not norms_at(found, "embedding")  # on a side projection, not on x


def test_a_norm_that_flattens_its_heads_is_one():
    (found,) = model_atlas.run("xlstm")
    (norm,) = [n for n in found["norms"] if n[1] == "multihead_norm"]
    assert norm[3:7] == ["LayerNorm", "w", False, 1e-6]
    assert norm[-1] == "Recurrent" and found["functional"] == []


def test_a_factor_that_follows_the_depth_is_a_formula():
    (found,) = model_atlas.run("minicpm3")
    assert found["equations"][0].startswith("a = x + (1.4/√L)·Attention(")
    assert dict(found["multipliers"])["num_hidden_layers"] == 62
    equations = ["a = x + 0.7·F(x)", "y = 0.5·a + 3·G(a)"]
    other = ["a = x + 0.495·F(x)", "y = 0.5·a + 1.5·G(a)"]
    assert examine.with_depth(equations, other, 4) == [
        "a = x + (1.4/√L)·F(x)",
        "y = 0.5·a + (12/L)·G(a)",
    ]


@pytest.mark.parametrize("architecture", ["glmasr", "voxtral"])
def test_a_composite_sets_the_eps_of_its_text_model(architecture):
    (found,) = model_atlas.run(architecture)
    assert {norm[model_atlas.EPS] for norm in found["norms"]} == {1e-5}


def test_a_composite_keeps_its_cross_attention():
    rows = model_atlas.run("encoder-decoder")
    (decoder,) = [r for r in rows if r["layer"] == "decoder"]
    assert "CrossAttention(" in decoder["equations"][1]
    assert len(norms_at(decoder, "head")) == 1  # behind a matrix: not the stream's


@pytest.mark.slow
def test_attention_that_is_called_linear_is_attention():
    (full,) = [
        r for r in model_atlas.run("kimi_linear") if r["layer"] == "full_attention"
    ]
    assert full["equations"][0] == "a = x + Attention(N[input_layernorm](x))"
    assert norms_at(full, "attention-in")


def test_streams_that_differ_are_all_shown():
    first, *_ = model_atlas.run("gemma3n_text")
    one, others = first["equations"]
    assert one.startswith("y[i=0] = ") and "PerLayerInput" not in one
    assert others.startswith("y[i=1…3] = ")
    assert others.endswith("N[post_per_layer_input_norm](PerLayerInput(c⊙y[0]))")


def test_a_norm_that_never_ran_is_named():
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.spare = nn.LayerNorm(8), nn.LayerNorm(8)
            self.ffn = nn.Linear(8, 8)

        def forward(self, x):
            return x + self.ffn(self.used(x))

    trace = follow(Idle(), {"x": torch.randn(2, 3, 8)})
    known = examine.behaviours(trace)
    assert set(known) == {"used"}
    assert examine.never_ran(trace.calls[0], trace, known) == ["spare"]


@pytest.mark.parametrize("architecture", ["musicgen", "trocr", "whisper"])
def test_a_decoder_alone_is_given_something_to_attend_to(architecture):
    (found,) = model_atlas.run(architecture)
    assert "CrossAttention(" in found["equations"][1]
    assert found["status"] == "resolved"
    assert norms_at(found, "cross-in", "cross-out")


def test_a_norm_between_two_branches_of_one_module_shows():
    found = {row["layer"]: row for row in model_atlas.run("zamba")}["hybrid"]
    assert "Linear(FFN(N[pre_ff_layernorm](Attention(" in found["equations"][0]
    assert "pre_ff_layernorm" in [n[1] for n in norms_at(found, "ffn-in")]
    assert found["placement"] == "pre"


def test_an_embedding_norm_inside_the_first_block_is_one():
    first, second = model_atlas.run("rwkv")
    assert [n[1] for n in norms_at(first, "embedding")] == ["pre_ln"]
    assert not norms_at(second, "embedding")


def test_a_function_that_squares_in_float16_is_found():
    found = model_atlas.run("reformer")
    (norm,) = [n for r in found for n in r["norms"] if n[1] == "_len_norm"]
    assert norm[3] == "RMSNorm" and norm[model_atlas.FP16] is False


# One architecture cannot harm another --------------------------------------


def test_a_task_that_hangs_is_stopped():
    assert isolated("time:sleep", 60, 0.5, 100) == {"problem": "not done after 0.5 s"}
    assert isolated("builtins:len", [1, 2], 120, 100) == {"value": 2}


def test_a_task_that_allocates_too_much_is_stopped():
    answer = isolated("operator:itemgetter", 0, 120, 100)
    assert "problem" in answer  # what it gives is no JSON
    answer = isolated("builtins:bytes", 10**10, 120, 100)
    assert answer == {"problem": "needs more than 100 MiB"}


def test_a_task_that_dies_says_so():
    assert "status" in isolated("os:_exit", 3, 120, 100)["problem"]
    assert isolated("math:sqrt", -1, 120, 100)["problem"].startswith("ValueError")


def test_what_cannot_be_examined_is_a_row_with_its_reason(monkeypatch):
    monkeypatch.setattr(model_atlas, "SECONDS", 0.01)
    (found,) = model_atlas.run("llama")
    assert list(found) == list(COLUMNS)
    assert found["status"] == "unresolved"
    assert found["reason"] == "not done after 0.01 s"
    assert found == row("llama", reason="not done after 0.01 s")


def test_sizes():
    small = [step.cell["architecture"] for step in model_atlas.measure("small")]
    assert len(small) == len(set(small)) > 200
    assert set(model_atlas.SAMPLE) < set(small)
    assert len(model_atlas.SAMPLE) == 15


# What the page shows --------------------------------------------------------


def test_facts_say_what_the_rows_say(record):
    expected = {
        "total": "15",
        "blocks": "15",
        "qk_l2": "1",
        "resolved": "15",
        "unresolved": "0",
        "version": "5.23.0",
        "rms_norm": "11",
        "layer_norm": "4",
        "placement_sandwich": "2",
        "placement_branch_output": "1",
        "placement_multi_stream": "1",
        "rms_norm_gain_one_plus_w": "3",
        "fp16_unsafe": "0",
    }
    check_facts(model_atlas, record, expected)


def test_unresolved_rows_are_counted_and_not_drawn(record):
    gone = row("llama", reason="not done")
    rows = [r for r in record.rows if r["architecture"] != "llama"] + [gone]
    changed = Record(
        "model_atlas", "a-cpu", "tiny", record.provenance, record.columns, rows
    )
    facts = model_atlas.facts(changed)
    assert (facts["total"], facts["unresolved"]) == ("15", "1")
    assert "llama" not in [li["architecture"] for li in model_atlas.summary(changed)]


def test_words():
    zh, en = model_atlas.WORDS["zh"], model_atlas.WORDS["en"]
    assert zh.keys() == en.keys() >= {"title", "caption", "alt"}
    for key in zh:
        names = [sorted(re.findall(r"{(\w+)}", words[key])) for words in (zh, en)]
        assert names[0] == names[1], key


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    figure = draw(model_atlas, record, lang)
    top, bottom = figure.axes
    drawn = sum(bar.get_width() for bar in top.patches)
    assert drawn == 15
    assert len(bottom.get_yticklabels()) == 5
