"""From what a reader names to a model and an input for it."""

import importlib.util
import inspect
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.examine import state

BATCH, TOKENS = 2, 11
LENGTHS = (TOKENS, 7, 16)  # tried in turn where the reader gives none
MOST = 300_000_000  # parameters: what a CPU probes within the limit of time


class Refusal(Exception):
    """Why a model cannot be examined. One line."""


@dataclass
class Loaded:
    """A model with the keyword arguments of one forward pass."""

    name: str
    model: object
    given: dict
    architecture: str = ""  # of a transformers configuration
    guessed: bool = False  # whether the input is none of the reader's
    tokens_first: bool = False  # on axis 0, the samples on axis 1


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 160 else text[:157] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def no_memory(error: BaseException) -> bool:
    """Whether torch says in its own way that there is not enough memory."""
    return "allocate memory" in str(error)


def load(spec: str, options: dict) -> Loaded:
    """The model that a reader names: module:factory, or a path to a configuration."""
    import torch

    torch.manual_seed(0)
    if options.get("transformers"):
        return _configured(Path(spec))
    made = _made(spec)
    example = None
    if isinstance(made, tuple) and len(made) == 2:
        made, example = made
    if not isinstance(made, torch.nn.Module):
        raise Refusal(
            f"{spec} gave {article(made)}; needed: a torch.nn.Module, or a pair "
            "(model, example input)"
        )
    _small_enough(made)
    made.eval()
    if any(p.dtype.is_floating_point for p in made.parameters()):
        made.float()
    state.keep(made)
    if example is not None:
        return Loaded(spec, made, bound(made, example))
    own = bool(options.get("input"))
    return Loaded(spec, made, _guess(made, options), guessed=not own)


def article(thing) -> str:
    name = type(thing).__name__
    return (
        "None"
        if thing is None
        else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
    )


def _made(spec: str):
    module, colon, name = spec.rpartition(":")
    if not (module and colon and name):
        raise Refusal(f"{spec!r} is not of the form module:factory")
    file = module.endswith(".py")
    if file and not Path(module).is_file():
        raise Refusal(f"no file {module!r} in {Path.cwd()}")
    try:
        found = _of_file(Path(module)) if file else importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise Refusal(f"no module {module!r} in {Path.cwd()}") from None
        raise Refusal(f"{module} does not import: {one_line(error)}") from None
    except (Exception, SystemExit) as error:
        raise Refusal(f"{module} does not import: {one_line(error)}") from None
    if not hasattr(found, name):
        own = [
            n
            for n, value in vars(found).items()
            if callable(value) and getattr(value, "__module__", "") == found.__name__
        ]
        known = f"; it has: {', '.join(own[:8])}" if own else ""
        raise Refusal(f"{module} has no {name!r}{known}")
    factory = getattr(found, name)
    made = hasattr(factory, "named_modules") and not isinstance(factory, type)
    if made or not callable(factory):
        return factory
    try:
        return factory()
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        if no_memory(error):
            raise MemoryError from None
        raise Refusal(f"{spec}() does not run: {one_line(error)}") from None


def _of_file(path: Path):
    """A module from its file, which may import what lies beside it."""
    sys.path.insert(0, str(path.resolve().parent))
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_{len(sys.path)}"
    spec = importlib.util.spec_from_file_location(name, path)
    found = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def _small_enough(model) -> None:
    count = sum(p.numel() for p in model.parameters())
    if count > MOST:
        raise Refusal(
            f"too large: {count / 1e6:.0f} million parameters, at most "
            f"{MOST / 1e6:.0f} million; make it with fewer layers or less width"
        )


# A configuration of transformers ----------------------------------------------------


