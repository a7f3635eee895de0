"""ResiDual and SiameseNorm: three sublayers by hand, in float64."""

import pytest
import torch
from torch import nn

from snippets.residual_recipes.residual_dual import ResiDual, ResiDualEnd
from snippets.residual_recipes.siamese import Siamese, SiameseEnd
from tests.snippets.residual_recipes.pieces import (
    SHAPES,
    Bend,
    close,
    disturb,
    layer_norm,
    same_gradients,
    tokens,
)

RESIDUAL, SIAMESE = (ResiDual, ResiDualEnd), (Siamese, SiameseEnd)


def residual_stack(pair, d, dtype=torch.float64):
    block, end = pair
    blocks = [disturb(block(Bend(d, i), d), i, dtype) for i in range(3)]
    return blocks, disturb(end(d), 9, dtype)


def residual_by_hand(blocks, end, x):
    updates, post = [], x
    for block in blocks:
        updates.append(block.branch(post))
        post = layer_norm(post + updates[-1], block.norm)
    return post + layer_norm(x + sum(updates), end.norm)


def siamese_stack(pair, d, dtype=torch.float64):
    block, end = pair
    blocks = [disturb(block(Bend(d, i), d, i // 2 + 1), i, dtype) for i in range(3)]
    return blocks, disturb(end(d), 9, dtype)


def siamese_by_hand(blocks, end, x):
    one, two = x, x
    for i, block in enumerate(blocks):
        one = layer_norm(one, block.post)
        read = layer_norm(one + layer_norm(two, block.pre), block.input)
        update = block.branch(read)
        one = one + update / (2 * (i // 2 + 1)) ** 0.5
        two = two + update
    total = layer_norm(one, end.post) + layer_norm(two, end.pre)
    return layer_norm(total, end.norm)


def run(blocks, end, x):
    streams = (x, x)
    for block in blocks:
        streams = block(streams)
    return end(streams)


def _check(stack, by_hand, shapes):
    def check(pair):
        for shape in shapes:
            blocks, end = stack(pair, shape[-1])
            x = tokens(shape, 1.4, 0.3).requires_grad_()
            before = x.detach().clone()
            ours, wanted = run(blocks, end, x), by_hand(blocks, end, x)
            close(ours, wanted, 1e-9)
            matrices = [block.branch.matrix for block in blocks]
            same_gradients(ours, wanted, [x, *matrices], 1e-7)
            assert torch.equal(x.detach(), before)

    return check


check_residual = _check(residual_stack, residual_by_hand, SHAPES)
check_siamese = _check(siamese_stack, siamese_by_hand, SHAPES)


def _block(change):
    class Block(ResiDual):
        def forward(self, streams):
            return change(self, *streams)

    return Block, ResiDualEnd


def _end(change):
    class End(ResiDualEnd):
        def forward(self, streams):
            return change(self, *streams)

    return ResiDual, End


dual_normalized_in_every_block = _block(
    lambda s, x, t: (
        s.norm(x + s.branch(x)),
        s.norm(t + s.branch(x)),
    )
)
dual_sums_the_normalized_stream = _block(
    lambda s, x, t: (s.norm(x + s.branch(x)), t + s.norm(x + s.branch(x)))
)
branch_reads_the_dual = _block(
    lambda s, x, t: (s.norm(x + s.branch(t)), t + s.branch(t))
)
branch_runs_on_each_stream = _block(
    lambda s, x, t: (s.norm(x + s.branch(x)), t + s.branch(s.norm(t)))
)
post_stream_not_normalized = _block(lambda s, x, t: (x + s.branch(x), t + s.branch(x)))
dual_detached = _block(
    lambda s, x, t: (s.norm(x + s.branch(x)), t + s.branch(x).detach())
)
final_sum_missing = _end(lambda s, x, t: x)
dual_alone_at_the_end = _end(lambda s, x, t: s.norm(t))
dual_added_without_its_norm = _end(lambda s, x, t: x + t)
norm_of_the_final_sum = _end(lambda s, x, t: s.norm(x + t))
post_stream_normalized_once_more = _end(lambda s, x, t: s.norm(x) + s.norm(t))

WRONG_RESIDUAL = [
    dual_normalized_in_every_block,
    dual_sums_the_normalized_stream,
    branch_reads_the_dual,
    branch_runs_on_each_stream,
    post_stream_not_normalized,
    dual_detached,
    final_sum_missing,
    dual_alone_at_the_end,
    dual_added_without_its_norm,
    norm_of_the_final_sum,
    post_stream_normalized_once_more,
]


def _siamese(change):
    class Block(Siamese):
        def forward(self, streams):
            return change(self, *streams)

    return Block, SiameseEnd


def _read(s, x, y):
    return s.branch(s.input(x + s.pre(y)))


def _unscaled(s, x, y):
    x = s.post(x)
    update = _read(s, x, y)
    return x + update, y + update


def _scaled_both(s, x, y):
    x = s.post(x)
    update = s.factor * _read(s, x, y)
    return x + update, y + update


def _scaled_other(s, x, y):
    x = s.post(x)
    update = _read(s, x, y)
    return x + update, y + s.factor * update


def _no_input_norm(s, x, y):
    x = s.post(x)
    update = s.branch(x + s.pre(y))
    return x + s.factor * update, y + update


def _raw(s, x, y):
    x = s.post(x)
    update = s.branch(s.input(x + y))
    return x + s.factor * update, y + update


def _normed_kept(s, x, y):
    x, y = s.post(x), s.pre(y)
    update = s.branch(s.input(x + y))
    return x + s.factor * update, y + update


def _post_not_kept(s, x, y):
    update = _read(s, s.post(x), y)
    return x + s.factor * update, y + update


plain_factor_missing = _siamese(_unscaled)
factor_on_both_streams = _siamese(_scaled_both)
factor_on_the_plain_stream = _siamese(_scaled_other)
input_norm_missing = _siamese(_no_input_norm)
plain_stream_read_raw = _siamese(_raw)
plain_stream_normalized = _siamese(_normed_kept)
normalized_stream_left_raw = _siamese(_post_not_kept)


class _Counts(Siamese):
    def __init__(self, branch, d, layer):
        super().__init__(branch, d, layer)
        self.factor = layer**-0.5


class _OneStream(SiameseEnd):
    def forward(self, streams):
        return self.norm(self.pre(streams[1]))


class _NoFinal(SiameseEnd):
    def forward(self, streams):
        x, y = streams
        return self.post(x) + self.pre(y)


factor_of_layers_not_sublayers = (_Counts, SiameseEnd)
one_stream_at_the_end = (Siamese, _OneStream)
last_norm_missing = (Siamese, _NoFinal)

WRONG_SIAMESE = [
    plain_factor_missing,
    factor_on_both_streams,
    factor_on_the_plain_stream,
    input_norm_missing,
    plain_stream_read_raw,
    plain_stream_normalized,
    normalized_stream_left_raw,
    factor_of_layers_not_sublayers,
    one_stream_at_the_end,
    last_norm_missing,
]


class Pair(tuple):
    """A pair of classes with a name, as the lists of variants want one."""

    __slots__ = ()


def _named(pairs):
    found = []
    for name, value in list(globals().items()):
        if any(value is pair for pair in pairs):
            made = type(name, (Pair,), {"__name__": name})(value)
            found.append(made)
    return found


@pytest.mark.parametrize(
    ("check", "pair"), [(check_residual, RESIDUAL), (check_siamese, SIAMESE)]
)
def test_right(check, pair):
    check(pair)


@pytest.mark.parametrize("variant", _named(WRONG_RESIDUAL), ids=lambda v: v.__name__)
def test_known_wrong_residual(variant, known_wrong):
    known_wrong.rejected_by([check_residual], variant)


@pytest.mark.parametrize("variant", _named(WRONG_SIAMESE), ids=lambda v: v.__name__)
def test_known_wrong_siamese(variant, known_wrong):
    known_wrong.rejected_by([check_siamese], variant)


@pytest.mark.parametrize(
    ("stack", "pair"), [(residual_stack, RESIDUAL), (siamese_stack, SIAMESE)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(stack, pair, dtype):
    narrow, wide = stack(pair, 31, dtype), stack(pair, 31)
    for one, other in zip([*narrow[0], narrow[1]], [*wide[0], wide[1]], strict=True):
        other.load_state_dict({k: v.double() for k, v in one.state_dict().items()})
    x = tokens((2, 5, 31), dtype=dtype)
    y = run(*narrow, x)
    assert y.dtype == dtype
    close(y, run(*wide, x.double()), 0.1, 64 * torch.finfo(dtype).eps)


def test_parameters():
    names = {name for name, _ in Siamese(Bend(5), 5, 1).named_parameters()}
    norms = {f"{n}.{p}" for n in ("post", "pre", "input") for p in ("weight", "bias")}
    assert names == {"branch.matrix"} | norms
    block = ResiDual(Bend(5), 5)
    assert {n for n, _ in block.named_parameters()} == {
        "branch.matrix",
        "norm.weight",
        "norm.bias",
    }


def test_gradient_reaches_the_first_branch_past_all_norms():
    """ResiDual with Post-Norm gains of zero: only the dual stream carries."""
    blocks, end = residual_stack(RESIDUAL, 7)
    with torch.no_grad():
        for block in blocks:
            nn.init.zeros_(block.norm.weight)
    x = tokens((3, 7))
    run(blocks, end, x).pow(3).sum().backward()
    assert float(blocks[0].branch.matrix.grad.norm()) > 1e-3
