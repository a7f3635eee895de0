"""Rules: what was seen of a model that is a fault, or worth knowing.

An entry is [rule, places, details]. Faults are what no published architecture does
on purpose, or what breaks training or serving; the rest are remarks.
"""

import copy
import re

from scripts.examine import flow, gradients, heads, open_code, state, unusual_norms
from scripts.examine.probe import Probed
from scripts.examine.tape import reals_in
from scripts.experiments.atlas import examine as atlas
from scripts.experiments.atlas.branches import again
from scripts.site.atlas.words import decimal

LARGE_EPSILON = 1e-4  # ten times the largest epsilon of the atlas


def judged(found: Probed, causal: bool) -> dict:
    """{"faults": ..., "remarks": ..., "reads": which tokens an output reads}."""
    faults: list[list] = []
    remarks: list[list] = []
    last = found.lists[-1][1][-1].path
    loaded = found.loaded
    if loaded.tokens_first:
        remarks.append(["tokens-first", next(iter(loaded.given))])
    reads = flow.reach(loaded.model, loaded.given, last, loaded.tokens_first)
    for rule in (
        norms_alone,
        unreached,
        strange_norms,
        unread_roots,
        stored_gains,
        sides,
        final,
        twice,
        heads_apart,
        idle,
        names,
        halves,
    ):
        rule(found, faults, remarks)
    later_tokens(found, reads, causal, faults)
    steadiness(found, faults, remarks)
    return {"faults": merged(faults), "remarks": merged(remarks), "reads": reads}


def merged(entries: list[list]) -> list[list]:
    """One entry for each rule and detail, its places together."""
    groups: dict = {}
    for rule, place, *details in entries:
        places = groups.setdefault((rule, *details), [])
        if place not in places:
            places.append(place)
    return [[rule, at, list(details)] for (rule, *details), at in groups.items()]


def _recognised(found: Probed):
    """(call, behaviour, the norm as a module of one tensor, a shape) of each norm."""
    seen = set()
    for call in found.trace.calls:
        if call.path not in found.known or call.path in seen or "#" in call.path:
            continue
        seen.add(call.path)
        behaviour, gated = found.known[call.path]
        if not gated:
            alone, _, x = atlas._alone(call, 0.0)
            yield call, behaviour, alone, x


def norms_alone(found: Probed, faults, remarks) -> None:
    """What each recognised norm does on its own."""
    import torch

    for call, behaviour, norm, x in _recognised(found):
        path = call.path
        faults += [
            ["dead", f"{path}.{part.removeprefix('norm.')}"]
            for part in _tried(unusual_norms.dead_parameters, norm, x) or ()
            if len(call.outputs) == 1  # else it may act on the other output
        ]
        if _tried(unusual_norms.detached, norm, x):
            faults.append(["detached", path])
        else:
            faults += [
                [*_gradient(factor, what), path, *([f"{factor:.2g}"] if factor else [])]
                for what, factor in _tried(gradients.wrong, norm, x) or ()
            ]
        if behaviour.kind == "LayerNorm" and _tried(unusual_norms.cancels, norm, x):
            faults.append(["cancels", path])
        wide = behaviour.gain == "1+w" and behaviour.cast.startswith("gain in fp32")
        if wide and _tried(unusual_norms.offset_rounds, norm, x):
            faults.append(["one-rounds", path])
        if _tried(_in_place, call):
            faults.append(["in-place", path])
        axes = found.strange[path].axes if path in found.strange else ()
        place, e = unusual_norms.eps_place(norm, x, behaviour.size, axes)
        if place == "floor":
            remarks.append(["eps-floor", path, decimal(float(f"{e:.2g}"))])
        if place == "outside":
            faults.append(["eps-outside", path, decimal(float(f"{e:.3g}"))])
        elif place == "none":
            if not unusual_norms.zeros_finite(norm, x, torch.float32):
                faults.append(["eps-none", path])
        elif behaviour.eps and behaviour.eps >= LARGE_EPSILON:
            remarks.append(["eps-large", path, decimal(behaviour.eps)])
        if not behaviour.cast and getattr(call, "called", ""):
            continue  # where lines of a forward round is not read
        if place != "none" and not _zeros_half(norm, x):
            faults.append(["eps-half", path, _eps(behaviour, e)])
        if not behaviour.fp16:
            faults.append(["half", path])


