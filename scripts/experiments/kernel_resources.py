"""What this site's kernels need of an SM, compiled for an H100 or H200 (sm_90).

Every kernel is compiled at the launches that its operator chooses, by Triton's own
compiler and assembler for compute capability 9.0, which needs no GPU. A row is one
kernel of one call: the operator's launch in columns `kernel` to `stages`, then
registers and stack bytes a thread (what does not fit into registers lies on the
stack, in memory), shared memory in bytes, instructions of each kind in the whole
program, loops counted once, `loads_first` of them before the first wait for a load,
`buffers` that a loop fills with each tensor that it loads ahead, and how many
programs an SM can hold by registers, by warps and by shared memory. `loose` names
arguments whose multiples of 16 the compiler does not know. The first kernel of a call
is its `main` one. Beside the operators' kernels stand VERSIONS: the first RMSNorm
kernel, the one for wide rows at a width whose rows an operator holds whole, and the
addition with its norm held to the registers with which two programs fit an SM.
"""

from functools import partial

from scripts.measure.design import Design
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

DEVICE = "cpu"
SEEDS = ()
METHOD = (
    "compiled for compute capability 9.0 by Triton's compiler and assembler at the "
    "launches that the operators choose on a device of 132 SMs; registers and stack "
    "as the assembler reports them, instructions counted in the disassembled binary; "
    "nothing ran"
)
WIDTHS = (128, 1024, 2048, 4096, 5000, 8192, 16384, 32768, 65536, 131072)
ROWS = {128: 262_144}  # queries of 8192 tokens; 16384 rows of the other widths
TOKENS, HEADS, KEYS = (4, 4096), 32, 8  # grouped queries, as on the page
DTYPES = ("bfloat16", "float32")
NORMS = ("rms_norm", "layer_norm", "add_rms_norm")
MIXES = ("1r1w", "2r1w", "2r2w", "3r1w")
DRAWN = [(norm, dtype) for dtype in DTYPES for norm in NORMS[:2]]
POWERS = tuple(width for width in WIDTHS if width != 5000)  # what is drawn
TICKS = (128, 2048, 32768)
SHOWN = (  # columns that are facts
    *("registers", "stack", "programs", "loads_16", "loads_narrow"),
    *("loads_first", "async_copies", "buffers"),
)
ANY = 4096  # the width of what does not depend on it
VERSIONS = {
    "one_row": (4096, 32_768, 65_536),
    "in_pieces": (65_536,),
    "add_two_programs": (32_768,),
}
FAMILIES = {  # name, in front of _forward and _backward: widths
    **dict.fromkeys(NORMS, WIDTHS),
    "qk_norm_rope": (128,),
    "soft_cap": (ANY,),
    "stream": (ANY,),
    **VERSIONS,
}
EPS = 1e-6


# Calls, in the process that compiles ------------------------------------------


def _operator(operator):
    """What an operator runs on a GPU, without its rules for tensors of no memory."""
    return operator.__wrapped__


def _norm(operation: str, width: int, dtype) -> None:
    import torch

    from snippets.fused_residual import operator as added
    from snippets.triton_layer_norm import operator as layer
    from snippets.triton_rms_norm import operator as rms

    rows = ROWS.get(width, 16_384)
    x, dy, other = (torch.empty(rows, width, dtype=dtype, device="cuda") for _ in "xdo")
    gain, bias = (torch.empty(width, dtype=dtype, device="cuda") for _ in "gb")
    mean, rstd = (torch.empty(rows, device="cuda") for _ in "mr")
    operator, *arguments = {
        "rms_norm_forward": (rms.rms_norm_op, x, gain, EPS),
        "rms_norm_backward": (rms.rms_norm_backward_op, dy, x, gain, rstd),
        "layer_norm_forward": (layer.layer_norm_op, x, gain, bias, EPS),
        "layer_norm_backward": (layer.layer_norm_backward_op, dy, x, gain, mean, rstd),
        "add_rms_norm_forward": (added.add_rms_norm_op, x, other, gain, EPS),
        "add_rms_norm_backward": (
            added.add_rms_norm_backward_op, dy, other, x, gain, rstd,
        ),
    }[operation]  # fmt: skip
    _operator(operator)(*arguments)


