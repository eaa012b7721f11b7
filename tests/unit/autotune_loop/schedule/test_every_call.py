"""Every scheduling call that a schedule can have is one that Halide's C++ has."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from halide_autotune.autotune_loop.schedule.directives import (
    AlignBounds,
    AlignExtent,
    AlignStorage,
    AllowRaceConditions,
    Async,
    Atomic,
    Bound,
    BoundExtent,
    BoundStorage,
    ComputeAt,
    ComputeWith,
    Directive,
    FoldStorage,
    Fuse,
    Gpu,
    GpuBlocks,
    GpuLanes,
    GpuSingleThread,
    GpuThreads,
    Hexagon,
    HoistStorage,
    NoProfiling,
    Parallel,
    PartitionLoop,
    Prefetch,
    Rename,
    Reorder,
    ReorderStorage,
    RFactor,
    RingBuffer,
    Serial,
    SpecializeFail,
    Split,
    StoreAt,
    StoreIn,
    Tile,
    Unroll,
    Unscheduled,
    Vectorize,
)
from halide_autotune.autotune_loop.schedule.model import (
    ByName,
    Clone,
    Intermediate,
    Parameter,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Variable,
    Wrapper,
)
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.values import (
    OUTERMOST,
    ROOT,
    DeviceAPI,
    Expression,
    LoopAlignStrategy,
    LoopLevel,
    MemoryType,
    Partition,
    PrefetchBoundStrategy,
    Source,
    Stage,
    TailStrategy,
    Text,
)
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

RADIUS = Expression("radius")
PLANAR = Expression("&&", (Expression("==", (Expression("stride"), 1)), Expression("!", (Expression("flag"),))))
LARGE = Expression(">", (Expression("select", (Expression("<", (RADIUS, 2)), Expression("min", (RADIUS, 1)), 4)), 0))
OF_FUNC: tuple[Directive, ...] = (
    ComputeAt(ROOT),
    ComputeAt(LoopLevel("g", "x")),
    StoreAt(ROOT),
    StoreAt(LoopLevel("g", "r")),
    HoistStorage(ROOT),
    HoistStorage(LoopLevel("g", OUTERMOST)),
    StoreIn(MemoryType.STACK),
    Async(),
    RingBuffer(2),
    NoProfiling(),
    Bound("x", 0, RADIUS),
    BoundExtent("x", 3),
    AlignBounds("x", 2, 1),
    AlignExtent("x", 2),
    AlignStorage("x", 8),
    BoundStorage("x", 8),
    FoldStorage("x", 3),
    FoldStorage("x", 3, fold_forward=False),
    ReorderStorage(("x", "y")),
)
OF_STAGE: tuple[Directive, ...] = (
    Split("x", "xo", "xi", Expression("+", (RADIUS, 1)), TailStrategy.GUARD_WITH_IF),
    Tile(("x", "y"), ("xo", "yo"), ("xi", "yi"), (4, RADIUS)),
    Fuse("x", "y", "xo"),
    Rename("x", "xo"),
    Reorder(("x", "y", OUTERMOST)),
    Vectorize("x"),
    Unroll("x"),
    Parallel("x"),
    Parallel("x", 4, TailStrategy.GUARD_WITH_IF),
    Serial("x"),
    PartitionLoop("x", Partition.NEVER),
    GpuBlocks(("x", "y"), DeviceAPI.CUDA),
    GpuThreads(("x",)),
    GpuLanes("x", DeviceAPI.CUDA),
    Gpu("x", "y"),
    GpuSingleThread(),
    Hexagon("x"),
    Prefetch(Source("input"), "x", "x", 2),
    Prefetch(Source("g"), "x", "x", 2, PrefetchBoundStrategy.NON_FAULTING),
    ComputeWith(Stage("g"), "x"),
    ComputeWith(Stage("g", 1), "x", (("x", LoopAlignStrategy.ALIGN_END),)),
    Atomic(),
    Atomic(override_associativity_test=True),
    AllowRaceConditions(),
    SpecializeFail(Text("not for this input")),
)
EVERYTHING = Schedule(
    "everything",
    (
        ScheduledFunc("f", ByName("f")),
        ScheduledFunc("g", ByName("g")),
        ScheduledFunc("f_in", Wrapper("f", ())),
        ScheduledFunc("f_in_g", Wrapper("f", ("g",))),
        ScheduledFunc("f_in_both", Wrapper("f", ("g", "f_in"))),
        ScheduledFunc("g_clone", Clone("g", ("f", "f_in"))),
        ScheduledFunc("partial", Intermediate()),
        ScheduledFunc("partial_in_f", Wrapper("partial", ("f",))),
    ),
    (*(Variable(name, False, name) for name in ("u", "x", "xi", "xo", "y", "yi", "yo")), Variable("r", True, "r$x")),
    (
        StageSchedule("f", None, (Vectorize("x"),), (PLANAR, LARGE)),
        StageSchedule("f", 1, (), (PLANAR,)),
        StageSchedule("f", None, (*OF_FUNC, *OF_STAGE)),
        StageSchedule("f", 2, (Unscheduled(),)),
        StageSchedule("f", 0, (RFactor((("r", "u"),), "partial"),)),
        StageSchedule("partial_in_f", None, (ComputeAt(ROOT),)),
    ),
    None,
    (
        Parameter("flag", "flag", "value"),
        Parameter("input", "input", "buffer"),
        Parameter("radius", "radius", "value"),
        Parameter("stride", "input", "stride.0"),
    ),
)


def test_no_call_is_forgotten() -> None:
    used = {type(directive) for stage in EVERYTHING.stages for directive in stage.directives}
    assert used == set(get_args(Directive))


@pytest.mark.slow
@pytest.mark.toolchain
def test_a_header_with_every_call_compiles(cpp_compiler: HostCppCompiler, tmp_path: Path) -> None:
    (tmp_path / "everything.h").write_text(print_header(EVERYTHING, "everything"))
    source = tmp_path / "everything.cpp"
    source.write_text(
        '#include "everything.h"\nvoid (*use)(Halide::Pipeline, Halide::Target) = apply_schedule_everything;\n'
    )
    assert cpp_compiler.build_plugin(source).is_file()
