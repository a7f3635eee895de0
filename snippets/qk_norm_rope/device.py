from snippets.memory_bound.interpreter import device  # noqa: F401