def _gradient(factor: float | None, what: str) -> list[str]:
    """The rule of a wrong gradient: none, so many times the right one, another."""
    if factor is None:
        return [f"gradient-{what}"]
    return [f"gradient-{what}-{'scaled' if factor else 'none'}"]


def unreached(found: Probed, faults, remarks) -> None:
    """Parameters of modules that run, and that no gradient reaches."""
    said = _tried(gradients.unreached, found.loaded.model, found.loaded.given)
    reached, missed = said or (True, [])
    if not reached:  # what stands in place of a gradient is the same switch
        faults[:] = [entry for entry in faults if not entry[0].endswith("-none")]
        remarks.append(["no-graph", found.lists[-1][0]])
    dead = {entry[1] for entry in faults if entry[0] == "dead"}
    missed = [name for name in missed if name not in dead]
    named = dict(found.loaded.model.named_parameters())
    gains = {
        id(p)
        for c in found.trace.calls
        if c.path in found.known
        for p in c.module.parameters()
    }
    norms = any(id(named[name]) in gains for name in missed)
    (faults if norms else remarks).extend(["unreached", name] for name in missed)


def _tried(probe, *given):
    """What a probe says; None if the norm does not run so."""
    try:
        return probe(*given)
    except Exception:
        return None


def _eps(behaviour, e: float) -> str:
    return decimal(behaviour.eps or float(f"{e:.1g}"))


def _zeros_half(norm, x) -> bool:
    import torch

    try:
        return unusual_norms.zeros_finite(norm, x, torch.float16)
    except RuntimeError:  # no kernel for it on a CPU
        return True


def _in_place(call) -> bool:
    """Whether the module changed the tensor that it was given."""
    import torch

    h = call.inputs[0].value.clone()
    kept = h.clone()
    with torch.no_grad():
        call.module(h)
    return not torch.equal(h, kept)


def strange_norms(found: Probed, faults, remarks) -> None:
    """Norms over other axes, or with another divisor."""
    tokens = flow.tokens_of(found.loaded.given, found.loaded.tokens_first)
    calls = {call.path: call for call in reversed(found.trace.calls)}
    for path, said in found.strange.items():
        _strange(path, said, calls[path].inputs[0].shape, tokens, faults, remarks)


def _strange(path, said, shape, tokens, faults, remarks) -> None:
    last = len(shape) - 1
    crossed = [i for i in said.axes if i != last]
    if 0 in crossed and shape[0] != tokens:
        faults.append(["over-batch", path])
    elif tokens and any(shape[i] == tokens for i in crossed):
        rule = "over-tokens" if last in said.axes else "wrong-axis"
        faults.append([rule, path])
    elif crossed and last not in said.axes and len(shape) == 3:
        faults.append(["wrong-axis", path])
    elif crossed:
        remarks.append(["over-axes", path, ", ".join(map(str, said.axes))])
    else:
        if unusual_norms.unbiased(said, shape[-1]):
            faults.append(["unbiased", path])
        else:
            remarks.append(["factor", path, f"{said.factor:.3g}"])


def unread_roots(found: Probed, faults, remarks) -> None:
    """What may be a norm and was not read: roots, and what removes the scale."""
    remarks += [["unread", where, name] for name, where in _outside(found)]
    remarks += [["scale-lost", where, name] for name, where in found.lost]


def _outside(found: Probed) -> list[tuple[str, str]]:
    """(name, file:line) of the roots outside of the layers that are not read."""
    return [
        (name, where)
        for path, name, where in found.unread
        if not any(f"{path}.".startswith(f"{held}.") for held in found.layers)
    ]


