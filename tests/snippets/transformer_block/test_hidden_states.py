"""What the page says of `hidden_states[-1]` in transformers."""

import torch
from transformers import LlamaConfig, LlamaModel


def test_the_last_hidden_state_is_the_normalized_stream():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 2, "vocab_size": 32}
    model = LlamaModel(LlamaConfig(**sizes)).eval()
    streams = []
    model.norm.register_forward_pre_hook(lambda _, args: streams.append(args[0]))
    with torch.no_grad():
        model.norm.weight.mul_(3)
        out = model(torch.arange(6)[None], output_hidden_states=True)
        last, before = out.hidden_states[-1], out.hidden_states[-2]
        assert torch.equal(last, out.last_hidden_state)
        assert torch.equal(last, model.norm(streams[0]))
        # The entry before it is what the last block reads: the stream itself.
        position = model.rotary_emb(before, torch.arange(6)[None])
        block = model.layers[-1](before, position_embeddings=position)
        block = block if torch.is_tensor(block) else block[0]
    assert torch.allclose(block, streams[0], atol=1e-6)