def _configured(path: Path) -> Loaded:
    """The architecture of a configuration file, its switches kept, its sizes tiny."""
    from scripts.experiments.atlas import tiny

    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise Refusal(f"{path} is no JSON: {one_line(error)}") from None
    architecture = fields.get("model_type") if isinstance(fields, dict) else None
    if not isinstance(architecture, str):
        raise Refusal(f"{path} has no model_type")
    try:
        import transformers
    except ImportError:
        raise Refusal("--transformers needs the package transformers") from None
    if architecture not in transformers.CONFIG_MAPPING:
        version = transformers.__version__
        raise Refusal(f"transformers {version} knows no model_type {architecture!r}")
    kind = transformers.CONFIG_MAPPING[architecture]
    try:
        wide = kind.from_dict(fields)
        small = tiny.settings(wide, architecture)
        config = kind(**tiny._given(wide) | small)
        for name in tiny.NOT_SIZES:  # wrappers that look for it in the wrong place
            if not hasattr(config, name):
                setattr(config, name, None)
        config._attn_implementation = "eager"
        model = _class_of(transformers, architecture, config).eval().float()
    except MemoryError:
        raise
    except Exception as error:
        raise Refusal(f"{architecture} cannot be built: {one_line(error)}") from None
    state.keep(model)
    given = tiny.inputs(model, config, tiny.seed_of(architecture))
    return Loaded(str(path), model, given, architecture)


def _class_of(transformers, architecture: str, config):
    from scripts.experiments.atlas import tiny

    if architecture in tiny.architectures():
        return tiny.model_class(architecture)(config)
    try:
        return transformers.AutoModelForCausalLM.from_config(config)
    except ValueError:
        return transformers.AutoModel.from_config(config)


# The input --------------------------------------------------------------------------


def bound(model, example) -> dict:
    """An example input as keyword arguments of forward."""
    import torch

    if isinstance(example, dict):
        return dict(example)
    values = example if isinstance(example, (tuple, list)) else (example,)
    if not all(isinstance(v, torch.Tensor) for v in values[:1]):
        raise Refusal("the example input is no tensor, tuple or dict of tensors")
    try:
        bound = inspect.signature(model.forward).bind(*values)
    except TypeError as error:
        raise Refusal(f"its forward: {error}") from None
    names = bound.signature.parameters
    if any(names[n].kind is inspect.Parameter.VAR_POSITIONAL for n in bound.arguments):
        raise Refusal("forward takes *args; give the example as a dict")
    return dict(bound.arguments)


def shape_of(text: str) -> tuple[int, ...]:
    """2x3x32x32 -> (2, 3, 32, 32)."""
    parts = text.lower().replace("×", "x").split("x")
    if not all(part.isdecimal() and int(part) for part in parts) or len(parts) < 2:
        raise Refusal(f"--input {text!r} is no shape; write 2x3x32x32")
    return tuple(map(int, parts))


def _guess(model, options: dict) -> dict:
    """Tokens or real numbers, the first that the model's forward takes."""
    import torch

    random = torch.Generator().manual_seed(0)
    tried, why = [], ""
    for example in _candidates(model, options, random):
        shape = tuple(example.shape)
        kind = "real numbers" if example.is_floating_point() else "tokens"
        try:
            given = bound(model, example)
            with torch.no_grad(), state.ordinary_tensors():
                model(**given)
            state.reset(model)
            return given
        except MemoryError:
            raise
        except Exception as error:
            why = why or (str(error) if isinstance(error, Refusal) else one_line(error))
            tried.append(f"{'×'.join(map(str, shape))} {kind}")
    if not tried:
        raise Refusal(
            "cannot guess an input: no embedding, matrix or convolution; use "
            "--input, or a factory that returns (model, example input)"
        )
    raise Refusal(
        f"forward does not take {tried[0]} ({why}); use --input, --vocab or --length, "
        "or a factory that returns (model, example input)"
    )


def _candidates(model, options: dict, random):
    import torch
    from torch import nn

    lengths = [options["length"]] if options.get("length") else LENGTHS
    if options.get("input"):
        yield torch.randn(shape_of(options["input"]), generator=random)
        return
    tables = [m for m in model.modules() if isinstance(m, nn.Embedding)]
    sizes = {m.num_embeddings for m in tables}
    if options.get("vocab"):
        sizes = {options["vocab"]}
    for length in lengths:
        for size in sorted(sizes, reverse=True):
            least = min(3, size - 1)  # the first ones are often padding
            shape = (BATCH, length)
            yield torch.randint(least, size, shape, generator=random)
    if sizes:
        return
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            config = [getattr(m, "img_size", None) for m in model.modules()]
            sides = [s for s in config if s]
            side = sides[0] if sides else 32
            side = side if isinstance(side, (tuple, list)) else (side, side)
            shape = (BATCH, module.in_channels, *side)
            yield torch.randn(shape, generator=random)
            return
        if isinstance(module, nn.Linear):
            for length in lengths:
                yield torch.randn(BATCH, length, module.in_features, generator=random)
            return
