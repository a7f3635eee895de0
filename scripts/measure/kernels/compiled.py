"""What the compiler makes of a launch: registers, spills, instructions. No GPU.

Code that launches kernels runs in a process of its own, with tensors that have a
shape and no memory, on a device that Triton takes for one of compute capability
9.0. Every launch goes through Triton's own path as far as the finished binary:
arguments are specialized, and options chosen, as in a real launch. The binary is
then read with the assembler's tools of the same Triton.

A process of its own, because tests run kernels in the interpreter, and Triton
decides when it is imported which of the two it is.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path

from scripts.measure.records import ROOT, RecordError

CAPABILITY = 90  # of an H100 and an H200
SMS = 132  # of both, as SXM modules
# Of one SM of compute capability 9.0: CUDA C++ Programming Guide, table
# "Technical Specifications per Compute Capability", and its occupancy calculator.
REGISTERS, REGISTERS_AT_ONCE = 65_536, 256  # given to a warp in such portions
WARPS, WARPS_AT_ONCE, PROGRAMS = 64, 4, 32
SHARED, SHARED_MOST, SHARED_OWN = 233_472, 232_448, 1024  # the system's, a program
WARP = 32
INSTRUCTION = re.compile(
    r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][A-Z0-9_.]*)", re.MULTILINE
)
USAGE = re.compile(r"REG:(\d+) STACK:(\d+)")
BUFFERS = re.compile(r"ttg\.local_alloc .*?memdesc<(\d+)x(?!1x[a-z])\d")
# An instruction of 128 bits: its name, then both halves in hexadecimal. In the upper
# half stand the barrier that a load sets (bits 46 to 48; 7 is none) and those that
# the instruction waits for (bits 52 to 57).
ENCODED = re.compile(
    r"(?:@!?\w+\s+)?([A-Z][A-Z0-9_.]*)[^;]*;\s*/\* 0x\w{16} \*/\s*/\* 0x(\w{16}) \*/"
)


# What a binary needs ----------------------------------------------------------


def counts(sass: str) -> dict[str, int]:
    """Instructions of each kind in disassembled code; padding is left out."""
    found = Counter()
    for name in INSTRUCTION.findall(sass):
        kind, *parts = name.split(".")
        size = "16" if "128" in parts else "narrow"
        found["instructions"] += kind != "NOP"
        if kind in ("LDG", "STG"):
            found[f"{'loads' if kind == 'LDG' else 'stores'}_{size}"] += 1
        found["async_copies"] += kind == "LDGSTS"
        found["local_loads"] += kind == "LDL"
        found["local_stores"] += kind == "STL"
        found["barriers"] += kind == "BAR"
    names = ("loads_16", "loads_narrow", "stores_16", "stores_narrow", "async_copies")
    more = ("local_loads", "local_stores", "barriers", "instructions")
    return {name: found[name] for name in names + more}


def loads_first(sass: str) -> int:
    """Loads that are requested before the first instruction that waits for one."""
    pending = found = 0
    for name, upper in ENCODED.findall(sass):
        bits = int(upper, 16)
        if bits >> 52 & 63 & pending:
            break
        if name.split(".")[0] == "LDG":
            found += 1
            pending |= 1 << (bits >> 46 & 7)
    return found


def buffers(ttgir: str) -> int:
    """Tiles of each tensor that a loop loads ahead; 0 if it loads none."""
    return min(map(int, BUFFERS.findall(ttgir)), default=0)


def fitting(registers: int, warps: int, shared: int) -> dict[str, int]:
    """How many programs an SM holds at once, by each resource and by the scarcest."""
    portion = -(-registers * WARP // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
    held = -(-warps // WARPS_AT_ONCE) * WARPS_AT_ONCE
    some = REGISTERS // portion // WARPS_AT_ONCE * WARPS_AT_ONCE
    taken = -(-(shared + SHARED_OWN) // 128) * 128
    found = {
        "by_registers": some // held,
        "by_warps": min(PROGRAMS, WARPS // held),
        "by_shared": SHARED // taken if shared <= SHARED_MOST else 0,
    }
    return {**found, "programs": min(found.values())}


def tool() -> Path:
    """The disassembler that came with Triton, whose assembler stands beside it."""
    spec = importlib.util.find_spec("triton")
    if spec is None:
        raise RecordError("Triton is not installed: nothing to compile with")
    folder = Path(spec.origin).parent / "backends" / "nvidia" / "bin"
    for name in ("ptxas", "cuobjdump"):
        if not (folder / name).is_file():
            raise RecordError(
                f"this Triton has no {name}: only its wheels for Linux bring the "
                "assembler that compiles for a GPU"
            )
    return folder / "cuobjdump"


def _resources(kernel) -> dict:
    """Resources of a compiled kernel, per thread or per program."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        texts = [
            subprocess.run(
                [tool(), option, file.name], capture_output=True, text=True, check=True
            ).stdout
            for option in ("--dump-resource-usage", "--dump-sass")
        ]
    registers, stack = map(int, USAGE.search(texts[0]).groups())
    made = kernel.metadata
    return {
        "warps": made.num_warps,
        "stages": made.num_stages,
        "registers": registers,
        "stack": stack,
        "shared": made.shared,
        **counts(texts[1]),
        "loads_first": loads_first(texts[1]),
        "buffers": buffers(kernel.asm["ttgir"]),
        **fitting(registers, made.num_warps, made.shared),
    }


