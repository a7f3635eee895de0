import torch
from torch import nn
from torch.nn import functional as F
from transformers import (
    CONFIG_MAPPING,
    BertConfig,
    BloomConfig,
    BloomModel,
    CohereConfig,
    DeepseekV3Config,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
    MiniMaxConfig,
    NemotronConfig,
    Olmo2Config,
    OpenAIGPTConfig,
    Qwen2Config,
    Qwen3Config,
    Starcoder2Config,
    T5Config,
    VaultGemmaConfig,
)
from transformers.models.bert.modeling_bert import BertLayer
from transformers.models.cohere.modeling_cohere import CohereDecoderLayer
from transformers.models.deepseek_v3.modeling_deepseek_v3 import (
    DeepseekV3Attention,
)
from transformers.models.gemma.modeling_gemma import GemmaDecoderLayer
from transformers.models.gemma2.modeling_gemma2 import Gemma2DecoderLayer
from transformers.models.gemma3.modeling_gemma3 import Gemma3DecoderLayer
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
from transformers.models.llama.modeling_llama import LlamaDecoderLayer
from transformers.models.minimax.modeling_minimax import MiniMaxDecoderLayer
from transformers.models.nemotron.modeling_nemotron import NemotronDecoderLayer
from transformers.models.olmo2.modeling_olmo2 import Olmo2DecoderLayer
from transformers.models.openai.modeling_openai import Block as GPT1Block
from transformers.models.qwen2.modeling_qwen2 import Qwen2Attention
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextRMSNorm
from transformers.models.starcoder2.modeling_starcoder2 import (
    Starcoder2DecoderLayer,
)
from transformers.models.t5.modeling_t5 import T5LayerFF, T5LayerNorm
from transformers.models.vaultgemma.modeling_vaultgemma import (
    VaultGemmaDecoderLayer,
)

from snippets.curse_of_depth.stream import rms
from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.sandwich_norm.blocks import ReorderedNorm, SandwichNorm
from snippets.sandwich_norm.stacks import stack


def small(model_type: str, **options):
    """A tiny configuration of one of the models in transformers."""
    sizes = {"hidden_size": 32, "intermediate_size": 48, "head_dim": 16}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2}
    sizes |= {"num_hidden_layers": 2, "vocab_size": 64}
    return CONFIG_MAPPING[model_type](**sizes | options)


TINY = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 64,
    "pad_token_id": 0,
}
X = 3 * torch.randn(1, 5, 32, generator=torch.Generator().manual_seed(0))
ROPE = {"position_embeddings": (torch.ones(1, 5, 8), torch.zeros(1, 5, 8))}


@torch.no_grad()
def silent(layer):
    """The layer with all parameters but those of its norms set to zero."""
    for module in layer.modules():
        if "Norm" not in type(module).__name__:
            for parameter in module.parameters(recurse=False):
                parameter.zero_()
    return layer.eval()


def output(layer, x, **options):
    found = layer(x, **options)
    return found[0] if isinstance(found, tuple | list) else found


# verdict: holds
def bert_and_gpt_1_are_post_norm():
    width = {"n_embd": 32, "n_head": 4, "n_positions": 8}
    layers = (
        BertLayer(BertConfig(**TINY)),
        GPT1Block(8, OpenAIGPTConfig(**width)),
        nn.TransformerEncoderLayer(32, 4, batch_first=True),
    )
    for layer in layers:
        left = output(silent(layer), X)
        assert torch.allclose(left, F.layer_norm(X, (32,)), atol=1e-4)
    assert torch.equal(output(silent(GPT2Block(GPT2Config(**width))), X), X)


# verdict: holds
def gpt_2_moved_the_norm_and_added_a_last_one():
    config = GPT2Config(n_embd=32, n_head=4, n_layer=2, n_positions=8)
    model = silent(GPT2Model(config))
    assert torch.equal(output(model.h[0], X), X)
    last = model(inputs_embeds=X).last_hidden_state
    assert torch.allclose(last, F.layer_norm(X, (32,)), atol=1e-4)


