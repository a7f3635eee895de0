"""Which kernels a call ran, as the profiler names them, and at which launch.

The names tell who computed: torch's own norm is another kernel in another version.
"""

import json
import tempfile
from collections.abc import Callable
from math import prod
from pathlib import Path

COLUMNS = ("kernel", "programs", "threads", "registers", "shared_bytes")
LONGEST = 300  # characters of a name; templates of C++ have no end


def kernels(call: Callable[[], object]) -> list[list] | None:
    """The COLUMNS of each kernel of a call; None where nothing can tell."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    if not torch.cuda.is_available():
        return None
    try:
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            call()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            seen.export_chrome_trace(str(path))
            return read(json.loads(path.read_text(encoding="utf-8")))
    except Exception:  # no library for it, no rights to it
        return None


def read(trace: dict) -> list[list] | None:
    """The kernels of a trace, in the order in which they ran."""
    events = [e for e in trace["traceEvents"] if e.get("cat") == "kernel"]
    told = ("registers per thread", "shared memory")
    found = []
    for event in sorted(events, key=lambda event: event["ts"]):
        made = event.get("args", {})
        name = event["name"].replace("<", "(").replace(">", ")")[:LONGEST]  # no markup
        launch = [prod(made[k]) if k in made else None for k in ("grid", "block")]
        found.append([name, *launch, *map(made.get, told)])
    return found or None