# Recording launches -----------------------------------------------------------


class Pointer:
    """What Triton asks of a tensor: its dtype, and where it begins.

    A tensor's memory begins at a multiple of 16, as every allocation of a GPU
    does; a view of it may begin elsewhere.
    """

    def __init__(self, tensor) -> None:
        self.dtype = tensor.dtype
        self.start = tensor.storage_offset() * tensor.element_size()

    def data_ptr(self) -> int:
        return self.start


class Device:
    """Triton's driver as far as compiling asks it."""

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", CAPABILITY, WARP)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def _chosen(function, kernel) -> dict:
    """The constants of a launch, and the arguments that 16 does not divide."""
    source = kernel.src
    constants, loose = [], []
    for i, parameter in enumerate(function.params):
        name, kind = parameter.name, source.signature[parameter.name]
        if parameter.is_constexpr:
            constants.append(f"{name}={source.constants[(i,)]}")
        elif kind[0] in "*iu" and ["tt.divisibility", 16] not in [
            list(each) for each in source.attrs.get((i,), [])
        ]:
            loose.append(name)
    return {"constants": " ".join(constants), "loose": " ".join(loose)}


@contextmanager
def recording(found: list[dict]) -> Iterator[None]:
    """Launches in here only compile; each kernel's resources come to ``found``."""
    import torch
    from torch._subclasses import FakeTensorMode
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    launch, seen = JITFunction.run, set()
    stood_in = ("get_device_properties", "_exchange_device", "_maybe_exchange_device")
    real = {name: getattr(torch.cuda, name) for name in stood_in}

    def stand_in(value):
        return Pointer(value) if isinstance(value, torch.Tensor) else value

    def run(self, *args, grid, warmup, **options):
        args = map(stand_in, args)
        options = {name: stand_in(value) for name, value in options.items()}
        kernel = launch(self, *args, grid=grid, warmup=True, **options)
        if kernel.hash not in seen:  # the same binary twice is one row
            seen.add(kernel.hash)
            name = {"kernel": self.fn.__name__, "grid": prod(grid)}
            found.append(name | _chosen(self, kernel) | _resources(kernel))

    class Properties:
        multi_processor_count = SMS

    driver.set_active(Device())
    JITFunction.run = run
    torch.cuda.get_device_properties = lambda device=None: Properties
    torch.cuda._exchange_device = torch.cuda._maybe_exchange_device = int
    try:
        with FakeTensorMode():
            yield
    finally:
        JITFunction.run = launch
        for name, function in real.items():
            setattr(torch.cuda, name, function)


def recorded(function: Callable, calls: Sequence[Sequence]) -> list[list[dict]]:
    """What each call of the function launches, in the process in hand."""
    found = []
    for arguments in calls:
        found.append([])
        with recording(found[-1]):
            function(*arguments)
    return found


def launches(function: Callable, calls: Sequence[Sequence]) -> list[list[dict]]:
    """What each call of a module's function launches: a list of kernels a call.

    The function makes its tensors itself, on "cuda", and takes views of them by
    `narrow` or `split`: indexing asks for a real device. Arguments are what JSON
    holds. RecordError where there is nothing to compile with, or when a call fails.
    """
    tool()
    module, name = function.__module__, function.__name__
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TRITON_")}
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "scripts.measure.kernels.compiled", module, name],
            cwd=ROOT,
            env=kept | {"TRITON_CACHE_DIR": cache, "CUDA_VISIBLE_DEVICES": ""},
            input=json.dumps(calls),
            capture_output=True,
            text=True,
        )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise RecordError(f"{module}.{name} did not compile: {lines[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(module: str, name: str) -> None:
    """The process of its own: calls come as JSON, and so do their kernels."""
    function = getattr(importlib.import_module(module), name)
    print(json.dumps(recorded(function, json.load(sys.stdin))))


if __name__ == "__main__":
    main(*sys.argv[1:])
