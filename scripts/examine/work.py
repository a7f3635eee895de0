"""The process in which a reader's model is built and probed: JSON in, JSON out."""

import json
import sys
from pathlib import Path

from scripts.examine.load import Refusal, load, no_memory, one_line

SPACE = 8192  # MiB that a model may take beside the imported packages


def limit(mebibytes: int) -> None:
    """Bound this process's memory, where the system can."""
    try:
        import resource

        with open("/proc/self/status", encoding="ascii") as lines:
            sizes = dict(line.split(":", 1) for line in lines if "VmSize" in line)
        most = int(sizes["VmSize"].split()[0]) * 1024 + mebibytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return


def work(request: dict) -> dict:
    """{"report": ...} or {"problem": one line}."""
    import warnings

    import torch

    from scripts.examine.report import gathered

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        return {"report": gathered(load, request)}
    except Refusal as refusal:
        return {"problem": str(refusal)}
    except MemoryError:
        return {"problem": f"needs more than {SPACE} MiB of memory"}
    except RecursionError:
        return {"problem": "the model calls itself without end"}
    except Exception as error:
        if no_memory(error):
            return {"problem": f"needs more than {SPACE} MiB of memory"}
        return {"problem": f"the probes do not run on it: {one_line(error)}"}


def main() -> None:
    request = json.loads(sys.stdin.read())
    sys.path.insert(0, str(Path.cwd()))
    import torch  # noqa: F401  before the limit, which does not count it

    limit(SPACE)
    answer = work(request)
    Path(request["answer"]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
