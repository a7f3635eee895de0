"""Triton kernels with a change: the wrong versions of the kernels' tasks."""

import inspect
import linecache
import types

HEAD = "import triton\nimport triton.language as tl\n\n\n"


def altered(kernel, changes: dict[str, list[tuple[str, str]]]) -> list:
    """Kernels with pieces of their text replaced, each named as its change is.

    ValueError unless every piece stands in the text.
    """
    return [_altered(kernel, name, pairs) for name, pairs in changes.items()]


def _altered(kernel, name: str, pairs: list[tuple[str, str]]):
    text = inspect.getsource(kernel.fn)
    for old, new in [(f"def {kernel.fn.__name__}(", f"def {name}("), *pairs]:
        if old not in text:
            raise ValueError(f"{name}: {old!r} is not in {kernel.fn.__name__}")
        text = text.replace(old, new)
    text, file = HEAD + text, f"<{kernel.fn.__name__}: {name}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    module = types.ModuleType(name)
    exec(compile(text, file, "exec"), vars(module))
    return getattr(module, name)
