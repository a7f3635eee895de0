"""Run a function in a process of its own, with limits on time and memory.

A server process imports the heavy packages once and forks for every task, so
that a task costs no start-up and cannot harm the next one, nor its caller.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MEBIBYTE = 2**20


@cache
def _server() -> subprocess.Popen:
    quiet = {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "scripts.experiments.atlas.isolate"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, **quiet},
        text=True,
    )


def isolated(task: str, argument: object, seconds: float, mebibytes: int) -> dict:
    """{"value": what `module:function` returns} or {"problem": why it does not.}

    argument and value are JSON. ``mebibytes`` is what the task may add to
    the memory of the imported packages.
    """
    server = _server()
    if server.poll() is not None:
        _server.cache_clear()
        server = _server()
    request = {
        "task": task,
        "argument": argument,
        "seconds": seconds,
        "mebibytes": mebibytes,
    }
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    if not answer:
        _server.cache_clear()
        return {"problem": "the process that runs the tasks ended"}
    return json.loads(answer)


def _limit(mebibytes: int) -> None:
    import resource

    with open("/proc/self/status", encoding="ascii") as lines:
        sizes = dict(line.split(":", 1) for line in lines if line.startswith("VmSize"))
    now = int(sizes["VmSize"].split()[0]) * 1024
    most = now + mebibytes * MEBIBYTE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 160 else text[:157] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _work(request: dict) -> dict:
    import importlib
    import warnings

    warnings.simplefilter("ignore")
    try:
        _limit(request["mebibytes"])
        module, _, name = request["task"].partition(":")
        task = getattr(importlib.import_module(module), name)
        value = task(request["argument"])
        json.dumps(value, allow_nan=False)
        return {"value": value}
    except MemoryError:
        return {"problem": f"needs more than {request['mebibytes']} MiB"}
    except BaseException as error:
        text = _one_line(error)
        if "can't allocate memory" in text or "Cannot allocate" in text:
            return {"problem": f"needs more than {request['mebibytes']} MiB"}
        return {"problem": text}


def _run(request: dict) -> str:
    """Fork, wait, kill if need be; the child's answer as one line of JSON."""
    import select
    import signal
    import time

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            with os.fdopen(writer, "w") as out:
                out.write(json.dumps(_work(request)))
        finally:
            os._exit(0)
    os.close(writer)
    end = time.monotonic() + request["seconds"]
    parts = []
    answer = None
    while answer is None:
        left = end - time.monotonic()
        ready = left > 0 and select.select([reader], [], [], left)[0]
        if not ready:
            os.kill(child, signal.SIGKILL)
            answer = {"problem": f"not done after {request['seconds']:g} s"}
            break
        part = os.read(reader, 2**16)
        if not part:
            break
        parts.append(part)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if answer is None:
        text = b"".join(parts).decode()
        if text:
            return text
        number = os.waitstatus_to_exitcode(status)
        answer = {"problem": f"the process died with status {number}"}
    return json.dumps(answer)


def main() -> None:
    import torch
    import transformers
    from transformers import modeling_utils  # noqa: F401  loads what all models share

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # prints of models go nowhere
    for line in sys.stdin:
        answers.write(_run(json.loads(line)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
