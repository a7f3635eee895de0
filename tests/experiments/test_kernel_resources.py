"""Compiled without a GPU: known kernels need what they must, recorded as launched."""

import inspect

import pytest
import torch
import triton
import triton.language as tl

from scripts.experiments import kernel_resources
from scripts.measure.kernels import compiled
from scripts.measure.records import RecordError, find
from snippets.triton_rms_norm import launch as rms_norm_launch
from tests.experiment_checks import draw, select, tiny_record

WAYS = ("forward", "backward")
HELD = 2**17  # float32 numbers: 128 a thread of 1024 threads, which have 64 registers
BLOCK = 4096  # bfloat16: 32 a thread of 128 threads, four times 16 bytes


@triton.jit(do_not_specialize=["rows"])
def known(x, y, rows, stride, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """A sum over rows that begin every `stride` elements."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(0, rows, num_stages=STAGES):
        total += tl.load(x + row * stride + column).to(tl.float32)
    tl.store(y + column, total.to(y.dtype.element_ty))


@triton.jit
def held(x, y, BLOCK: tl.constexpr):
    """Everything is needed again behind the sum."""
    place = tl.arange(0, BLOCK)
    value = tl.load(x + place)
    tl.store(y + place, value - tl.sum(value, axis=0))


def launch(name: str, start: int, stride: int, stages: int) -> None:
    """In the compiling process, on tensors of no memory."""
    dtype = torch.bfloat16 if name == "known" else torch.float32
    x, y = (torch.empty(2 * HELD, dtype=dtype, device="cuda") for _ in "xy")
    if name == "held":
        held[(1,)](x, y, HELD, num_warps=32)
    else:
        known[(3, 5)](
            x.narrow(0, start, HELD), y, 9, stride, BLOCK, STAGES=stages, num_warps=4
        )


CALLS = {
    "plain": ("known", 0, BLOCK, 1),
    "a view of no multiple of 16 bytes": ("known", 1, BLOCK, 1),
    "rows of no multiple of 16": ("known", 0, BLOCK + 8, 1),
    "loads ahead": ("known", 0, BLOCK, 3),
    "one buffer": ("known", 0, BLOCK, 2),
    "too many numbers": ("held", 0, 0, 0),
}


@pytest.fixture(scope="module")
def seen() -> dict[str, dict]:
    """The known kernels' resources, by what is special about a launch."""
    found = compiled.launches(launch, list(CALLS.values()))
    assert [len(kernels) for kernels in found] == [1] * len(CALLS)
    return dict(zip(CALLS, (kernels[0] for kernels in found), strict=True))


# What a launch needs ----------------------------------------------------------


def test_known_loads(seen):
    plain = seen["plain"]
    assert (plain["loads_16"], plain["loads_narrow"], plain["stores_16"]) == (4, 0, 4)
    assert plain["loose"] == "rows" and plain["grid"] == 15
    assert plain["constants"] == f"BLOCK={BLOCK} STAGES=1"
    assert (plain["warps"], plain["stack"], plain["async_copies"]) == (4, 0, 0)
    for name, loose in (
        ("a view of no multiple of 16 bytes", "x rows"),
        ("rows of no multiple of 16", "rows stride"),
    ):
        row = seen[name]
        assert row["loose"] == loose
        assert row["loads_16"] == 0 and row["loads_narrow"] == 32
        assert row["stores_16"] == 4  # y lies where it should


def test_known_copies(seen):
    """Two rows are under way while the third is summed."""
    ahead = seen["loads ahead"]
    assert ahead["async_copies"] >= 4 and ahead["loads_16"] == 0
    assert ahead["shared"] >= 2 * BLOCK * 2 > seen["plain"]["shared"]
    found = {name: seen[name]["buffers"] for name in ("plain", "one buffer")}
    assert found == {"plain": 0, "one buffer": 1} and ahead["buffers"] == 2


def test_known_order(seen):
    """The sum waits for its loads: all are requested, and then it can begin."""
    assert seen["plain"]["loads_first"] == 4
    assert seen["too many numbers"]["loads_first"] > 8


def test_known_spill(seen):
    """128 numbers in 64 registers: the rest lies on the stack, written and read."""
    row = seen["too many numbers"]
    assert row["registers"] == 64 and row["stack"] >= 4 * (128 - 64)
    assert row["local_stores"] > 0 < row["local_loads"]
    assert row["programs"] == row["by_registers"] == 1
    assert all(other["local_loads"] == 0 for other in list(seen.values())[:-1])


SASS = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;    /* 0x00000a00ff017b82 */
                                                             /* 0x000fe20000000800 */
        /*0010*/              @!P0 LDG.E.EF.128 R4, desc[UR4][R2.64] ;  /* 0x0 */
        /*0020*/              @UPT LDG.E.U16 R4, desc[UR4][R2.64] ;     /* 0x0 */
        /*0030*/                   STG.E.64 desc[UR4][R2.64], R4 ;      /* 0x0 */
        /*0040*/                   LDGSTS.E.BYPASS.128 [R7], desc[UR4][R2.64] ;
        /*0050*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0060*/                   LDL.LU R4, [R1+0x4] ;
        /*0070*/              @P12 STL.64 [R1], R4 ;
        /*0080*/                   NOP;
"""


def test_counts():
    assert compiled.counts(SASS) == {
        "loads_16": 1,
        "loads_narrow": 1,
        "stores_16": 0,
        "stores_narrow": 1,
        "async_copies": 1,
        "local_loads": 1,
        "local_stores": 1,
        "barriers": 1,
        "instructions": 8,
    }


ORDER = """
        /*0010*/   LDG.E.128 R4, desc[UR4][R2.64] ;   /* 0x0000000402047981 */
                                                      /* 0x000ea2000c1e1d00 */
        /*0020*/   @!P0 LDG.E R5, desc[UR4][R2.64] ;  /* 0x0000000402057981 */
                                                      /* 0x000ee2000c1e1900 */
        /*0030*/   IADD3 R6, R6, 0x1, RZ ;            /* 0x0000000106067810 */
                                                      /* 0x001fe20007ffe0ff */
        /*0040*/   FADD R4, R4, R4 ;                  /* 0x0000000404047221 */
                                                      /* 0x004fe20000000000 */
        /*0050*/   LDG.E R5, desc[UR4][R2.64] ;       /* 0x0000000402057981 */
                                                      /* 0x000ee2000c1e1900 */
"""


def test_loads_before_the_first_wait():
    """The IADD3 waits for a barrier that no load has set, the FADD for the first's."""
    assert compiled.loads_first(ORDER) == 2
    assert compiled.loads_first(ORDER.replace("0x001fe2", "0x004fe2")) == 2
    early = ORDER.replace("0x000ee2000c1e1900", "0x004ee2000c1e1900", 1)
    assert compiled.loads_first(early) == 1


def idle(rows) -> list[str]:
    """Walks over whole rows in which memory waits for the arithmetic.

    That is: no tile is on its way beside the one that is worked on, and no second
    program is on the SM.
    """
    walks = [r for r in rows if r["main"] and r["kernel"].endswith("_backward")]
    assert walks
    return [
        f"{row['kernel']} {row['width']} {row['dtype']}"
        for row in walks
        if row["buffers"] < 2 and row["programs"] < 2
    ]


def test_versions_are_not_counted_among_the_operators_launches():
    record = find("kernel_resources")[0]
    versions = [row for row in record.rows if row["kernel"] == "one_row"]
    for name in ("in_pieces", "add_two_programs"):
        versions += record.select(operation=f"{name}_forward")
    found = kernel_resources.facts(record)
    assert versions and int(found["launches"]) == len(record.rows) - len(versions)
    assert found["one_row_forward_4096_per_element"] != "0"


def test_walks_load_ahead():
    record = find("kernel_resources")[0]
    assert not idle(record.select())


def test_at_32768_columns_two_programs_share_an_sm_or_spill_for_it():
    found = {
        row["operation"].removesuffix("_forward"): (row["programs"], row["stack"])
        for row in find("kernel_resources")[0].select(width=32_768, dtype="bfloat16")
        if row["main"] and "forward" in row["operation"]
    }
    assert found["rms_norm"][0] == found["layer_norm"][0] == 2
    assert max(found["rms_norm"][1], found["layer_norm"][1]) <= 16
    assert found["add_rms_norm"] == (1, 0)
    programs, spilled = found["add_two_programs"]
    assert programs == 2 and spilled > 100


def test_a_walk_with_one_buffer_is_seen(rows, seen):
    """As 8193 to 16384 columns were launched: two stages, which are one buffer."""
    (walk,) = (r for r in rows if r["main"] and r["kernel"] == "rms_norm_backward")
    alone = {**walk, "programs": 1}
    assert not idle([alone])
    for name in ("one buffer", "plain"):
        assert idle([{**alone, "buffers": seen[name]["buffers"]}])


@pytest.mark.parametrize(
    ("registers", "warps", "shared", "wanted"),
    [
        (32, 4, 0, (16, 16, 16)),  # all 64 warps
        (33, 4, 0, (12, 16, 12)),  # 40 registers are given instead of 33
        (64, 8, 0, (4, 8, 4)),
        (255, 8, 0, (1, 8, 1)),
        (64, 32, 0, (1, 2, 1)),
        (65, 32, 0, (0, 2, 0)),  # cannot be launched
        (16, 1, 0, (32, 16, 16)),  # a program takes four warps' worth
        (32, 4, 100 * 1024, (16, 16, 2)),
        (32, 4, 113 * 1024, (16, 16, 2)),
        (32, 4, 114 * 1024, (16, 16, 1)),
        (32, 4, 227 * 1024, (16, 16, 1)),
        (32, 4, 227 * 1024 + 1, (16, 16, 0)),
    ],
)
def test_fitting(registers, warps, shared, wanted):
    """By hand, from the limits of an SM of compute capability 9.0."""
    found = compiled.fitting(registers, warps, shared)
    shown = (found["by_registers"], found["by_warps"], found["programs"])
    assert shown == wanted


# As launched ------------------------------------------------------------------


def interpreted(function) -> list[dict]:
    """Kernel, constants and warps of each launch in the interpreter."""
    from triton.runtime.interpreter import InterpretedFunction

    found, run = [], InterpretedFunction.run

    def noted(self, *args, grid, warmup, **options):
        signature = inspect.signature(self.fn)
        given = {k: v for k, v in options.items() if k in signature.parameters}
        bound = signature.bind(*args, **given)
        bound.apply_defaults()
        constants = [
            f"{name}={bound.arguments[name]}"
            for name, parameter in signature.parameters.items()
            if parameter.annotation is tl.constexpr
        ]
        found.append(
            {
                "kernel": self.__name__,
                "constants": " ".join(constants),
                "warps": options.get("num_warps", 4),
            }
        )
        return run(self, *args, grid=grid, warmup=warmup, **options)

    InterpretedFunction.run = noted
    try:
        function()
    finally:
        InterpretedFunction.run = run
    return found


def norm() -> None:
    """The tiny rows' norm, forward and backward, as its readers call it."""
    from snippets.triton_rms_norm.operator import rms_norm

    x, gain = (torch.randn(*rows, 128).requires_grad_() for rows in ((640,), ()))
    rms_norm(x.bfloat16(), gain.bfloat16()).sum().backward()


def test_recorded_as_launched(rows, known_wrong, monkeypatch):
    # More partial sums than the interpreter has: a device's launch depends on that.
    monkeypatch.setattr(rms_norm_launch, "programs", lambda *_: 20)
    wanted = interpreted(norm)

    def same(chosen):
        names = ("kernel", "constants", "warps")
        assert [{name: row[name] for name in names} for row in chosen] == wanted

    same(rows)

    def half_the_warps():
        return [{**row, "warps": row["warps"] // 2} for row in rows]

    def constants_of_another_width():
        return [{**r, "constants": r["constants"].replace("128", "64")} for r in rows]

    def no_second_kernel():
        return rows[:1]

    for wrong in (half_the_warps, constants_of_another_width, no_second_kernel):
        known_wrong.rejected_by([lambda variant: same(variant())], wrong)


def test_tests_run_the_interpreter_and_the_child_does_not(rows):
    """Under TRITON_INTERPRET nothing compiles: the child must not inherit it."""
    assert triton.knobs.runtime.interpret
    assert all(row["registers"] > 0 and row["instructions"] > 0 for row in rows)


def test_no_assembler(monkeypatch, tmp_path):
    """Wheels for other systems: one line that says what is missing."""

    class Spec:
        origin = str(tmp_path / "__init__.py")

    with monkeypatch.context() as patch, pytest.raises(RecordError, match="no ptxas"):
        patch.setattr(compiled.importlib.util, "find_spec", lambda name: Spec)
        compiled.launches(launch, [])
    with monkeypatch.context() as patch, pytest.raises(RecordError, match="Triton is"):
        patch.setattr(compiled.importlib.util, "find_spec", lambda name: None)
        compiled.launches(launch, [])


def test_a_process_that_fails_is_one_line(monkeypatch):
    monkeypatch.setattr(launch, "__module__", "tests.nowhere")
    with pytest.raises(RecordError, match="did not compile: ModuleNotFound") as found:
        compiled.launches(launch, [])
    assert "\n" not in str(found.value)


def cluster(ctas: int) -> None:
    """One row of 65536 columns by several SMs."""
    from snippets.triton_rms_norm.forward import rms_norm_forward

    width = 65_536
    x, gain = (torch.empty(width, dtype=torch.float32, device="cuda") for _ in "xg")
    rms_norm_forward[(1,)](
        x, gain, x, gain, 1, 1, width, 0, 16, 1e-6, width, 1, width,
        num_warps=16, num_ctas=ctas,
    )  # fmt: skip


@pytest.mark.slow
def test_clusters_are_refused():
    """The page says so; if this fails, the widest rows have another way out."""
    with pytest.raises(RecordError, match=r"cluster did not compile: .*PassManager"):
        compiled.launches(cluster, [[2]])


# The experiment ---------------------------------------------------------------


def test_rows(rows):
    assert [row["operation"] for row in rows if row["main"]] == [
        "rms_norm_forward",
        "rms_norm_backward",
    ]
    assert len(rows) == 3
    for row in rows:
        assert row["programs"] > 0
        assert row["loads_16"] + row["async_copies"] > 0


def test_steps():
    small, full = (kernel_resources.measure(size) for size in ("small", "full"))
    cells = [repr(step.cell) for step in small]
    assert cells == [repr(step.cell) for step in full]
    assert len(set(cells)) == len(cells)
    kinds = {"rms_norm", "layer_norm", "add_rms_norm", "qk_norm_rope", "soft_cap"}
    assert {step.cell["family"] for step in small} > kinds
    assert kernel_resources.operations("soft_cap") == [
        "soft_cap_forward",
        "soft_cap_backward",
    ]


def made_up(rows):
    """Both norms, forward and backward, at three widths: numbers one can tell."""
    (row,) = select(rows, operation="rms_norm_forward", main=True)
    operations = [f"{n}_norm_{w}" for n in ("rms", "layer") for w in WAYS]
    return [
        {
            **row,
            "operation": operation,
            "kernel": operation + ("_wide" if width == 16384 else ""),
            "constants": f"WIDTH={width} ROWS=1 COLUMNS={width}",
            "width": width,
            "dtype": dtype,
            "stack": 8 if width == 1024 and operation.startswith("layer") else 0,
            "warps": 4,
            "registers": 100 if dtype == "bfloat16" else 50,
            "instructions": width // 4,
        }
        for operation in operations
        for dtype in kernel_resources.DTYPES
        for width in (128, 1024, 16384)
    ]


def test_facts_say_what_the_rows_say(rows):
    record = tiny_record("kernel_resources", made_up(rows), kernel_resources.SEEDS)
    facts = kernel_resources.facts(record)
    expected = {
        "launches": "24",
        "spilled": "4",
        "most_stack": "8",
        "most_stack_kernel": "layer_norm_forward",
        "most_stack_width": "1024",
        "rms_norm_forward_128_registers": "100",
        "rms_norm_forward_fp32_128_registers": "50",
        "rms_norm_forward_1024_per_element": "32",
        "layer_norm_backward_1024_stack": "8",
        "layer_norm_forward_first_spill": "1024",
        "rms_norm_forward_first_spill": "–",
        "rms_norm_forward_whole": "1024",
        "soft_cap_forward_whole": "–",
    }
    assert {name: facts[name] for name in expected} == expected
    halves = {**rows[0], "operation": "qk_norm_rope_forward", "instructions": 64}
    halves["constants"] = "HALF=64 ROWS=32 COLUMNS=64"
    assert kernel_resources._per_element(halves) == 2
    assert "rms_norm_backward_1024_per_element" not in facts  # it has a loop


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(rows, lang):
    record = tiny_record("kernel_resources", made_up(rows), kernel_resources.SEEDS)
    figure = draw(kernel_resources, record, lang)
    for axis in figure.axes[:2]:  # registers, and the most that there are
        lines = [list(line.get_ydata()) for line in axis.lines]
        assert lines[0] == [100] * 3 and lines[-1] == [255] * 3
        assert (lines[1], lines[2]) == ([100] * 2, [100])  # the widest one hollow
    for axis in figure.axes[2:]:
        assert list(axis.lines[0].get_ydata()) == [0] * 3
        assert list(axis.lines[3].get_ydata()) == [0, 8, 0]
    figure.draw_without_rendering()
