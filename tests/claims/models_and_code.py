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
    GptOssConfig,
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
    DeepseekV3DecoderLayer,
)
from transformers.models.gemma.modeling_gemma import GemmaDecoderLayer
from transformers.models.gemma2.modeling_gemma2 import Gemma2DecoderLayer
from transformers.models.gemma3.modeling_gemma3 import Gemma3DecoderLayer
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssDecoderLayer
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


def norms_in(module):
    """Names of the norms that a module holds itself."""
    return {n for n, m in module.named_children() if "Norm" in type(m).__name__}


@torch.no_grad()
def ignores_output_matrices(layer):
    """Whether eight times larger output matrices leave a layer's output as it is."""
    before = output(layer, X, **ROPE)
    layer.self_attn.o_proj.weight *= 8
    layer.mlp.down_proj.weight *= 8
    return torch.allclose(output(layer, X, **ROPE), before, atol=0.01)


def bert_and_gpt_1_are_post_norm():
    def is_post_norm(layer):
        left = output(silent(layer), X)
        return torch.allclose(left, F.layer_norm(X, (32,)), atol=1e-4)

    width = {"n_embd": 32, "n_head": 4, "n_positions": 8}
    assert is_post_norm(GPT1Block(8, OpenAIGPTConfig(**width)))
    assert torch.equal(output(silent(GPT2Block(GPT2Config(**width))), X), X)
    original = nn.TransformerEncoderLayer(32, 4, batch_first=True)
    return {
        "the original Transformer, as in PyTorch": is_post_norm(original),
        "BERT": is_post_norm(BertLayer(BertConfig(**TINY))),
    }


def gpt_2_moved_the_norm_and_added_a_last_one():
    config = GPT2Config(n_embd=32, n_head=4, n_layer=2, n_positions=8)
    model, read = silent(GPT2Model(config)), {}
    for name in ("attn", "mlp"):
        branch = getattr(model.h[0], name)
        branch.register_forward_pre_hook(lambda _, x, n=name: read.update({n: x[0]}))
    left, normed = output(model.h[0], X), F.layer_norm(X, (32,))
    last = model(inputs_embeds=X).last_hidden_state
    assert torch.allclose(last, normed, atol=1e-4)
    return {
        "attention reads a normalized input": torch.equal(read["attn"], normed),
        "the feed-forward network too": torch.equal(read["mlp"], normed),
        "no norm is left on the stream": torch.equal(left, X),
    }


def modern_llms_are_pre_norm():
    def attention_input(layer):
        seen = []
        layer.self_attn.register_forward_pre_hook(
            lambda _, args, named: seen.append(named["hidden_states"]),
            with_kwargs=True,
        )
        layer(X, **ROPE)
        return seen[0]

    def reads_normalized(layer):
        return torch.allclose(attention_input(layer), rms_norm(X), atol=1e-4)

    olmo, gemma, llama = (
        Olmo2DecoderLayer(Olmo2Config(**TINY), 0),
        Gemma2DecoderLayer(Gemma2Config(**TINY), 0),
        LlamaDecoderLayer(LlamaConfig(**TINY), 0),
    )
    assert torch.equal(attention_input(olmo), X)
    return {
        "Llama, a norm before the branch": reads_normalized(llama),
        "Llama, no norm after it": not ignores_output_matrices(llama),
        "OLMo 2, a norm before the branch": reads_normalized(olmo),
        "Gemma 2, a norm before the branch": reads_normalized(gemma),
        "Gemma 2, no norm after it": not ignores_output_matrices(gemma),
    }


def llms_since_2023_use_rms_norm():
    def ignores_a_shift(layer):
        norm = layer.input_layernorm
        return torch.allclose(norm(X + 5), norm(X), atol=1e-3)

    layers = {
        "Llama": LlamaDecoderLayer(LlamaConfig(**TINY), 0),
        "Command R": CohereDecoderLayer(CohereConfig(**TINY), 0),
        "StarCoder2": Starcoder2DecoderLayer(Starcoder2Config(**TINY), 0),
        "Nemotron-4": NemotronDecoderLayer(NemotronConfig(**TINY), 0),
    }
    return {name: not ignores_a_shift(layer) for name, layer in layers.items()}


def modern_models_keep_norms_off_the_stream():
    kinds = {"layer_types": ["full_attention"] * 2, "num_local_experts": 2}
    layers = {
        "Llama": LlamaDecoderLayer(LlamaConfig(**TINY), 0),
        "Gemma 2": Gemma2DecoderLayer(Gemma2Config(**TINY), 0),
        "OLMo 2": Olmo2DecoderLayer(Olmo2Config(**TINY), 0),
        "MiniMax-01": MiniMaxDecoderLayer(MiniMaxConfig(**TINY, **kinds), 0),
    }
    left = {name: output(silent(layer), X, **ROPE) for name, layer in layers.items()}
    assert torch.allclose(left["MiniMax-01"], rms_norm(X), atol=1e-3)
    return {name: torch.equal(y, X) for name, y in left.items()}