# verdict: holds-when
def modern_llms_are_pre_norm():
    olmo, gemma, llama = (
        Olmo2DecoderLayer(Olmo2Config(**TINY), 0),
        Gemma2DecoderLayer(Gemma2Config(**TINY), 0),
        LlamaDecoderLayer(LlamaConfig(**TINY), 0),
    )
    seen = []
    for layer in (olmo, llama):
        layer.self_attn.register_forward_pre_hook(
            lambda _, args, named: seen.append(named["hidden_states"]),
            with_kwargs=True,
        )
        layer(X, **ROPE)
    assert torch.equal(seen[0], X)
    assert torch.allclose(seen[1], rms_norm(X), atol=1e-4)
    with torch.no_grad():
        for layer, divided_out in ((gemma, True), (llama, False)):
            before = output(layer, X, **ROPE)
            layer.self_attn.o_proj.weight *= 8
            layer.mlp.down_proj.weight *= 8
            after = output(layer, X, **ROPE)
            assert torch.allclose(after, before, atol=0.01) == divided_out


# verdict: holds-when
def llms_since_2023_use_rms_norm():
    def ignores_a_shift(norm):
        return torch.allclose(norm(X + 5), norm(X), atol=1e-3)

    for layer in (
        CohereDecoderLayer(CohereConfig(**TINY), 0),
        Starcoder2DecoderLayer(Starcoder2Config(**TINY), 0),
        NemotronDecoderLayer(NemotronConfig(**TINY), 0),
    ):
        assert ignores_a_shift(layer.input_layernorm)
    llama = LlamaDecoderLayer(LlamaConfig(**TINY), 0)
    assert not ignores_a_shift(llama.input_layernorm)


# verdict: holds-when
def modern_models_keep_norms_off_the_stream():
    for layer in (
        LlamaDecoderLayer(LlamaConfig(**TINY), 0),
        Gemma2DecoderLayer(Gemma2Config(**TINY), 0),
        Olmo2DecoderLayer(Olmo2Config(**TINY), 0),
    ):
        assert torch.equal(output(silent(layer), X, **ROPE), X)
    kinds = {"layer_types": ["full_attention"] * 2, "num_local_experts": 2}
    layer = MiniMaxDecoderLayer(MiniMaxConfig(**TINY, **kinds), 0)
    left = output(silent(layer), X, **ROPE)
    assert torch.allclose(left, rms_norm(X), atol=1e-3)


# verdict: holds-when
def the_stream_starts_with_the_bare_embedding():
    bloom = BloomModel(BloomConfig(hidden_size=32, n_head=4, n_layer=1, vocab_size=64))
    llama = LlamaModel(LlamaConfig(**TINY))
    for model, norm_first in ((bloom, True), (llama, False)):
        starts = [
            model.eval()(inputs_embeds=s * X, output_hidden_states=True).hidden_states[
                0
            ]
            for s in (1, 10)
        ]
        assert torch.allclose(*starts, atol=1e-3) == norm_first


# verdict: wrong
def gemma_and_gemma_2_place_their_norms_alike():
    def norms(layer):
        return sum("RMSNorm" in type(m).__name__ for m in layer.modules())

    assert norms(GemmaDecoderLayer(GemmaConfig(**TINY), 0)) == 2
    assert norms(Gemma2DecoderLayer(Gemma2Config(**TINY), 0)) == 4
    assert norms(VaultGemmaDecoderLayer(VaultGemmaConfig(**TINY), 0)) == 2


# verdict: holds-when
def gemma_2_is_pre_norm_plus_post_norm():
    gemma = silent(Gemma2DecoderLayer(Gemma2Config(**TINY), 0))
    assert torch.equal(output(gemma, X, **ROPE), X)
    both = PostNormBlock(PreNormBlock(nn.Linear(32, 32), RMSNorm(32)), RMSNorm(32))
    assert not torch.allclose(silent(both)(X), X, atol=0.1)


