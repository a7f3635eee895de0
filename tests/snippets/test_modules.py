"""What all modules and tasks promise alike: defaults, eval mode, strides, stubs."""

import ast
import inspect
from importlib import import_module

import pytest
import torch
from torch import nn

from scripts.site.reading.source import SNIPPETS

# The default epsilon of a folder, and of what differs from it in its page's words.
EPSILON = {
    "batch_norm_vs_layer_norm": 1e-5,
    "coding": 1e-5,
    "deepnorm": 1e-5,
    "fused_residual": 1e-6,
    "layer_norm": 1e-5,
    "dropped_mean": 1e-6,
    "low_precision": 1e-6,
    "norm_family": 1e-5,
    "norm_probe": 0.0,
    "norms_beyond_the_decoder": 1e-6,
    "qk_norm": 1e-6,
    "qk_norm_rope": 1e-6,
    "residual_recipes": 1e-5,
    "rms_norm": 1e-6,
    "sandwich_norm": 1e-5,
    "scale_invariance": 0.0,
    "speed": 1e-5,
    "spot_the_bug": 1e-6,
    "triton_layer_norm": 1e-5,
    "triton_rms_norm": 1e-6,
    "why_normalize": 0.0,
    "zero_centred_and_mixed": 1e-6,
    "coding/add_rms_norm": 1e-6,
    "coding/numpy_rms_norm": 1e-6,
    "coding/rms_norm": 1e-6,
    "coding/rms_norm_backward": 1e-6,
    "coding/sharded_rms_norm": 1e-6,
    "memory_bound": 1e-5,
    "norm_family/family.rms_norm": 1e-6,
    "norms_beyond_the_decoder/gated": 1e-5,
    "norms_beyond_the_decoder/rwkv7": 64e-5,
    "spot_the_bug/affine_norm": 1e-5,
    "spot_the_bug/running_norm": 1e-5,
    "spot_the_bug/token_norm": 1e-5,
}


def defaults():
    """(folder/file.function, default of eps) of all snippets."""
    for path in sorted(SNIPPETS.rglob("*.py")):
        file = path.relative_to(SNIPPETS).with_suffix("").as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.args.defaults:
                named = node.args.args[-len(node.args.defaults) :]
                for name, value in zip(named, node.args.defaults, strict=True):
                    if name.arg == "eps":
                        yield f"{file}.{node.name}", ast.literal_eval(value)


def test_default_epsilons():
    for place, eps in defaults():
        file = place.partition(".")[0].removesuffix("_stub")
        folder = file.partition("/")[0]
        wanted = EPSILON.get(place, EPSILON.get(file, EPSILON[folder]))
        assert eps == wanted, f"{place}: eps is {eps}, not {wanted}"


@pytest.mark.parametrize(
    "stub", sorted(SNIPPETS.glob("coding/*_stub.py")), ids=lambda path: path.stem
)
def test_a_stub_has_the_solution_s_signature(stub):
    """And what it gives beside the task runs as the reader of the task expects."""

    def signatures(path):
        tree = ast.parse(path.read_text("utf-8"))
        return {
            node.name: ast.unparse(node.args)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        }

    solved = signatures(stub.with_name(stub.name.replace("_stub", "")))
    asked = signatures(stub)
    shared = solved.keys() & asked.keys()
    assert shared, "no function in common"
    for name in shared:
        assert asked[name] == solved[name]


def get(path):
    module, name = path.split(":")
    return getattr(import_module(f"snippets.{module}"), name)