def the_stream_starts_with_the_bare_embedding():
    def start(model, embedding):
        given = {"inputs_embeds": embedding, "output_hidden_states": True}
        return model.eval()(**given).hidden_states[0]

    size = {"hidden_size": 32, "n_head": 4, "n_layer": 1, "vocab_size": 64}
    bloom = BloomModel(BloomConfig(**size))
    models = {
        "GPT-2": GPT2Model(GPT2Config(**size)),
        "Llama": LlamaModel(LlamaConfig(**TINY)),
        "BLOOM": bloom,
    }
    assert torch.allclose(start(bloom, 10 * X), start(bloom, X), atol=1e-3)
    return {
        name: torch.allclose(start(model, 10 * X) - start(model, X), 9 * X, atol=1e-4)
        for name, model in models.items()
    }


def gemma_and_gemma_2_place_their_norms_alike():
    def norms(layer):
        return sum("RMSNorm" in type(m).__name__ for m in layer.modules())

    assert norms(Gemma2DecoderLayer(Gemma2Config(**TINY), 0)) == 4
    assert norms(VaultGemmaDecoderLayer(VaultGemmaConfig(**TINY), 0)) == 2
    gemma = GemmaDecoderLayer(GemmaConfig(**TINY), 0)
    return {
        "Gemma has more than a norm for each branch": norms(gemma) > 2,
        "Gemma has a norm after each branch": ignores_output_matrices(gemma),
    }


def gemma_2_is_pre_norm_plus_post_norm():
    gemma = Gemma2DecoderLayer(Gemma2Config(**TINY), 0)
    both = PostNormBlock(PreNormBlock(nn.Linear(32, 32), RMSNorm(32)), RMSNorm(32))
    assert not torch.allclose(silent(both)(X), X, atol=0.1)
    return {
        "post: a norm after the branch": ignores_output_matrices(gemma),
        "post: a norm that the stream crosses": (
            not torch.equal(output(silent(gemma), X, **ROPE), X)
        ),
    }


def t5_is_pre_norm_with_rms_norm():
    norm, shifted, read = T5LayerNorm(32), X + 5, []
    assert not torch.allclose(norm(shifted), F.layer_norm(shifted, (32,)), atol=0.1)
    layer = silent(T5LayerFF(T5Config(d_model=32, d_ff=64, num_heads=4, d_kv=8)))
    layer.DenseReluDense.register_forward_pre_hook(lambda _, x: read.append(x[0]))
    left = layer(X)
    return {
        "its norm is RMSNorm": torch.allclose(
            norm(shifted), F.rms_norm(shifted, (32,)), atol=1e-5
        ),
        "the branch reads a normalized input": torch.equal(read[0], norm(X)),
        "no norm is on the stream": torch.equal(left, X),
    }


def deepseek_v3_has_the_norms_of_llama():
    sizes = {"q_lora_rank": 16, "kv_lora_rank": 8, "rms_norm_eps": 1e-3}
    config = DeepseekV3Config(**TINY | {"num_key_value_heads": 4}, **sizes)
    layer = DeepseekV3DecoderLayer(config, 0)
    attention = layer.self_attn
    for norm, width in ((attention.q_a_layernorm, 16), (attention.kv_a_layernorm, 8)):
        assert norm.weight.shape == (width,)
        assert norm.variance_epsilon == 1e-6
    llama = LlamaDecoderLayer(LlamaConfig(**TINY), 0)
    return {
        "around the branches": norms_in(layer) == norms_in(llama),
        "inside attention": norms_in(attention) == norms_in(llama.self_attn),
    }


def the_qwen_series_has_the_norms_of_llama():
    llama = LlamaDecoderLayer(LlamaConfig(**TINY), 0)
    two, three = (
        Qwen2Attention(Qwen2Config(**TINY), 0),
        Qwen3Attention(Qwen3Config(**TINY), 0),
    )
    assert three.q_norm.weight.shape == three.k_norm.weight.shape == (8,)
    next_norm, norm = Qwen3NextRMSNorm(32), llama.input_layernorm
    assert torch.allclose(next_norm(X), rms_norm(X), atol=1e-5)
    return {
        "Qwen2, inside attention": norms_in(two) == norms_in(llama.self_attn),
        "Qwen3, inside attention": norms_in(three) == norms_in(llama.self_attn),
        "Qwen3-Next, the stored gains": torch.equal(next_norm.weight, norm.weight),
    }


def output_norms_replace_input_norms_without_a_catch():
    def steepness(placement, qk_norm):
        blocks = stack(placement, layers=24, qk_norm=qk_norm)
        x, target = torch.randn(2, 2, 16, 64, dtype=torch.float64)
        for block in blocks:
            x = block(x)
        (rms_norm(x) * target).sum(dim=-1).mean().backward()
        writers = [block.branch.down.weight.grad.norm() for block in blocks[1::2]]
        return (writers[0] / writers[-1]).item()

    assert steepness(SandwichNorm, qk_norm=False) < 10
    return {
        "first over last gradient, with QK-Norm": steepness(ReorderedNorm, True) < 10,
        "the same, without QK-Norm": steepness(ReorderedNorm, False) < 30,
    }