def stored_gains(found: Probed, faults, remarks) -> None:
    """Gains as they came: what their values say of the form they were meant for."""
    from snippets.norm_probe.behaviour import split_parameters

    names = {id(p): n for n, p in found.loaded.model.named_parameters()}
    offsets, kinds = {}, {}
    for _, behaviour, norm, x in _recognised(found):
        gains, _ = split_parameters(norm, unusual_norms._numbers(x.shape))
        own = dict(norm.named_parameters())
        for name in gains:
            place = names.get(id(own[name]), "")
            values = found.stored.get(place)
            if values is None or not values.numel():
                continue
            kinds.setdefault(re.sub(r"\.\d+\.", ".#.", place), {})[place] = values
            if behaviour.gain == "1+w":
                offsets[place] = values
            if behaviour.gain == "w" and not values.any():
                faults.append(["gain-zero", place])
            elif behaviour.gain == "w" and _centred(values):
                faults.append(["gain-centred", place])
            elif behaviour.gain == "1+w" and bool((values == 1).all()):
                faults.append(["gain-two", place])

    if offsets and all(map(_near_one, offsets.values())):
        faults += [["gain-near-one", place] for place in offsets]
    for same in kinds.values():  # of one name in every layer
        flat = [p for p, v in same.items() if v.numel() > 1 and bool((v == v[0]).all())]
        if 0 < len(flat) < len(same) / 2:
            faults += [["gain-constant", place] for place in flat]


def _near_one(values) -> bool:
    """Whether numbers scatter around one, and are not all one."""
    mean, spread = values.double().mean().item(), values.double().std().item()
    return 0.7 < mean < 1.3 and 0 < spread < 0.3


def _centred(values) -> bool:
    """Whether numbers scatter around zero, both signs among them."""
    negative = (values < 0).double().mean().item()
    spread = values.double().std().item() if values.numel() > 1 else 0.0
    return 0.2 < negative < 0.8 and values.double().mean().abs().item() < spread


def shape_of(said: dict) -> str:
    """A layer's equations without names: where norms stand, what is added."""
    text = "; ".join(said["equations"])
    text = re.sub(r"N\[[^\]]*\]", "N", text)
    return re.sub(r"\b(?!N\b)[A-Z]\w+\(", "F(", text)


def _branches(said: dict) -> list[str]:
    """Names of a layer's branches, in order."""
    text = re.sub(r"N\[[^\]]*\]\(", "(", "; ".join(said["equations"]))
    return re.findall(r"[A-Z]\w+(?=\()", text)


def sides(found: Probed, faults, remarks) -> None:
    """Branches or layers that place their norms differently."""
    for path, every in found.layers.items():
        shapes = [shape_of(said) for said in every]
        inner = range(1, len(shapes)) if len(shapes) > 2 else range(len(shapes))
        same = {shapes[i] for i in inner}  # a first layer may differ on purpose
        inner = [i for i, shape in enumerate(shapes) if i in inner or shape in same]
        for i in inner:
            said = every[i]["differ"].partition(": ")[2]
            rule = of_equations(shapes[i])
            grown = re.search(
                r"= (\d[\d.]*)·[a-z] \+", "; ".join(every[i]["equations"])
            )
            pre = every[i]["placement"] in ("pre", "pre-parallel", "sandwich")
            if pre and grown and float(grown[1]) > 1.01:
                faults.append(["stream-scaled", f"{path}.{i}", grown[1]])
            if rule:
                faults.append([rule, f"{path}.{i}"])
            if every[i]["placement"] == "residual-after-norm":
                remarks.append(["residual-normed", f"{path}.{i}"])
            if not said or every[i]["batch_norms"]:
                continue
            # One branch reads the stream as it is, or one alone adds to a norm.
            if " none" in said or "residual-after-norm" in said:
                faults.append(["branches-differ", f"{path}.{i}", said])
            elif not rule:
                remarks.append(["branches-differ", f"{path}.{i}", said])
        kinds = [_branches(said) for said in every]
        for i in inner:
            alike = [every[j]["placement"] for j in inner if kinds[j] == kinds[i]]
            common = max(set(alike), key=alike.count)
            place = every[i]["placement"]
            if place and common and place != common and "other" not in (place, common):
                faults.append(["layers-differ", f"{path}.{i}", place, common])


