"""Forms in which people write models: the same block must come out of each."""

import pytest

pytest.importorskip("transformers")

import torch
from torch import nn
from torch.nn import functional as F

from scripts.examine import compare, faults, text
from scripts.examine.load import Loaded, Refusal, _guess, load
from scripts.examine.probe import inlined, probe
from tests.examine import faulty
from tests.examine.faulty import Attention, Block, D, Decoder, RMSNorm

PRE = ["a = x + Attention(N[norm_1](x))", "y = a + FFN(N[norm_2](a))"]


def probed(model, **given):
    torch.manual_seed(0)
    if not given:
        given = {"tokens": torch.randint(3, faulty.VOCABULARY, (2, 11))}
    return probe(Loaded("a model", model.eval(), given))


def guessed(model):
    """The probes' view of a model whose input is guessed."""
    given = _guess(model.eval(), {})
    return probe(Loaded("a model", model, given, guessed=True))


class Dictionary(Decoder):
    """Its layers stand in a dictionary."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({str(i): m for i, m in enumerate(self.layers)})

    def stream(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers.values():
            x = layer(x)
        return x


class Pairs(Decoder):
    """No module holds a layer: the model itself adds what the pairs give."""

    def __init__(self):
        super().__init__()
        pairs = []
        for layer in self.layers:
            first = nn.Sequential(layer.norm_1, layer.attention)
            second = nn.Sequential(layer.norm_2, layer.feed_forward)
            pairs.append(nn.ModuleList([first, second]))
        self.layers = nn.ModuleList(pairs)

    def stream(self, tokens):
        x = self.embedding(tokens)
        for attention, feed_forward in self.layers:
            x = x + attention(x)
            x = x + feed_forward(x)
        return x


class Stages(Decoder):
    """Layers in lists in a list."""

    class Stage(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(2))
            self.change = nn.Linear(D, D)

        def forward(self, x):
            for one in self.blocks:
                x = one(x)
            return self.change(x)

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(self.Stage() for _ in range(2))


class SpeltOut(Attention):
    """Attention as two products with a softmax between."""

    def forward(self, x):
        q, k, v = self.heads(x)
        q, k = self.rotated(q), self.rotated(k)
        scores = torch.einsum("bhid,bhjd->bhij", q, k)
        mask = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        y = scores.masked_fill(mask, -1e9).softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


class InAFunction(Attention):
    """QK-Norm without a module."""

    def __init__(self, norm):
        super().__init__(norm)
        del self.q_norm, self.k_norm

    def heads(self, x):
        q, k, v = (
            t.unflatten(-1, (faulty.HEADS, -1)).transpose(1, 2)
            for t in self.qkv(x).chunk(3, -1)
        )
        return unit(q), unit(k), v


def unit(t):
    return F.normalize(t, dim=-1)


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((D,), 0.1))

    def forward(self, x):
        return x * self.gamma


class Scaled(Block):
    """A learned scale on each branch."""

    def __init__(self, norm, attention):
        super().__init__(norm, attention)
        self.scale_1, self.scale_2 = Scale(), Scale()

    def forward(self, x):
        x = x + self.scale_1(self.attention(self.norm_1(x)))
        return x + self.scale_2(self.feed_forward(self.norm_2(x)))


class Beta(nn.Module):
    """A LayerNorm whose bias is a buffer of zeros."""

    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.register_buffer("beta", torch.zeros(d))

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.weight, self.beta)


@pytest.mark.parametrize(
    "model",
    [Decoder, Dictionary, Stages, lambda: Decoder(attention=SpeltOut)],
    ids=["list", "dictionary", "stages", "spelt-out"],
)
def test_one_block_in_many_forms(model):
    found = probed(model())
    row = found.rows[0]
    assert row["equations"] == PRE
    assert row["placement"] == "pre"
    assert row["qk"] == [[t, "RMSNorm", "w", "head", "before"] for t in "qk"]


def test_layers_that_no_module_holds():
    (row,) = probed(Pairs()).rows
    assert compare.nameless(row["equations"]) == compare.nameless(PRE)
    assert row["placement"] == "pre"
    assert row["layers"] == [0, 1, 2]


def test_norms_of_q_and_k_that_are_functions():
    (row,) = probed(Decoder(attention=InAFunction)).rows
    assert row["qk"] == [[t, "L2", "none", "head", "before"] for t in "qk"]


def test_a_scaled_branch_stands_where_it_is_added():
    (row,) = probed(Decoder(block=Scaled)).rows
    assert all("gamma⊙" in e and " + " in e for e in row["equations"])
    assert len(row["equations"]) == 2


def test_equations_keep_what_is_used_twice():
    lines = ["a = c⊙FFN(x)", "b = x + a", "y = a + b"]
    assert inlined(lines) == lines
    assert inlined(["a = c⊙FFN(x)", "y = x + a"]) == ["y = x + c⊙FFN(x)"]


def test_a_norm_with_a_buffer():
    (row,) = probed(Decoder(Beta)).rows
    assert row["equations"] == PRE
    assert {norm[3] for norm in row["norms"]} == {"LayerNorm"}


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_torchs_own_encoder_raises_no_alarm(norm_first, batch_first):
    layer = nn.TransformerEncoderLayer(
        D, 4, 48, norm_first=norm_first, batch_first=batch_first
    )
    last = nn.LayerNorm(D) if norm_first else None
    model = nn.TransformerEncoder(layer, 3, norm=last, enable_nested_tensor=False)
    found = guessed(model)
    assert tuple(found.loaded.given["src"].shape) == (
        (2, 11, D) if batch_first else (11, 2, D)
    )
    (row,) = found.rows
    assert (row["status"], row["layers"]) == ("resolved", [0, 1, 2])
    assert row["placement"] == ("pre" if norm_first else "post")
    said = [] if batch_first else [["tokens-first", ["src"], []]]
    judged = faults.judged(found, False)
    assert judged == {"faults": [], "remarks": said, "reads": "all"}


def test_samples_that_feel_each_other_where_tokens_do_not_lead():
    class Leaking(Decoder):
        def stream(self, tokens):
            x = super().stream(tokens)
            return x + x.mean(0, keepdim=True)

    found = faults.judged(probed(Leaking()), False)
    assert "batch" in [rule for rule, *_ in found["faults"]]


def test_a_masked_encoder_with_tokens_first():
    class Masked(nn.Module):
        def __init__(self, sees):
            super().__init__()
            layer = nn.TransformerEncoderLayer(D, 4, 48, norm_first=True)
            self.body = nn.TransformerEncoder(
                layer, 2, norm=nn.LayerNorm(D), enable_nested_tensor=False
            )
            self.sees = sees

        def forward(self, x):
            mask = torch.full((len(x), len(x)), -torch.inf).triu(1 + self.sees)
            return self.body(x, mask)

    for sees, reads in ((0, "past"), (1, "some later")):
        found = probed(Masked(sees), x=torch.randn(11, 5, D))
        said = faults.judged(found, False)
        assert said["reads"] == reads
        assert [r for r, *_ in said["faults"]] == (["later-some"] if sees else [])


def test_wide_norms():
    layer = nn.TransformerEncoderLayer(1600, 4, 8, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(
        layer, 1, norm=nn.RMSNorm(1600, eps=1e-6), enable_nested_tensor=False
    )
    found = probed(model, src=torch.randn(2, 5, 1600))
    assert {norm[3]: norm[6] for norm in found.rows[0]["norms"]} == {
        "LayerNorm": 1e-5,
        "RMSNorm": 1e-6,
    }
    assert not found.strange


def test_an_output_of_the_last_token_alone():
    class Last(Decoder):
        def forward(self, tokens):
            return super().forward(tokens)[:, -1:]

    assert faults.judged(probed(Last()), True)["reads"] == "past"


# Against another model --------------------------------------------------------------


def both(model, other):
    return compare.against(probed(model), lambda *_: other, "a:b", {})


def fresh(model):
    tokens = torch.randint(3, faulty.VOCABULARY, (2, 11))
    return Loaded("another", model.eval(), {"tokens": tokens})


def test_the_same_model_agrees():
    found = both(Decoder(), fresh(Decoder()))
    assert (found["differences"], found["shared"]) == ([], [["agree"]])


def test_the_first_difference_by_layer_and_module():
    other = Decoder()
    other.layers[1].norm_2.eps = 1e-5
    found = both(Decoder(), fresh(other))
    assert found["differences"] == [["eps", "ffn-in", 1e-6, 1e-5, [1]]]
    first, inner = found["shared"]
    assert first[:3] == ["first", 1, "layers.1"]
    assert inner == ["first-module", "layers.1.norm_2"]


def test_what_follows_the_layers():
    other = Decoder()
    other.norm = faulty.CentredRMSNorm(D)
    found = both(Decoder(), fresh(other))
    assert found["shared"] == [["behind"]]


def test_weights_that_cannot_be_shared():
    found = both(Decoder(), fresh(faulty.NoFinal()))
    assert found["shared"] == [["not-shared", ["missing", "norm.weight"]]]


def test_a_row_of_the_atlas():
    found = compare.against(probed(Decoder()), load, "llama", {})
    assert {tuple(entry[:2]) for entry in found["differences"]} == {
        ("norm", "q"),
        ("norm", "k"),
    }
    with pytest.raises(Refusal, match="no row 'llamma'; near it: llama"):
        compare.against(probed(Decoder()), load, "llamma", {})


def lines(model, other, language):
    report = {"against": both(model, fresh(other))}
    return text.against_lines(report, language)


def test_what_differs_alike_is_said_once():
    here, there = Decoder(faulty.OtherEps), Decoder()
    english, chinese = (lines(here, there, x)[0] for x in ("en", "zh"))
    places = "before attention, before the FFN, q, k, final"
    assert english.replace("`", "") == f"ε ({places}): 1e-5 here; 1e-6 there"
    assert chinese.endswith("1e-5（本模型）；1e-6（对方）")


def test_an_epsilon_outside_the_root_is_no_missing_one():
    said = lines(Decoder(faulty.EpsOutside), Decoder(), "en")
    assert said[0].endswith("1e-6 outside the root here; 1e-6 there")
    assert "none" not in said[0]
    assert said[0].startswith("ε")


def test_a_rounding_that_is_not_read_has_a_word():
    said = lines(Decoder(), Decoder(faulty.OverTokens), "en")
    (rounding,) = [line for line in said if line.startswith("rounding")]
    assert rounding.endswith("→ float32 here; not read there")
    (rounding,) = [
        line
        for line in lines(Decoder(), Decoder(faulty.OverTokens), "zh")
        if line.startswith("舍入")
    ]
    assert rounding.endswith("；未读出（对方）")


def test_the_layers_that_differ():
    entry = ["eps", ["q"], 1e-5, 1e-6, [0, 1, 3]]
    assert text.difference_line(entry, "zh").endswith("（第 0–1、3 层）")
    assert text.difference_line(entry, "en").endswith(" (layers 0–1, 3)")
    entry[-1] = [2]
    assert text.difference_line(entry, "en").endswith(" (layer 2)")


def test_layers_are_said_to_be_of_a_list():
    (row,) = probed(Decoder()).rows
    assert text.layers_of(row, "en") == "Layers 0–2 of layers"
    assert text.layers_of(row | {"layers": [2]}, "en") == "Layer 2 of layers"
    assert text.layers_of(row, "zh") == "layers 第 0–2 层"


def test_axes_in_brackets_are_explained():
    (row,) = probed(Decoder(faulty.OverTokens)).rows
    assert text.row_lines(row, "en")[-1].startswith("[1, 2]: axes")
    (row,) = probed(Decoder()).rows
    assert "axes" not in "".join(text.row_lines(row, "en"))


def test_a_result_in_another_dtype_than_the_input():
    (row,) = probed(Decoder(faulty.HalfSquares)).rows
    listed = "\n".join(text.row_lines(row, "en"))
    assert "dtype → float32" not in listed


def test_norms_with_other_names_and_numbers_do_not_differ():
    class Renamed(Decoder):
        def __init__(self):
            super().__init__(RMSNorm)
            self.embedding = nn.Embedding(99, D)

    found = both(Decoder(), fresh(Renamed()))
    assert found["differences"] == []
    assert found["shared"][0][0] == "not-shared"
