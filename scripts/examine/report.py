"""What is found out about a model, as data that can be written down."""

from scripts.examine.load import Loaded


def gathered(load, request: dict) -> dict:
    """The report of one request: rows, facts, faults, and the comparison asked for."""
    from scripts.examine import faults, stored
    from scripts.examine.probe import probe

    target = request.get("target") or request["transformers"]
    options = {n: request.get(n) for n in ("input", "vocab", "length", "transformers")}
    loaded = load(target, options)
    own = None
    if ":" in (request.get("against") or ""):
        own = stored.as_stored(loaded)  # before the probes make the weights random
    found = probe(loaded)
    report = {
        "name": target,
        "parameters": sum(p.numel() for p in loaded.model.parameters()),
        "input": _shapes(loaded),
        "lists": [
            [path, len(calls), type(calls[0].module).__name__]
            for path, calls in found.lists
        ],
        "rows": found.rows,
        **faults.judged(found, request.get("causal", False)),
        "against": None,
    }
    if request.get("against"):
        from scripts.examine.compare import against

        report["against"] = against(found, load, request["against"], options, own)
    return report


def _shapes(loaded: Loaded) -> list[list]:
    """[name, shape, whether tokens] of each tensor that forward is given."""
    return [
        [name, list(value.shape), not value.is_floating_point()]
        for name, value in loaded.given.items()
        if hasattr(value, "shape")
    ]
