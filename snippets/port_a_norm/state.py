from collections.abc import Callable

from torch import Tensor


def ported(
    state: dict[str, Tensor],
    names: dict[str, str],
    convert: Callable[[Tensor], Tensor],
) -> dict[str, Tensor]:
    """A state dict for our code from theirs, norm by norm.

    names is {their name: ours} of every norm's module, by place:
    layers.0.ln.weight is found under "ln". The weights of the norms go
    through convert, all others stay as they are. ValueError for a norm that
    the state does not hold, and for two tensors of one name.
    """
    result: dict[str, Tensor] = {}
    found = set()
    for key, tensor in state.items():
        parts = key.split(".")
        for i, part in enumerate(parts[:-1]):
            if part in names:
                found.add(part)
                parts[i] = names[part]  # (1)!
                if parts[-1] == "weight":
                    tensor = convert(tensor)
                break
        new = ".".join(parts)
        if new in result:
            raise ValueError(f"two tensors are called {new}")
        result[new] = tensor
    if missing := names.keys() - found:
        raise ValueError(f"no norm called {', '.join(sorted(missing))}")
    return result
