"""Where, with what and how a record was made. No host, user or path names."""

import datetime
import hashlib
import importlib.metadata
import os
import platform
import re
import secrets
import subprocess
import sys
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from types import ModuleType

from scripts.measure import digest
from scripts.measure.records import MACHINE, ROOT, TAKEN, RecordError

COMMIT = re.compile(r"[0-9a-f]{7,40}(-dirty)?")
SECONDS = 20  # patience with nvidia-smi and git
RUN = secrets.token_hex(4)  # this process
SETTING = re.compile(
    r"(TRITON|TORCH[A-Z]*|PYTORCH|CUDA|CUBLAS)_\w+|NVIDIA_TF32_OVERRIDE|OMP_NUM_THREADS"
)
PLAIN = re.compile(r"[a-zA-Z_]*|[0-9.]+")  # words or numbers; no path, no identifier
VERSIONED = {  # what is imported -> what is installed
    **{name: name for name in ("torch", "triton", "numpy", "transformers")},
    "liger_kernel": "liger-kernel",
}
# What writes kernels. A torch beside the CUTLASS DSL may take its norms from QuACK.
DSL = ("triton", "nvidia-cutlass-dsl", "quack-kernels")


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=ROOT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def tidy(name: str) -> str:
    """A device's name without trade marks, clock and core count."""
    name = re.sub(r"\((R|TM|C)\)|®|™", " ", name, flags=re.IGNORECASE)
    name = re.sub(r"@.*|\b\d+-Core\b|\b(CPU|Processor)\b", " ", name)
    return " ".join(name.split()) or "unknown device"


def cpu() -> dict:
    """Name and cores of the CPU that this process may use."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    name = line.partition(":")[2]
                    break
    except OSError:
        name = _output("sysctl", "-n", "machdep.cpu.brand_string") or name
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return {"kind": "cpu", "name": tidy(name), "cores": cores}


def gpu() -> dict | None:
    """The first NVIDIA GPU that torch can use, None without one."""
    fields = "name,driver_version,clocks.sm,clocks.max.sm,memory.total,power.limit"
    found = _output(
        "nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"
    )
    if not found or not found.strip():
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    name, driver, clock, most, memory, power = (
        part.strip() for part in found.splitlines()[0].split(",")
    )
    made = torch.cuda.get_device_properties(0)

    def number(text: str) -> int | None:
        whole = text.partition(".")[0]
        return int(whole) if whole.isdigit() else None

    return {
        "kind": "gpu",
        "name": tidy(name),
        "driver": driver,
        "cuda": torch.version.cuda or "unknown",
        "clock_mhz": number(clock),
        "clock_max_mhz": number(most),
        "memory_mib": number(memory),
        "power_limit_watt": number(power),
        "multiprocessors": getattr(made, "multi_processor_count", None),
        "l2_mib": getattr(made, "L2_cache_size", 0) // 2**20 or None,
    }


def device(kind: str | None = None) -> dict:
    """The device that is measured: a GPU if there is one, unless told."""
    if kind == "cpu":
        return cpu()
    return gpu() or cpu()


def processes(module: ModuleType) -> int:
    """How many processes of one thread share an experiment's steps; 0: none.

    An experiment with PARALLEL = True trains models too small for two threads:
    on a CPU each core runs its own steps.
    """
    described = device(getattr(module, "DEVICE", None))
    parallel = getattr(module, "PARALLEL", False) and described["kind"] == "cpu"
    return described["cores"] if parallel else 0


def machine_name(kind: str | None = None, described: dict | None = None) -> str:
    """The device's name in lower-kebab, or what the variable MACHINE says."""
    if name := os.environ.get("MACHINE"):
        if not MACHINE.fullmatch(name) or name in TAKEN:
            raise RecordError(f"MACHINE={name!r} is no free lower-kebab name")
        return name
    name = (described or device(kind))["name"].lower()
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")


def repository() -> bool:
    """Whether this tree is a repository itself, not a folder of another one."""
    top = _output("git", "rev-parse", "--show-toplevel")
    return bool(top) and Path(top.strip()).resolve() == ROOT


