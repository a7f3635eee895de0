"""Ways to read off a norm that go wrong in the wild. Same signature as recognise."""

from dataclasses import replace

import torch

from snippets.norm_probe import behaviour
from snippets.norm_probe.behaviour import recognise


def _but(norm, x, **changed):
    found = recognise(norm, x)
    return found and replace(found, **changed)


def class_name_trusted(norm, x):
    name = type(norm).__name__
    return _but(norm, x, kind="RMSNorm" if "RMS" in name else "LayerNorm")


def shift_not_probed(norm, x):
    """Scale invariance alone, so that a LayerNorm passes for an RMSNorm."""
    found = recognise(norm, x)
    scaled = found and found.kind in ("LayerNorm", "RMSNorm")
    return replace(found, kind="RMSNorm") if scaled else found


def eps_read_from_an_attribute(norm, x):
    eps = getattr(norm, "eps", getattr(norm, "variance_epsilon", None))
    return _but(norm, x, eps=eps)


def eps_from_one_probe(norm, x):
    """One input of mean square 1e-6: noise for a small eps."""
    found = recognise(norm, x)
    if found is None or found.eps is None:
        return found
    _, _, bare = behaviour.bare_norm(norm, x)
    with torch.no_grad():
        unit = behaviour.expected(x + torch.arange(x.shape[-1]), found.kind, found.size)
        share = bare((unit * 1e-3).float()).double().square().mean()
    return replace(found, eps=behaviour.shortest(1e-6 * (1 / share.item() - 1) or 1.0))


def gain_form_from_the_initial_value(norm, x):
    gains = [p.detach().mean().item() for p in norm.parameters()]
    form = "none" if not gains else "w" if gains[0] == 1 else "1+w"
    return _but(norm, x, gain=form)


def bias_by_its_name(norm, x):
    return _but(norm, x, bias=getattr(norm, "bias", None) is not None)


def one_statistic_per_vector_assumed(norm, x):
    return _but(norm, x, size=x.shape[-1])


def finite_taken_for_right(norm, x):
    """Zeros from an overflowed root mean square are finite."""
    with torch.no_grad():
        half = {n: p.half() for n, p in norm.named_parameters()}
        y = torch.func.functional_call(norm, half, (torch.full_like(x, 300).half(),))
    return _but(norm, x, fp16=bool(y.isfinite().all()))


def cast_order_from_the_output_dtype(norm, x):
    found = recognise(norm, x)
    if found is None:
        return None
    order = {"bfloat16": "gain in fp32, then cast", "float32": "cast, then gain"}
    return replace(found, cast=order.get(found.output, found.cast))


def other_rows_not_watched(norm, x):
    """Scale and shift invariance only: BatchNorm passes."""
    found = recognise(norm, x)
    if found:
        return found
    with torch.no_grad():
        x = 8 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
        same = behaviour.close(norm(2 * x), norm(x)) and norm(x).shape == x.shape
    d = x.shape[-1]
    made = behaviour.Behaviour("LayerNorm", d, "none", False, 1e-5, "", "", True)
    return (
        made if same and not behaviour.close(norm(x), 0 * x + norm(x)[0, 0]) else None
    )


def probed_with_small_inputs(norm, x):
    """Inputs of the size of sqrt(eps) break the scale invariance."""
    with torch.no_grad():
        small = 1e-3 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
        _, _, bare = behaviour.bare_norm(norm, small)
        invariant = behaviour.close(bare(2 * small), bare(small))
    return recognise(norm, x) if invariant else None


def output_dtype_taken_from_the_input(norm, x):
    return _but(norm, x, output="bfloat16")


VARIANTS = [
    class_name_trusted,
    shift_not_probed,
    eps_read_from_an_attribute,
    eps_from_one_probe,
    gain_form_from_the_initial_value,
    bias_by_its_name,
    one_statistic_per_vector_assumed,
    finite_taken_for_right,
    cast_order_from_the_output_dtype,
    other_rows_not_watched,
    probed_with_small_inputs,
    output_dtype_taken_from_the_input,
]