def _heads(operation: str, width: int, dtype) -> None:
    import torch

    from snippets.qk_norm_rope import operator

    packed = torch.empty(*TOKENS, HEADS + 2 * KEYS, width, dtype=dtype, device="cuda")
    queries = packed.narrow(2, 0, HEADS)
    gain = torch.empty(width, dtype=dtype, device="cuda")
    tables = (torch.empty(TOKENS[1], width // 2, device="cuda") for _ in "cs")
    if operation.endswith("forward"):
        _operator(operator.qk_norm_rope_op)(queries, gain, *tables, EPS)
        return
    rstd = torch.empty(queries.shape[:-1].numel(), device="cuda")
    dy = torch.empty(queries.shape, dtype=dtype, device="cuda")
    _operator(operator.qk_norm_rope_backward_op)(dy, queries, gain, *tables, rstd)


def _cap(operation: str, width: int, dtype) -> None:
    import torch

    from snippets.memory_bound.soft_cap import soft_cap_backward, soft_cap_op

    x = torch.empty(16_384, width, dtype=dtype, device="cuda")
    if operation.endswith("forward"):
        _operator(soft_cap_op)(x, 30.0)
    else:
        _operator(soft_cap_backward)(x, x, 30.0)


def _stream(operation: str, width: int, dtype) -> None:
    import torch

    from snippets.memory_bound.streams import BLOCK, add_streams

    reads, writes = int(operation[-4]), int(operation[-2])
    x = torch.empty(16_384 * width, dtype=dtype, device="cuda")
    add_streams[(len(x) // BLOCK,)](
        *[x] * 5, len(x), READS=reads, WRITES=writes, BLOCK=BLOCK
    )


def _version(operation: str, width: int, dtype) -> None:
    import torch

    from snippets.fused_residual.kernels import add_rms_norm_forward
    from snippets.triton_rms_norm import forward, launch, rows
    from snippets.triton_rms_norm.one_row import one_row

    x, y = (torch.empty(16_384, width, dtype=dtype, device="cuda") for _ in "xy")
    gain = torch.empty(width, dtype=dtype, device="cuda")
    rstd = torch.empty(len(x), device="cuda")
    if operation.startswith("one_row"):
        warps = launch.tile(width)["num_warps"]
        one_row[(len(x),)](x, gain, y, EPS, width, width, num_warps=warps)
        return
    layout = rows.row_layout(x)[1:]
    if operation.startswith("add"):
        shape = launch.tile(width) | {"maxnreg": 32}
        add_rms_norm_forward[(len(x),)](
            x, x, gain, y, y, rstd, len(x), width, width, layout[-1], EPS, width,
            **shape,
        )  # fmt: skip
        return
    forward.rms_norm_forward_wide[(len(x),)](
        x, gain, y, rstd, *layout, EPS, width, launch.PIECE, num_warps=16
    )


def call(operation: str, width: int, dtype: str) -> None:
    """One operation at one shape, on tensors of no memory."""
    import torch

    kinds = {"qk_norm_rope": _heads, "soft_cap": _cap, "stream": _stream}
    kinds |= dict.fromkeys(VERSIONS, _version)
    made = next((kinds[kind] for kind in kinds if operation.startswith(kind)), _norm)
    made(operation, width, getattr(torch, dtype))


def operations(family: str) -> list[str]:
    """What is compiled together: both directions, or every mix of streams."""
    ways = MIXES if family == "stream" else ("forward", "backward")
    ways = ways[:1] if family in VERSIONS else ways
    return [f"{family}_{way}" for way in ways]


def run(family: str, widths, dtype: str) -> list[dict]:
    """A family at every width: a row a kernel."""
    from scripts.measure.kernels import compiled

    calls = [(o, width, dtype) for o in operations(family) for width in widths]
    found = compiled.launches(call, calls)
    return [
        {
            "operation": operation,
            "width": width,
            "dtype": dtype,
            "main": i == 0,
            **kernel,
        }
        for (operation, width, _), kernels in zip(calls, found, strict=True)
        for i, kernel in enumerate(kernels)
    ]


def measure(size: str) -> list[Step]:
    """One step is one family of operations in one dtype: one compiling process."""
    from scripts.measure.kernels import compiled

    compiled.tool()  # or one line that says what is missing
    tiny = size == "tiny"
    families = {"rms_norm": (128,)} if tiny else FAMILIES
    return [
        Step(
            {"family": family, "dtype": dtype},
            partial(run, family, widths, dtype),
            cost=3 + len(widths) * len(operations(family)),
        )
        for family, widths in families.items()
        for dtype in DTYPES[: 1 if tiny or family in VERSIONS else None]
    ]


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(
    says=("none",),
    arms=tuple(FAMILIES),
    **design_words(__file__),
)


# What the page says -------------------------------------------------------


def _name(row: dict, what: str) -> str:
    """The prefix of a row's facts: bfloat16 goes without saying."""
    dtype = "" if row["dtype"] == "bfloat16" else "fp32_"
    return f"{what}_{dtype}{row['width']}"


def _per_element(row: dict) -> float:
    """Instructions an element that a program holds, padding included; no loops."""
    pairs = (each.split("=") for each in row["constants"].split())
    held = {name: int(value) for name, value in pairs if value.isdigit()}
    elements = held.get("BLOCK") or held.get("ROWS", 1) * held["COLUMNS"]
    elements *= 2 if "HALF" in held else 1  # two tiles, one for each half of a head
    return row["instructions"] * 32 * row["warps"] / elements


def _whole(row: dict) -> bool:
    """Whether the program holds what it reads, and reads it once."""
    return not row["kernel"].endswith("_wide")


def facts(record) -> dict[str, str]:
    versions = [name for each in VERSIONS for name in operations(each)]
    rows = [row for row in record.rows if row["operation"] not in versions]
    most = max(rows, key=lambda row: row["stack"])
    found = {
        "triton": record.provenance["versions"].get("triton", "unknown"),
        "launches": str(len(rows)),
        "spilled": str(sum(row["stack"] > 0 for row in rows)),
        "most_stack": str(most["stack"]),
        "most_stack_kernel": most["kernel"],
        "most_stack_width": str(most["width"]),
    }
    for row in record.rows:
        of = "" if row["main"] else f"_{row['kernel']}"
        start = _name(row, row["operation"] + of)
        found |= {f"{start}_{name}": str(row[name]) for name in SHOWN}
        if row["main"] and _whole(row) and "backward" not in row["operation"]:
            found[f"{start}_per_element"] = f"{_per_element(row):.0f}"
    for operation in (name for family in FAMILIES for name in operations(family)):
        mains = record.select(operation=operation, dtype="bfloat16", main=True)
        whole = [row["width"] for row in mains if _whole(row)]
        spills = [row["width"] for row in mains if row["stack"]]
        stacks = [row["stack"] for row in mains]
        found[f"{operation}_whole"] = str(max(whole, default="–"))
        found[f"{operation}_first_spill"] = str(min(spills, default="–"))
        found[f"{operation}_most_stack"] = str(max(stacks, default="–"))
    return found


WORDS = figure_words(__file__)


def _line(axis, rows: list[dict], what: str, drawn: dict) -> None:
    """One line against width; hollow markers where a row is read in pieces."""
    whole = [row for row in rows if _whole(row)]
    pieces = [row for row in rows if not _whole(row)]

    def points(of):
        return [row["width"] for row in of], [row[what] for row in of]

    plain = {**drawn, "marker": "none"}
    bare = {**drawn, "linestyle": "none", "label": "_"}
    axis.plot(*points(rows), **plain)
    axis.plot(*points(whole), **bare)
    axis.plot(*points(pieces), **bare, markerfacecolor="none", markeredgewidth=1.3)


def plot(record, words):
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from scripts.measure import figures
    from scripts.measure.kernels.compiled import REGISTERS, WARP

    figure, axes = figures.new_figure(
        words, record, rows=2, columns=2, height=6.4, sharex=True, sharey="row"
    )
    grey = dict(
        color=figures.MUTED, linewidth=1.2, linestyle=figures.LINES[2], marker="none"
    )
    drawn = [{**figures.style(i), "markersize": 4.5} for i in range(len(DRAWN))]
    for column, way in zip(axes.T, ("forward", "backward"), strict=True):
        most = {}
        for (norm, dtype), style in zip(DRAWN, drawn, strict=True):
            rows = record.select(operation=f"{norm}_{way}", dtype=dtype, main=True)
            rows = [row for row in rows if row["width"] in POWERS]
            for row in rows:
                most[row["width"]] = min(255, REGISTERS // WARP // row["warps"])
            for axis, what in zip(column, ("registers", "stack"), strict=True):
                _line(axis, rows, what, style)
        column[0].plot(list(most), list(most.values()), **grey)
        column[0].set_title(words[way])
        column[1].set_xlabel(words["width"])
    for axis, what in zip(axes[:, 0], ("registers", "stack"), strict=True):
        axis.set_ylabel(words[what])
        axis.set_ylim(bottom=0)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_locator(FixedLocator(TICKS))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0f}"))
    labels = [words[f"{norm}_{dtype}"] for norm, dtype in DRAWN] + [words["limit"]]
    figures.legend(figure, [Line2D([], [], **each) for each in (*drawn, grey)], labels)
    figures.footer(figure, record, words, words["band"])
    return figure