# verdict: holds
def t5_is_pre_norm_with_rms_norm():
    norm = T5LayerNorm(32)
    assert torch.allclose(norm(X + 5), F.rms_norm(X + 5, (32,)), atol=1e-5)
    assert not torch.allclose(norm(X + 5), F.layer_norm(X + 5, (32,)), atol=0.1)
    layer = T5LayerFF(T5Config(d_model=32, d_ff=64, num_heads=4, d_kv=8))
    assert torch.equal(silent(layer)(X), X)


# verdict: holds-when
def deepseek_v3_has_the_norms_of_llama():
    sizes = {"q_lora_rank": 16, "kv_lora_rank": 8, "rms_norm_eps": 1e-3}
    config = DeepseekV3Config(**TINY | {"num_key_value_heads": 4}, **sizes)
    attention = DeepseekV3Attention(config, 0)
    for norm, width in ((attention.q_a_layernorm, 16), (attention.kv_a_layernorm, 8)):
        assert norm.weight.shape == (width,)
        assert norm.variance_epsilon == 1e-6
    llama = LlamaDecoderLayer(LlamaConfig(**TINY), 0).self_attn
    assert not any("norm" in name for name, _ in llama.named_modules())


# verdict: holds-when
def the_qwen_series_has_the_norms_of_llama():
    two, three = (
        Qwen2Attention(Qwen2Config(**TINY), 0),
        Qwen3Attention(Qwen3Config(**TINY), 0),
    )
    assert not any("norm" in name for name, _ in two.named_modules())
    assert three.q_norm.weight.shape == three.k_norm.weight.shape == (8,)
    zero_centred = Qwen3NextRMSNorm(32)
    assert not zero_centred.weight.any()
    assert torch.allclose(zero_centred(X), rms_norm(X), atol=1e-5)


# verdict: holds-when
def output_norms_replace_input_norms_without_a_catch():
    def steepness(placement, qk_norm):
        blocks = stack(placement, layers=24, qk_norm=qk_norm)
        x, target = torch.randn(2, 2, 16, 64, dtype=torch.float64)
        for block in blocks:
            x = block(x)
        (rms_norm(x) * target).sum(dim=-1).mean().backward()
        writers = [block.branch.down.weight.grad.norm() for block in blocks[1::2]]
        return (writers[0] / writers[-1]).item()

    assert steepness(ReorderedNorm, qk_norm=False) > 30
    assert steepness(ReorderedNorm, qk_norm=True) < 10
    assert steepness(SandwichNorm, qk_norm=False) < 10


# verdict: open
def qk_norm_and_exit_norms_are_for_extreme_cases():
    layer = Gemma3DecoderLayer(Gemma3TextConfig(**TINY), 0)
    names = {name for name, m in layer.named_modules() if "Norm" in type(m).__name__}
    assert names == {
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
        "self_attn.q_norm",
        "self_attn.k_norm",
    }


# verdict: wrong
def post_attention_layernorm_means_post_norm():
    llama = LlamaDecoderLayer(LlamaConfig(**TINY), 0)
    gemma = Gemma2DecoderLayer(Gemma2Config(**TINY), 0)
    seen = {}
    for layer in (llama, gemma):
        norm, name = layer.post_attention_layernorm, type(layer).__name__
        norm.register_forward_hook(lambda _, x, y, n=name: seen.update({n: (x[0], y)}))
    llama.mlp.register_forward_pre_hook(lambda _, x: seen.update(mlp=x[0]))
    gemma.self_attn.register_forward_hook(lambda _, x, y: seen.update(attention=y[0]))
    llama(X, **ROPE), gemma(X, **ROPE)
    assert torch.equal(seen["LlamaDecoderLayer"][1], seen["mlp"])
    assert torch.equal(seen["Gemma2DecoderLayer"][0], seen["attention"])


