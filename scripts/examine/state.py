"""What a model keeps from pass to pass, and the switches that hide its graph."""

import copy
import weakref
from contextlib import contextmanager
from functools import cache

_kept: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
PLAIN = (bool, int, float, str, type(None))


def keep(model) -> None:
    """Note the state that `reset` brings back: buffers, and plain attributes."""
    fresh: dict = {}
    for module in model.modules():
        held = (module._buffers, vars(module))
        _kept[module] = [(each, dict(_copies(each, fresh))) for each in held]


def reset(model) -> None:
    """Bring back the state that was noted; nothing where none was."""
    fresh: dict = {}
    for held, values in (pair for m in model.modules() for pair in _kept.get(m, ())):
        for name in [n for n, v in held.items() if _own(n, v) and n not in values]:
            del held[name]
        for name, value in values.items():
            held[name] = _copy(value, fresh)


def copied(model):
    """A copy with the state that was noted, which is noted of the copy as well."""
    reset(model)
    fresh = copy.deepcopy(model)
    keep(fresh)
    return fresh


def changing(model) -> dict:
    """The tensors that a model keeps, by name, as they are now."""
    import torch

    found = {}
    for path, module in model.named_modules():
        for held in (module._buffers, vars(module)):
            for name, value in held.items():
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    found[f"{path}.{name}".lstrip(".")] = value.detach().clone()
    return found


def _copies(held: dict, fresh: dict):
    for name, value in held.items():
        if _own(name, value):
            yield name, _copy(value, fresh)


def _own(name: str, value) -> bool:
    """Whether it is a state that no module has of itself."""
    return name not in _of_every_module() and _is_state(value)


@cache
def _of_every_module() -> frozenset:
    import torch

    return frozenset(vars(torch.nn.Module()))


def _is_state(value) -> bool:
    import torch

    if isinstance(value, torch.nn.Parameter):
        return False
    if type(value) in (list, tuple):
        return all(map(_is_state, value))
    if type(value) is dict:
        return all(map(_is_state, value.values()))
    return isinstance(value, (torch.Tensor, *PLAIN))


def _copy(value, fresh: dict):
    """A copy of a state; what was shared stays shared."""
    import torch

    if isinstance(value, torch.Tensor):
        if id(value) not in fresh:
            fresh[id(value)] = value, value.detach().clone()
        return fresh[id(value)][1]
    if type(value) in (list, tuple):
        return type(value)(_copy(v, fresh) for v in value)
    if type(value) is dict:
        return {n: _copy(v, fresh) for n, v in value.items()}
    return value


@contextmanager
def replaced(owner, **methods):
    """Attributes of a class or a module, replaced for a while."""
    before = {name: vars(owner)[name] for name in methods if name in vars(owner)}
    for name, method in methods.items():
        setattr(owner, name, method)
    try:
        yield
    finally:
        for name in methods:
            if name in before:
                setattr(owner, name, before[name])
            else:
                delattr(owner, name)


_wanted = [True]


def wants_graph() -> bool:
    """Whether the model wants a graph where it is now, in a pass that keeps it."""
    return _wanted[0]


def _off(self) -> None:
    self.outer, _wanted[0] = _wanted[0], False


def _set(self, mode: bool) -> None:
    self.mode, self.outer, _wanted[0] = mode, _wanted[0], mode


def _back(self, *_) -> None:
    _wanted[0] = self.outer


@contextmanager
def graph_kept():
    """`no_grad`, `inference_mode` and `set_grad_enabled` without effect."""
    import torch

    off = {"__enter__": _off, "__exit__": _back}
    called = {"__init__": _set, "__enter__": lambda self: None, "__exit__": _back}
    try:
        with (
            torch.enable_grad(),
            replaced(torch.no_grad, **off),
            replaced(torch.inference_mode, **off),
            replaced(torch.set_grad_enabled, **called),
        ):
            yield
    finally:
        _wanted[0] = True


@contextmanager
def ordinary_tensors():
    """`inference_mode` as `no_grad`: what a model keeps can be used outside of it."""
    import torch

    def enter(self) -> None:
        self._before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)

    def leave(self, *_) -> None:
        torch._C._set_grad_enabled(self._before)

    with replaced(torch.inference_mode, __enter__=enter, __exit__=leave):
        yield