def numbers(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def block(path, *arguments):
    return lambda: get(path)(*arguments).double()


def linear():
    torch.manual_seed(0)
    return nn.Linear(8, 8)


MODULES = {
    "PreNormBlock": lambda: get("pre_norm_vs_post_norm.blocks:PreNormBlock")(
        linear(), nn.LayerNorm(8)
    ).double(),
    "PostNormBlock": lambda: get("pre_norm_vs_post_norm.blocks:PostNormBlock")(
        linear(), nn.LayerNorm(8)
    ).double(),
    "ScaledNorm": lambda: get("curse_of_depth.depth_scaling:ScaledNorm")(
        nn.LayerNorm(8), 9
    ).double(),
    "NormFormer": block("normformer.block:Block", 8, 2),
    "nGPT": block("normalized_transformer.block:NormalizedBlock", 8, 2, 16),
    "RMSNorm": block("rms_norm.reference:RMSNorm", 8),
    "LayerNorm": block("layer_norm.reference:LayerNorm", 8),
}


@pytest.mark.parametrize("name", MODULES)
def test_eval_changes_nothing(name):
    """None of them has dropout or running statistics."""
    torch.manual_seed(0)
    module, found = MODULES[name](), []
    for training in (True, False):
        module.train(training).zero_grad()
        x = numbers(2, 5, 8).requires_grad_()
        y = module(x)
        y.square().sum().backward()
        learned = [(n, p.grad) for n, p in module.named_parameters()]
        assert all(gradient is not None for _, gradient in learned)
        found.append([y.detach(), x.grad, *(g for _, g in learned)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_group_norms_take_channels_last():
    x, gain, bias = numbers(2, 6, 4, 5), numbers(6, seed=1), numbers(6, seed=2)
    last = x.contiguous(memory_format=torch.channels_last)
    for path in ("norm_family.family:group_norm", "coding.group_norm:group_norm"):
        function = get(path)
        wanted = function(x, 3, gain, bias)
        torch.testing.assert_close(function(last, 3, gain, bias), wanted)


def test_masked_batch_norm_counts_many_tokens_and_takes_any_mask():
    norm = get("coding.masked_batch_norm:masked_batch_norm")
    gain, bias = torch.ones(4), torch.zeros(4)
    x = numbers(3, 173, 4)
    mask = (numbers(173, 3, seed=1) > 0).T  # not contiguous, a count bfloat16 lacks
    wanted = norm(x, mask.contiguous(), gain, bias)
    torch.testing.assert_close(norm(x, mask, gain, bias), wanted)
    tokens = x.bfloat16().double()[mask]
    exact = (tokens - tokens.mean(0)) / (tokens.var(0, correction=0) + 1e-5).sqrt()
    found = norm(x.bfloat16(), mask, gain, bias)[mask]
    assert (found != exact.bfloat16()).double().mean() < 0.01


def test_batch_norm_updates_in_place():
    norm = get("coding.batch_norm:batch_norm")
    mean, var = torch.zeros(3), torch.ones(3)
    seen = mean.view(3), var.view(3)
    norm(numbers(5, 3).float(), torch.ones(3), torch.zeros(3), mean, var, True)
    assert torch.equal(seen[0], mean) and torch.equal(seen[1], var)
    assert mean.any() and (var != 1).any()


def test_layer_norm_of_nan_is_nan():
    x = torch.tensor([[1.0, float("nan"), 2.0]])
    for path in ("coding.layer_norm:layer_norm", "layer_norm.reference:layer_norm"):
        assert get(path)(x, torch.ones(3), torch.zeros(3)).isnan().all()


def test_pre_norm_stack_counts_its_norms_and_keeps_its_branches():
    stack = get("coding.pre_norm_stack:pre_norm_stack")
    x, branch = numbers(2, 3, 4), torch.exp
    with pytest.raises(ValueError):
        stack(x, [branch, branch], [torch.tanh, torch.tanh])
    with pytest.raises(ValueError):
        stack(x, [branch], [torch.tanh, torch.tanh, torch.tanh])
    leaf = x.clone().requires_grad_()  # exp needs its output for the gradient
    stack(leaf, [branch, branch], [torch.tanh] * 3).sum().backward()
    assert leaf.grad.isfinite().all()
    given = get("coding.pre_norm_stack_stub:post_norm_stack")
    with pytest.raises(ValueError):
        given(x, [branch, branch], [torch.tanh])


def test_deepnorm_by_names_and_its_norm():
    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.keyed = nn.ModuleDict({"value": nn.Linear(256, 256)})
            self.query, self.key = nn.Linear(256, 256), nn.Linear(256, 256)

        def forward(self, x):
            return x

    module = get("coding.deepnorm:DeepNorm")(Branch(), 256, 18)
    beta = (8 * 18) ** -0.25 * 256**-0.5
    assert abs(module.branch.keyed["value"].weight.std() / beta - 1) < 0.05
    for plain in (module.branch.query, module.branch.key):
        assert abs(plain.weight.std() * 256**0.5 - 1) < 0.05
    assert module.norm.eps == nn.LayerNorm(256).eps


def test_a_stream_of_zeros_is_a_tensor_of_its_own():
    x, residual = torch.zeros(2, 4), torch.ones(2, 4)
    _, stream = get("coding.add_rms_norm:add_rms_norm")(x, residual, torch.ones(4))
    stream.add_(1)
    assert torch.equal(residual, torch.ones(2, 4))


def test_the_activation_that_was_asked_for():
    decoder = get("rms_norm.small_decoder:SmallDecoder")(
        8, 1, 2, 4, activation=nn.Identity
    )
    body, x = decoder.branches[1].body, numbers(3, 8).float()
    torch.testing.assert_close(body(x), body.writer(body.reader(x)))


def test_variance_of_very_long_vectors():
    x = numbers(1, 5000) + torch.arange(5000) / 500
    found = get("layer_norm.moments:two_passes")(x)
    torch.testing.assert_close(found, x.var(-1, correction=0))


def test_statistics_are_tracked_without_gradients_too():
    for training in (True, False):
        norm = get("batch_norm_vs_layer_norm.norms:BatchNorm")(3).train(training)
        with torch.no_grad():
            norm(numbers(9, 3) + 5)
        assert bool(norm.running_mean.any()) is training


def test_a_sequence_of_padding_alone_stays_out():
    norm = get("batch_norm_vs_layer_norm.padding:MaskedBatchNorm")(3).double()
    x, mask = numbers(2, 5, 3), torch.tensor([[True] * 5, [False] * 5])
    other = torch.cat((x[:1], x[1:] + 100))
    torch.testing.assert_close(norm(x, mask)[0], norm(other, mask)[0])


def test_steps_centre_first():
    steps = get("norm_family.steps:Steps")(8, True, True).double()
    x = numbers(4, 8) + 10
    torch.testing.assert_close(steps(x), nn.functional.layer_norm(x, (8,), eps=1e-5))


def test_writers_keep_their_biases():
    decoder = get("pre_norm_vs_post_norm.decoder:Decoder")(8, 4, 2, 16)
    writers = [b.sublayer.writer for b in decoder.blocks]
    biased = [w for w in writers if getattr(w, "bias", None) is not None]
    for writer in biased:
        nn.init.ones_(writer.bias)
    before = [w.weight.clone() for w in writers]
    get("curse_of_depth.depth_scaling:scale_writers")(decoder)
    assert all(bool((w.bias == 1).all()) for w in biased)
    for writer, weight in zip(writers, before, strict=True):
        torch.testing.assert_close(writer.weight, weight * len(writers) ** -0.5)


def test_capped_attention_rounds_at_the_end_alone():
    """Queries and keys are read, and logits kept, as wide as the docstring says."""
    attend = get("soft_capping.attention:capped_attention")
    q, k, v = (
        3 * numbers(1, 2, 32, 16, seed=i, dtype=torch.bfloat16) for i in range(3)
    )
    scale = 0.3
    wide = [each.float() for each in (q, k, v)]
    logits = wide[0] @ wide[1].mT * scale
    logits = (5 * torch.tanh(logits / 5)).masked_fill(
        torch.ones(32, 32, dtype=torch.bool).triu(1), -torch.inf
    )
    wanted = logits.softmax(-1).bfloat16() @ v
    assert (attend(q, k, v, 5.0, scale) != wanted).double().mean() < 0.02


def test_clip_leaves_heads_below_a_hundred():
    clip = inspect.signature(get("qk_norm.clip:qk_clip"))
    assert clip.parameters["tau"].default == 100.0


def test_inner_norm_of_normformer_learns_its_gain():
    body = get("normformer.block:FeedForward")(8, True)
    assert body.norm.weight.shape == body.norm.bias.shape == (32,)


def test_unit_of_zero_is_nan():
    assert get("normalized_transformer.sphere:unit")(torch.zeros(3)).isnan().all()


def test_rotation_of_late_positions_in_bfloat16():
    rotate = get("normalized_transformer.block:rotate")
    x = numbers(1000, 8, dtype=torch.bfloat16)
    gap = (rotate(x).double() - rotate(x.double())).abs().amax()
    assert gap < 0.05  # positions above 256 are not all bfloat16's


def test_rates_of_ngpt_are_positive():
    torch.manual_seed(0)
    module = get("normalized_transformer.block:NormalizedBlock")(8, 2, 16).double()
    h = nn.functional.normalize(numbers(2, 5, 8), dim=-1)
    wanted = module(h)
    with torch.no_grad():
        for scale in (module.alpha_attention, module.alpha_feed_forward):
            for parameter in scale.parameters():
                parameter.neg_()
    torch.testing.assert_close(module(h), wanted)


def test_faint_rows_are_enlarged_before_the_norm():
    relaxed = get("sandwich_norm.pb_relax:relaxed_layer_norm")
    x = numbers(3, 8)
    torch.testing.assert_close(relaxed(1e-4 * x), relaxed(x))


def test_a_stack_has_the_seed_that_was_asked_for():
    module = import_module("snippets.sandwich_norm.stacks")
    one, same, other = (module.stack(module.PreNorm, 1, 8, seed=s) for s in (1, 1, 2))
    weights = [
        next(p for p in s.parameters() if p.ndim > 1) for s in (one, same, other)
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_a_loss_in_float32_and_gradients_of_one_step():
    transformer = import_module("snippets.transformer_block.training_step")
    torch.manual_seed(0)
    sizes = transformer.Sizes(32, 1, 4, 2, 8, 64, 50, qk_norm=True)
    model = transformer.Decoder(sizes).bfloat16()
    tokens = torch.randint(50, (2, 9))
    with torch.no_grad():
        logits = model(tokens[:, :-1]).double().flatten(0, 1)
    wanted = nn.functional.cross_entropy(logits, tokens[:, 1:].flatten()).item()
    frozen = torch.optim.SGD(model.parameters(), lr=0.0)
    found = [transformer.training_step(model, frozen, tokens, False)]
    first = [p.grad.clone() for p in model.parameters()]
    transformer.training_step(model, frozen, tokens, False)
    assert abs(found[0] - wanted) < 1e-5
    for parameter, gradient in zip(model.parameters(), first, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_random_text_is_four_sequences():
    text = get("pre_norm_vs_post_norm.trial:random_text")
    assert text(0).shape == (4, 17)


FRESH = [
    "batch_norm_vs_layer_norm.norms:LayerNorm",
    "batch_norm_vs_layer_norm.norms:BatchNorm",
    "fused_residual.module:AddNorm",
    "layer_norm.reference:LayerNorm",
    "rms_norm.reference:RMSNorm",
    "spot_the_bug.affine_norm:AffineNorm",
    "spot_the_bug.half_norm:HalfNorm",
    "spot_the_bug.inference_norm:InferenceNorm",
    "spot_the_bug.offset_norm:OffsetNorm",
    "spot_the_bug.token_norm:TokenNorm",
    "triton_layer_norm.module:LayerNorm",
    "triton_rms_norm.module:RMSNorm",
]


@pytest.mark.parametrize("path", FRESH)
def test_a_fresh_norm_changes_nothing_more(path):
    """Gains are one, biases and offsets from one are zero."""
    for name, parameter in get(path)(8).named_parameters():
        start = name in ("gain", "weight") and "offset_norm" not in path
        assert parameter.tolist() == 8 * [float(start)], name