def of_equations(shape: str) -> str | None:
    """What a layer's equations show that no published layer does on purpose."""
    if re.search(r"= N\(\w+ \+", shape) and "F(N(" in shape:
        return "stream-normed"
    return "twice" if re.search(r"F\(N\(N\(", shape) else None


def final(found: Probed, faults, remarks) -> None:
    """A stream that grows over Pre-Norm layers and reaches the head as it is."""
    from scripts.experiments.atlas.blocks import equal

    path, calls = found.lists[-1]
    every = found.layers[path]
    ends = shape_of(every[-1]).rpartition("y = ")[2]
    several = every[-1]["placement"] == "multi-stream"
    if several or "N(" not in shape_of(every[-1]) or ends.startswith("N("):
        return
    sites = {site for site, _, side in found.outer if side in ("", path)}
    if sites & {"final", "head"} or _outside(found):
        return
    end = calls[-1].end
    if any(c.start > end and c.path in found.strange for c in found.trace.calls):
        return
    last = calls[-1].out.value
    after = [c for c in found.trace.calls if c.start > end and c.path in found.known]
    given = [c.inputs[0].value for c in after]
    if any(x.shape == last.shape and equal(x, last) for x in given):
        return  # a norm of a layer, used once more
    outputs = reals_in(found.trace.output)
    tape = found.tape
    stream, _ = tape.step_of(calls[-1].out)
    for given in outputs if stream is not None else ():
        lost = open_code.removes_scale(tape, stream, given, len(tape.steps) - 1)
        if lost:
            remarks += [["scale-lost", where, name] for name, where in lost]
            return
    bare = any(o.shape == last.shape and equal(o, last) for o in outputs)
    if bare:
        remarks.append(["ends-bare", path])
    else:
        faults.append(["no-final", path])


def twice(found: Probed, faults, remarks) -> None:
    """A norm of a norm, both around the layers."""
    from scripts.experiments.atlas.blocks import equal

    norms = [
        c
        for c in found.trace.calls
        if c.path in found.known
        and not any(f"{c.path}.".startswith(f"{p}.") for p in found.layers)
    ]
    for call in norms:
        before = (c for c in norms if c.end < call.start)
        if any(equal(c.out.value, call.inputs[0].value) for c in before):
            faults.append(["twice", call.path])


def heads_apart(found: Probed, faults, remarks) -> None:
    """Heads that are cut or merged askew, and norms that run over them."""
    for attended in found.trace.attended:
        if found.loaded.tokens_first:
            return
        if path := _tried(heads.misplaced, found, attended):
            faults.append(["heads", path])
    faults += [["over-heads", path] for path in found.across]


def idle(found: Probed, faults, remarks) -> None:
    """Norms that a layer or the model holds and never calls."""
    for path, every in found.layers.items():
        for i, said in enumerate(every):
            faults += [["idle", f"{path}.{i}.{name}"] for name in said["idle"]]
    called = {c.path: type(c.module) for c in found.trace.calls}
    ran = [*found.trace.calls, *found.through]
    alive = {id(c.module) for c in ran}  # a shared one has many names
    kinds = {called[p] for p in found.known if p in called}
    for path, module in found.loaded.model.named_modules():
        held = any(f"{path}.".startswith(f"{p}.") for p in found.layers)
        ran = path.rpartition(".")[0] in called  # its owner, so that it is left out
        if any(id(p) in found.tape.parameters for p in module.parameters()):
            continue
        if type(module) in kinds and id(module) not in alive and ran and not held:
            faults.append(["idle", path])


