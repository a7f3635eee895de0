"""What a branch does, told by running its module again with one token changed.

Names come second: they choose among branches that do the same.
"""

import copy
import re

from scripts.experiments.atlas.trace import line_of

NAMES = {  # by what is done: (what a branch is called, words of its path or class)
    "state": (
        ("FFN", r"feed_?forward"),  # RWKV's reads the token before
        ("Mamba", r"mamba|ssm"),
        ("LinearAttention", r"linear_?att|delta|kda|lightning"),
        ("Recurrent", r"rglru|recurrent|mlstm|rwkv|time_mix"),
        ("Convolution", r"conv"),
        ("LinearAttention", r"att"),
        ("Mixer", r""),
    ),
    "attention": (("Attention", r""),),
    "cross": (("CrossAttention", r""),),
    "point": (
        ("PerLayerInput", r"per_layer"),
        ("Mix", r"residual"),
        ("Laurel", r"laurel"),
        ("Gate", r"norm(gated)?$"),
        ("Adapter", r"adapter"),
        ("FFN", r""),
    ),
}
SOFTMAX = {
    *("softmax", "log_softmax", "logsumexp"),
    *("scaled_dot_product_attention", "multi_head_attention_forward"),
}


def again(call, changed: tuple = (), tokens=None):
    """(output, shapes that a softmax was taken of) of the call's module, run again.

    One token, or a slice of them, is moved in the real tensors among its arguments
    that ``changed`` counts.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    number, taken = [-1], []

    def given(value):
        if isinstance(value, dict):
            return {k: given(v) for k, v in value.items()}
        if type(value) in (list, tuple):
            return type(value)(given(v) for v in value)
        if not (isinstance(value, torch.Tensor) and value.is_floating_point()):
            return value
        number[0] += 1
        fresh = call.inputs[number[0]].value.clone()  # as it was before any change
        if number[0] in changed:
            one = 2 if fresh.shape[1] > 2 else 0
            at = (0, one if tokens is None else tokens) if fresh.ndim > 2 else (0,)
            fresh[at] += torch.cos(torch.arange(fresh.shape[-1]))
        return fresh

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if getattr(function, "__name__", "") in SOFTMAX:
                taken.append(tuple(args[0].shape))
            return function(*args, **(kwargs or {}))

    args, kwargs = call.raw
    args, kwargs = given(args), given(kwargs)
    torch.manual_seed(0)
    with torch.no_grad(), Watch():
        out = call.module(*args, **kwargs)
    while isinstance(out, (tuple, list)):
        out = out[0]
    return out, taken


def root_dtype(call, where: str):
    """The dtype a root is taken in at a line, where the call runs in bfloat16."""
    import torch
    from torch.overrides import TorchFunctionMode

    found = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if "sqrt" in getattr(function, "__name__", "") and line_of() == where:
                found.append(args[0].dtype)
            return function(*args, **(kwargs or {}))

    low = copy.copy(call)
    low.module = copy.deepcopy(call.module).to(torch.bfloat16)
    low.inputs = [copy.copy(s) for s in call.inputs]
    for s in low.inputs:
        s.value = s.value.to(torch.bfloat16)
    try:
        with Watch():
            again(low)
    except Exception:  # a branch that does not run so
        return None
    return found[0] if found else None


def nature(call) -> str | None:
    """attention, state, cross or point; None if running again does not tell.

    A branch mixes positions if one token moves the outputs of others: through
    a softmax (attention) or without one (state). Cross-attention does not mix
    the stream's positions; tokens of a sequence of another length move all.
    A softmax over experts is neither.
    """
    main = next((s for s in call.inputs if s.shape == call.out.shape), call.inputs[0])
    stream, others = [], []
    for i, s in enumerate(call.inputs):
        if s.shape == main.shape:
            stream.append(i)
        elif len(s.shape) == 3 and s.shape[-1] == main.shape[-1]:
            others.append(i)
    try:
        before, softmax = again(call)

        def mix(*which: int, tokens=None) -> bool:
            after, _ = again(call, which, tokens)
            rows = (after - before).abs().flatten(0, -2).amax(-1)
            return int((rows > 1e-5 * before.abs().max()).sum()) > 1

        if mix(*stream):
            return "attention" if softmax else "state"
        if softmax and any(mix(i, tokens=slice(None)) for i in others):
            return "cross"
        if any(len(s) > 3 and s[-2] == main.shape[1] for s in softmax):
            return "attention"  # to keys that an earlier layer kept
    except Exception:  # it takes what is not here any more, a cache say
        return None
    return "point"


def label(call, block) -> str:
    """What a branch of a block is called."""
    name = call.path.removeprefix(block.path).lstrip(".").lower()
    kind = type(call.module).__name__.lower()
    if not hasattr(call, "nature"):
        call.nature = nature(call)
    done = call.nature or by_name(name, kind)
    if name == "linear" and done == "point":
        return "Linear"
    for called, words in NAMES[done]:
        if re.search(words, name) or re.search(words, kind):
            return called
    raise AssertionError(f"the last word of {done} fits all")


def by_name(name: str, kind: str) -> str:
    """The same as `nature` where running again does not tell."""
    for text in (name, kind):
        if re.search(r"enc_?dec_?att|encoder_attn|cross_?att|crossatt", text):
            return "cross"
        if any(re.search(words, text) for _, words in NAMES["state"][1:5]):
            return "state"
        if re.search(r"att(n|ention)?\b|attn|attention|mha|att$", text):
            return "attention"
    return "point"