# verdict: wrong
def norm_x_then_add_the_branch_is_pre_norm():
    branch, norm = nn.Linear(32, 32), RMSNorm(32)

    def swapped(x):
        x = norm(x)
        return x + branch(x)

    pre = PreNormBlock(branch, norm)
    assert torch.allclose(pre(X) - X, swapped(X) - norm(X), atol=1e-5)
    silent(branch)
    assert torch.equal(pre(X), X)
    assert not torch.allclose(swapped(X), X, atol=0.1)


# verdict: wrong
def x_plus_norm_of_the_branch_is_pre_norm():
    branch, norm = nn.Linear(32, 32), RMSNorm(32)
    pre = PreNormBlock(branch, norm)
    reordered = ReorderedNorm(branch, 32)
    assert torch.equal(reordered(X), X + norm(branch(X)))
    assert not torch.allclose(reordered(X), pre(X), atol=0.1)
    before = pre(X)
    with torch.no_grad():
        for parameter in branch.parameters():
            parameter *= 10
    assert torch.allclose(pre(X) - X, 10 * (before - X), atol=1e-3)
    assert abs(rms(reordered(X) - X) - 1) < 1e-3


# verdict: wrong
def a_misplaced_norm_shows_as_an_error():
    class Swapped(PreNormBlock):
        def forward(self, x):
            x = self.norm(x)
            return x + self.sublayer(x)

    right = PreNormBlock(nn.Linear(32, 32), RMSNorm(32))
    wrong = Swapped(nn.Linear(32, 32), RMSNorm(32))
    wrong.load_state_dict(right.state_dict(), strict=True)
    assert wrong(X).shape == right(X).shape
    assert not torch.allclose(wrong(X), right(X), atol=0.1)


# verdict: wrong
def torch_encoder_layers_are_pre_norm_by_default():
    for options, left in (({}, F.layer_norm(X, (32,))), ({"norm_first": True}, X)):
        layer = nn.TransformerEncoderLayer(32, 4, batch_first=True, **options)
        assert torch.allclose(silent(layer)(X), left, atol=1e-4)


# verdict: wrong
def norm_first_adds_the_last_norm():
    layer = nn.TransformerEncoderLayer(32, 4, batch_first=True, norm_first=True)
    options = {"enable_nested_tensor": False}
    bare = nn.TransformerEncoder(layer, 2, **options)
    whole = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(32), **options)
    assert torch.equal(silent(bare)(X), X)
    assert torch.allclose(silent(whole)(X), F.layer_norm(X, (32,)), atol=1e-4)


# verdict: wrong
def minimax_text_01_is_pre_norm():
    torch.manual_seed(0)
    layers = ["full_attention"] * 2
    config = small("minimax", layer_types=layers, num_local_experts=2)
    layer = MiniMaxDecoderLayer(config, 0)
    for weight in layer.self_attn.parameters():
        nn.init.zeros_(weight)
    for weight in layer.mlp.parameters():
        nn.init.zeros_(weight)  # no branch writes anything
    x, angle = 9 * torch.randn(1, 5, 32), torch.zeros(1, 5, 16)
    y = layer(x, position_embeddings=(angle.cos(), angle.sin()))
    assert torch.allclose(y, rms_norm(x), atol=1e-4)  # Pre-Norm: y = x
    assert not torch.allclose(y, x, atol=1)


# verdict: wrong
def gpt_3_uses_rms_norm():
    torch.manual_seed(0)
    config = CONFIG_MAPPING["gpt2"](n_embd=32, n_head=4)
    norm = GPT2Block(config).ln_1
    assert type(norm) is nn.LayerNorm and norm.bias is not None
    x = torch.randn(5, 32)
    assert torch.allclose(norm(x + 3), norm(x), atol=1e-4)
    assert not torch.allclose(rms_norm(x + 3), rms_norm(x), atol=1)