def names(found: Probed, faults, remarks) -> None:
    """A class called RMSNorm that subtracts the mean."""
    for call, behaviour, *_ in _recognised(found):
        called = type(call.module).__name__
        if "rms" in called.lower() and behaviour.kind.startswith("LayerNorm"):
            faults.append(["named-rms", call.path, called])


def halves(found: Probed, faults, remarks) -> None:
    """Queries normed and keys not, or the other way round, in all of the model.

    Where latents are normed, or keys of an earlier layer are read, one side is meant.
    """
    entries = [entry for row in found.rows for entry in row["qk"]]
    sites = {entry[0] for entry in entries}
    if any(entry[3] == "latent" for entry in entries) or sites & {"qk", "kv"}:
        return
    if len(sites & {"q", "k"}) == 1:
        (only,) = sites & {"q", "k"}
        faults.append(["one-side", found.lists[-1][0], only])


def later_tokens(found: Probed, reads, causal: bool, faults) -> None:
    """Layers that read later tokens where others, or their attention, do not.

    What never reaches an output is rounding: a scan in chunks cancels large sums.
    """
    if reads == "past":
        return
    tokens = flow.tokens_of(found.loaded.given, found.loaded.tokens_first)
    for path, calls in found.lists:
        said = {call.path: flow.leaks(call, tokens) for call in calls}
        leaking = [p for p, leak in said.items() if leak]
        if leaking and any(leak is False for leak in said.values()):
            faults += [["later-layer", p] for p in leaking]
        elif leaking and reads and not causal:
            for call in calls:
                if call.path in leaking and _attention_is_causal(found, call):
                    faults.append(["later-outside", call.path])
        if leaking and reads == "some later":
            faults.append(["later-some", path])
        elif leaking and causal:
            faults += [["later-causal", p] for p in leaking]
    if any("later" in entry[0] for entry in faults):
        return
    if reads == "some later":
        faults.append(["later-some", found.lists[0][0]])
    elif causal and reads == "all":
        faults.append(["later-causal", found.lists[0][0]])


def _attention_is_causal(found: Probed, block) -> bool:
    """Whether the block has modules with a softmax over tokens, and none leaks."""
    told = []
    for call in found.trace.calls:
        if not call.inside(block) or call.out is None:
            continue
        leak = flow.leaks(call, flow.tokens_of(found.loaded.given))
        if leak is None:
            continue
        try:
            _, taken = again(call)
        except Exception:  # it takes what is not here any more
            continue
        if taken:
            told.append(leak)
    return bool(told) and not any(told)


def steadiness(found: Probed, faults, remarks) -> None:
    """Other samples, the switch to training, and one pass after another."""
    import torch

    model, given = found.loaded.model, found.loaded.given
    if (place := flow.unsteady(model, given)) is not None:
        faults.append(["unsteady", place or "?"])
        return
    if (place := flow.batch_leak(model, given, found.loaded.tokens_first)) is not None:
        faults.append(["batch", place or "?"])
    if (place := flow.train_differs(model, given)) is not None:
        module = dict(model.named_modules()).get(place)
        batch = isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
        images = any(getattr(v, "ndim", 0) > 3 for v in given.values())
        kind = remarks if batch and images else faults
        kind += [["train", path] for path in _alike_in_training(found, place)]


def _alike_in_training(found: Probed, place: str) -> list[str]:
    """The modules of that one's class that differ in training, each run alone."""
    kind = type(dict(found.loaded.model.named_modules()).get(place))
    calls = {c.path: c for c in found.trace.calls if type(c.module) is kind}
    also = []
    for path, call in calls.items():
        alone = copy.copy(call)
        try:
            alone.module = state.copied(call.module)
            with flow.no_dropout(alone.module):
                before, _ = again(alone)
                state.reset(alone.module)
                alone.module.train()
                after, _ = again(alone)
            if flow.differs(before, after):
                also.append(path)
        except Exception:  # it takes what is not here any more, or gives no tensor
            continue
    return also if place in also else [place or "?"]