def qk_norm_and_exit_norms_are_for_extreme_cases():
    gemma = Gemma3DecoderLayer(Gemma3TextConfig(**TINY), 0)
    sizes = {"num_local_experts": 2, "num_experts_per_tok": 1}
    gpt_oss = GptOssDecoderLayer(GptOssConfig(**TINY, **sizes), 0)
    around = {"input_layernorm", "post_attention_layernorm"}
    after = {"pre_feedforward_layernorm", "post_feedforward_layernorm"}
    assert norms_in(gemma) >= around | after
    assert norms_in(gemma.self_attn) >= {"q_norm", "k_norm"}
    return {
        f"{name} has the plain recipe": norms_in(layer) == around
        and not norms_in(layer.self_attn)
        for name, layer in {"Gemma 3": gemma, "gpt-oss": gpt_oss}.items()
    }


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
    return {
        f"{name}, a norm on the stream": (
            not torch.equal(output(silent(layer), X, **ROPE), X)
        )
        for name, layer in {"Llama": llama, "Gemma 2": gemma}.items()
    }


def norm_x_then_add_the_branch_is_pre_norm():
    branch, norm = nn.Linear(32, 32), RMSNorm(32)

    def swapped(x):
        x = norm(x)
        return x + branch(x)

    pre = PreNormBlock(branch, norm)
    assert torch.allclose(pre(X) - X, swapped(X) - norm(X), atol=1e-5)
    same = torch.allclose(swapped(X), pre(X), atol=0.1)
    silent(branch)
    assert torch.equal(pre(X), X)
    return {
        "the same output as Pre-Norm": same,
        "a silent branch leaves x": torch.allclose(swapped(X), X, atol=0.1),
    }


def x_plus_norm_of_the_branch_is_pre_norm():
    branch, norm = nn.Linear(32, 32), RMSNorm(32)
    pre = PreNormBlock(branch, norm)
    reordered = ReorderedNorm(branch, 32)
    assert torch.equal(reordered(X), X + norm(branch(X)))
    same, before = torch.allclose(reordered(X), pre(X), atol=0.1), pre(X)
    with torch.no_grad():
        for parameter in branch.parameters():
            parameter *= 10
    assert torch.allclose(pre(X) - X, 10 * (before - X), atol=1e-3)
    return {
        "the same output": same,
        "the weights set the size of the update": abs(rms(reordered(X) - X) - 1) > 1e-3,
    }


def a_misplaced_norm_shows_as_an_error():
    class Swapped(PreNormBlock):
        def forward(self, x):
            x = self.norm(x)
            return x + self.sublayer(x)

    def refuses(step, given):
        try:
            step(given)
        except RuntimeError:
            return True
        return False

    right = PreNormBlock(nn.Linear(32, 32), RMSNorm(32))
    wrong = Swapped(nn.Linear(32, 32), RMSNorm(32))
    cases = {
        "when weights are loaded": refuses(wrong.load_state_dict, right.state_dict()),
        "in the shape of the output": wrong(X).shape != right(X).shape,
    }
    assert refuses(nn.Linear(16, 16).load_state_dict, right.sublayer.state_dict())
    assert not torch.allclose(wrong(X), right(X), atol=0.1)
    return cases


def torch_encoder_layers_are_pre_norm_by_default():
    def left(**options):
        layer = nn.TransformerEncoderLayer(32, 4, batch_first=True, **options)
        return silent(layer)(X)

    assert torch.allclose(left(norm_first=True), X, atol=1e-4)
    assert torch.allclose(left(), F.layer_norm(X, (32,)), atol=1e-4)
    return {"by default a silent layer leaves x": torch.allclose(left(), X, atol=1e-4)}


def norm_first_adds_the_last_norm():
    layer = nn.TransformerEncoderLayer(32, 4, batch_first=True, norm_first=True)
    options = {"enable_nested_tensor": False}
    bare = nn.TransformerEncoder(layer, 2, **options)
    whole = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(32), **options)
    assert torch.allclose(silent(whole)(X), F.layer_norm(X, (32,)), atol=1e-4)
    return {"without `norm`, it ends in a norm": not torch.equal(silent(bare)(X), X)}


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
    assert torch.allclose(y, rms_norm(x), atol=1e-4)
    return {"branches that write nothing leave x": torch.allclose(y, x, atol=1)}


def gpt_3_uses_rms_norm():
    torch.manual_seed(0)
    config = CONFIG_MAPPING["gpt2"](n_embd=32, n_head=4)
    norm = GPT2Block(config).ln_1
    assert type(norm) is nn.LayerNorm and norm.bias is not None
    x = torch.randn(5, 32)
    assert not torch.allclose(rms_norm(x + 3), rms_norm(x), atol=1)
    ignores_a_shift = torch.allclose(norm(x + 3), norm(x), atol=1e-4)
    return {"GPT-3, whose norms are GPT-2's": not ignores_a_shift}