def commit_date(name: str) -> str | None:
    """When a commit was made, as records write it; None when it is not known here."""
    if not COMMIT.fullmatch(name) or not repository():
        return None
    made = _output("git", "log", "-1", "--format=%ct", name.removesuffix("-dirty"))
    return _written(datetime.datetime.fromtimestamp(int(made), UTC)) if made else None


def commit() -> str:
    """The short commit, with -dirty when the tree differs from it."""
    if name := os.environ.get("COMMIT"):  # a copy of the tree without .git
        return name
    head = _output("git", "rev-parse", "--short", "HEAD")
    if not head or not repository():
        return "unknown"
    ours = (":!docs/records", ":!docs/figures")  # measuring writes these
    changed = _output("git", "status", "--porcelain", "--", ".", *ours)
    return head.strip() + ("-dirty" if changed is None or changed.strip() else "")


def now() -> str:
    """The time in UTC, as records write it."""
    return _written(datetime.datetime.now(UTC))


def _written(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def versions(packages: set[str]) -> dict[str, str]:
    """The versions of those packages that can be part of what is timed.

    A package that is not installed has none: what it was for says that it is missing.
    """
    found = {}
    for name, package in VERSIONED.items():
        if name in packages:
            loaded = getattr(sys.modules.get(name), "__version__", None)
            if there := version(package):
                found[package] = str(loaded or there)
    return found


def version(package: str) -> str | None:
    """Of an installed package; None where it is not installed."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


def installed(package: str) -> str:
    """The SHA-256 of what was installed: of the package's list of file hashes.

    Only files inside the package count; the list is the wheel's own RECORD,
    sorted, so the same wheel gives the same digest wherever it is installed.
    """
    files = importlib.metadata.files(package) or []
    lines = sorted(
        f"{file.as_posix()},{file.hash.mode}={file.hash.value}"
        for file in files
        if file.hash and file.parts[0] == package and file.suffix != ".pyc"
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def environment() -> dict[str, str | None]:
    """Variables that steer what is timed; None for a value that is not told.

    Told are words and numbers alone: a path or an identifier names a machine.
    """
    return {
        name: value if all(map(PLAIN.fullmatch, re.split("[,:;=]", value))) else None
        for name, value in sorted(os.environ.items())
        if SETTING.fullmatch(name)
    }


def _runs(rows: list[dict]) -> dict:
    """The processes that made the rows, their environment, what compiled kernels."""
    runs = dict.fromkeys(row["run"] for row in rows if row.get("run"))
    dsl = {package: version(package) for package in DSL}
    return {"runs": list(runs) or [RUN], "environment": environment(), "dsl": dsl}


def _method(module: ModuleType) -> str:
    text = getattr(module, "METHOD", None) or module.__doc__ or ""
    return " ".join(text.split())


def _seeds(module: ModuleType, rows: list[dict]) -> list:
    declared = getattr(module, "SEEDS", None)
    if declared is not None:
        return list(declared)
    return sorted({row["seed"] for row in rows if row.get("seed") is not None})


def provenance(
    experiment: str, module: ModuleType, rows: list[dict], **where: object
) -> dict:
    """Everything that a record says about its making.

    The method is the module's METHOD or its docstring; the seeds are its
    SEEDS or those that the rows name in a column `seed`. A module's INSTALLED
    names packages that are themselves what is measured: the record then holds
    the hash of what was installed.
    """
    described = device(getattr(module, "DEVICE", None))
    threads = {row.get("threads") for row in rows} - {None}
    if len(threads) == 1:
        described["threads"] = threads.pop()
    elif used := processes(module):
        described |= {"threads": 1, "processes": used}
    elif described["kind"] == "cpu" and not threads and "torch" in sys.modules:
        described["threads"] = sys.modules["torch"].get_num_threads()
    measured = {name: installed(name) for name in getattr(module, "INSTALLED", ())}
    return {
        "device": described,
        "os": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions(digest.packages(experiment, **where)),
        **({"installed": measured} if measured else {}),
        "commit": commit(),
        "date": now(),
        "method": _method(module),
        "seeds": _seeds(module, rows),
        **(_runs(rows) if described["kind"] == "gpu" else {}),
        "digest": digest.code_digest(experiment, **where),
    }
