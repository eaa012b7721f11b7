"""Printing and parsing are each other's inverse, for real schedules and for invented ones."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.schedule.as_json import parse_json, print_json
from halide_autotune.autotune_loop.schedule.check import is_identifier
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
    expressions_of,
)
from halide_autotune.autotune_loop.schedule.model import (
    Accessor,
    ByIndex,
    ByName,
    Clone,
    DimensionList,
    Intermediate,
    Parameter,
    Provenance,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Variable,
    Wrapper,
)
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.print_loops import print_loops
from halide_autotune.autotune_loop.schedule.print_python import print_python
from halide_autotune.autotune_loop.schedule.values import (
    BINARY_OPERATORS,
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
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.schedule.header import portable_schedule, schedule_name

FUNCS = ("output", "blur_x", "repeat_edge_1", "f")
VARS = ("x", "y", "xi", "c_vo", "_0")
RVARS = ("r_x", "r_xi")
HALIDE_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_$]{0,8}", fullmatch=True)
SOME_VARIABLES = st.lists(st.sampled_from(VARS + RVARS), min_size=1, max_size=4, unique=True).map(tuple)
VARIABLE = st.sampled_from(VARS + RVARS)
PARAMETERS = (
    Parameter("radius", "radius", "value"),
    Parameter("input_stride_0", "input", "stride.0"),
    Parameter("input_", "input", "buffer"),
)
VALUE = st.sampled_from([Expression("radius"), Expression("input_stride_0")])
# An operator has at least one operand that is not known before the pipeline runs.
EXPRESSION = st.recursive(
    VALUE,
    lambda known: st.one_of(
        st.builds(
            lambda operator, left, right: Expression(operator, (left, right)),
            st.sampled_from((*BINARY_OPERATORS, "min", "max")),
            known,
            known | st.integers(-(2**31), 2**31),
        ),
        st.builds(lambda of: Expression("!", (of,)), known),
        st.builds(lambda a, b, c: Expression("select", (a, b, c)), known, known, known | st.just(7)),
    ),
    max_leaves=6,
)
NUMBER = st.integers(1, 2**31 - 1) | EXPRESSION
TAIL = st.sampled_from(TailStrategy)
LEVEL = st.just(ROOT) | st.builds(LoopLevel, st.sampled_from(FUNCS), st.sampled_from((*VARS, *RVARS, OUTERMOST)))


@st.composite
def tiles(draw: st.DrawFn) -> Tile:
    count = draw(st.integers(1, 3))
    names = [tuple(draw(st.lists(VARIABLE, min_size=count, max_size=count))) for _ in range(3)]
    factors = tuple(draw(st.lists(NUMBER, min_size=count, max_size=count)))
    return Tile(names[0], names[1], names[2], factors, draw(TAIL))


ON_ANY_STAGE: st.SearchStrategy[Directive] = st.one_of(
    st.builds(Split, VARIABLE, VARIABLE, VARIABLE, NUMBER, TAIL),
    tiles(),
    st.builds(Fuse, VARIABLE, VARIABLE, VARIABLE),
    st.builds(Reorder, SOME_VARIABLES),
    st.builds(Reorder, SOME_VARIABLES.map(lambda names: (*names, OUTERMOST))),
    st.builds(Vectorize, VARIABLE),
    st.builds(Unroll, VARIABLE),
    st.builds(Parallel, VARIABLE),
    st.builds(Parallel, VARIABLE, NUMBER, TAIL),
    st.builds(GpuBlocks, SOME_VARIABLES.map(lambda names: names[:3])),
    st.builds(GpuThreads, SOME_VARIABLES.map(lambda names: names[:3])),
    st.builds(GpuThreads, SOME_VARIABLES.map(lambda names: names[:3]), st.sampled_from(DeviceAPI)),
    st.builds(GpuLanes, VARIABLE, st.sampled_from(DeviceAPI)),
    st.builds(Gpu, VARIABLE, VARIABLE),
    st.builds(GpuSingleThread, st.sampled_from(DeviceAPI)),
    st.builds(Hexagon, VARIABLE),
    st.builds(Rename, VARIABLE, VARIABLE),
    st.builds(Serial, VARIABLE),
    st.builds(PartitionLoop, st.sampled_from((*VARS, OUTERMOST)), st.sampled_from(Partition)),
    st.builds(
        Prefetch,
        st.sampled_from(["f", "input_"]).map(Source),
        VARIABLE,
        VARIABLE,
        NUMBER,
        st.sampled_from(PrefetchBoundStrategy),
    ),
    st.builds(
        ComputeWith,
        st.builds(Stage, st.sampled_from(FUNCS), st.none() | st.integers(0, 2)),
        VARIABLE,
        st.lists(st.tuples(VARIABLE, st.sampled_from(LoopAlignStrategy)), max_size=2).map(tuple),
    ),
    st.builds(Atomic, st.booleans()),
    st.just(AllowRaceConditions()),
)
ON_A_FUNC: st.SearchStrategy[Directive] = st.one_of(
    ON_ANY_STAGE,
    st.builds(ComputeAt, LEVEL),
    st.builds(StoreAt, LEVEL),
    st.builds(StoreIn, st.sampled_from(MemoryType)),
    st.builds(HoistStorage, LEVEL),
    st.just(Async()),
    st.just(NoProfiling()),
    st.builds(RingBuffer, NUMBER),
    st.builds(Bound, VARIABLE, st.integers(-4, 4) | EXPRESSION, NUMBER),
    st.builds(BoundExtent, VARIABLE, NUMBER),
    st.builds(AlignBounds, VARIABLE, NUMBER, st.integers(0, 9)),
    st.builds(AlignExtent, VARIABLE, NUMBER),
    st.builds(AlignStorage, VARIABLE, NUMBER),
    st.builds(BoundStorage, VARIABLE, NUMBER),
    st.builds(FoldStorage, VARIABLE, NUMBER, st.booleans()),
    st.builds(ReorderStorage, SOME_VARIABLES),
)
PURE = st.builds(
    StageSchedule, st.sampled_from(FUNCS), st.none(), st.lists(ON_A_FUNC, min_size=1, max_size=6).map(tuple)
)
UPDATE = st.builds(
    lambda func, update, directives, last: StageSchedule(func, update, (*directives, *last)),
    st.sampled_from(FUNCS),
    st.integers(0, 3),
    st.lists(ON_ANY_STAGE, min_size=1, max_size=6),
    st.sampled_from([(), (Unscheduled(),), (SpecializeFail(Text("not for 'planar' input (50 %)")),)]),
)
SPECIALIZED = st.builds(
    StageSchedule,
    st.sampled_from(FUNCS),
    st.none() | st.integers(0, 2),
    st.lists(ON_ANY_STAGE, max_size=3).map(tuple),
    st.lists(EXPRESSION, min_size=1, max_size=2).map(tuple),
)
PROVENANCE = st.builds(
    Provenance,
    st.sampled_from(["Mullapudi2016", "SomethingElse"]),
    st.from_regex(r"[a-z0-9_-]{1,20}", fullmatch=True),
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(lambda key: not key.endswith("_path")),
        st.from_regex(r"[A-Za-z0-9./]{0,8}", fullmatch=True),
        max_size=3,
    ).map(lambda given: tuple(sorted(given.items()))),
)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """A schedule with every directive and every origin; not one that Halide would accept."""
    indexed = draw(st.booleans())
    funcs = [
        ScheduledFunc(name, ByIndex(place) if indexed else ByName(draw(HALIDE_NAMES)))
        for place, name in enumerate(FUNCS)
    ]
    stages = draw(st.lists(PURE | UPDATE | SPECIALIZED, max_size=5))
    consumers = draw(st.sampled_from([(), ("output",), ("output", "blur_x")]))
    if draw(st.booleans()):
        funcs.append(ScheduledFunc("wrapped", Wrapper("f", consumers)))
        stages.append(StageSchedule("wrapped", None, (ComputeAt(ROOT),)))
        funcs.append(ScheduledFunc("cloned", Clone("wrapped", consumers or ("output",))))
    if draw(st.booleans()):
        funcs.append(ScheduledFunc("f_intm", Intermediate()))
        stages.append(StageSchedule("f", 0, (RFactor((("r_x", "x"), ("r_xi", "y")), "f_intm"),)))
        stages.append(StageSchedule("f_intm", 0, (Vectorize("x"),)))
        funcs.append(ScheduledFunc("of_intermediate", Clone("f_intm", ("f",))))
        stages.append(StageSchedule("of_intermediate", None, (Vectorize("x"),)))
    pure_source = HALIDE_NAMES | st.builds(
        Accessor,
        st.sampled_from(FUNCS),
        st.none(),
        st.sampled_from([DimensionList.DIMS, DimensionList.ARGS]),
        st.integers(0, 5),
    )
    reduction_source = HALIDE_NAMES | st.builds(
        Accessor,
        st.sampled_from(FUNCS),
        st.integers(0, 2),
        st.sampled_from([DimensionList.DIMS, DimensionList.RVARS]),
        st.integers(0, 5),
    )
    variables = [Variable(name, False, draw(pure_source)) for name in sorted(VARS)]
    variables += [Variable(name, True, draw(reduction_source)) for name in sorted(RVARS)]
    return Schedule("blur", tuple(funcs), tuple(variables), tuple(stages), draw(st.none() | PROVENANCE), PARAMETERS)


@pytest.mark.toolchain
@settings(max_examples=100, deadline=None)
@given(schedules())
def test_invented_schedules_come_back_from_c_plus_plus(schedule: Schedule) -> None:
    assert parse_schedule(print_header(schedule, "blur")) == schedule
    assert print_loops(schedule).startswith("schedule of blur")


@settings(max_examples=100, deadline=None)
@given(schedules())
def test_invented_schedules_come_back_from_json(schedule: Schedule) -> None:
    text = print_json(schedule)
    assert parse_json(text) == schedule
    assert print_json(parse_json(text)) == text


@settings(max_examples=100, deadline=None)
@given(schedules())
def test_invented_schedules_are_python(schedule: Schedule) -> None:
    """Without what Halide's Python cannot say."""
    with pytest.raises(GeneratorError, match=r"reaches the pipeline's 'radius', which Halide 21's Python lacks"):
        print_python(schedule)
    stages = [
        replace(stage, directives=tuple(d for d in stage.directives if not python_lacks(d)))
        for stage in schedule.stages
        if not stage.conditions
    ]
    plain = replace(schedule, stages=tuple(stage for stage in stages if stage.directives), parameters=())
    compile(print_python(plain), "schedule.py", "exec")


def python_lacks(directive: Directive) -> bool:
    match directive:
        case NoProfiling() | Prefetch(Source("input_")):
            return True
        case _:
            return any(expressions_of(directive))


def test_emitted_headers_come_back(emitted: str) -> None:
    schedule = replace(parse_schedule(emitted), function_name="blur")
    header = print_header(schedule, "blur")
    assert parse_schedule(header) == schedule
    assert print_header(parse_schedule(header), "blur") == header


def test_printed_headers_are_what_the_sdk_ships(emitted: str) -> None:
    header = print_header(parse_schedule(emitted), "tuned")
    assert schedule_name(header) == "tuned"
    assert portable_schedule(header, "tuned") == header
    assert "$" not in re.sub(r'"[^"]*"', "", header)
    identifiers = re.findall(r"^    (?:Func|Var|RVar) (\w+)[ (]", header, re.MULTILINE)
    assert len(identifiers) == len(set(identifiers)) and all(map(is_identifier, identifiers))


def test_what_chance_orders_is_printed_in_one_order() -> None:
    """Anderson2021 declares its serial loops in the order of a hash table."""
    emitted = (Path(__file__).parent / "headers" / "convolution_layer_py0_cuda_anderson1.schedule.h").read_text()
    lines = emitted.splitlines()
    serial = [place for place, line in enumerate(lines) if "_serial_outer(" in line]
    lines[serial[0]], lines[serial[1]] = lines[serial[1]], lines[serial[0]]
    assert "\n".join(lines) != emitted
    assert print_header(parse_schedule("\n".join(lines)), "f") == print_header(parse_schedule(emitted), "f")


@pytest.mark.parametrize("name", ["", "a b", "1a", "for", "a::b", "x); system(", "é"])
def test_a_name_that_is_no_function_is_refused(name: str) -> None:
    with pytest.raises(GeneratorError, match="cannot be the name"):
        print_header(Schedule("f", (), (), ()), name)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule("f\n", (), (), ()),
        Schedule("f", (ScheduledFunc("g;", ByIndex(0)),), (), ()),
        Schedule("f", (ScheduledFunc("g", ByName('x"); evil("')),), (), ()),
        Schedule("f", (), (Variable("x", False, 'x"'),), ()),
        Schedule("f", (), (), (), Provenance("Adams2019\nevil", "host", ())),
        Schedule("f", (), (), (), Provenance("Adams2019", "host\\", ())),
        Schedule("f", (ScheduledFunc("g", ByIndex(0)),), (Variable("g", False, "g"),), ()),
        Schedule("f", (), (Variable("x", False, Accessor("nowhere", None, DimensionList.ARGS, 0)),), ()),
    ],
)
def test_text_that_would_break_out_of_the_header_is_refused(schedule: Schedule) -> None:
    for printed in (lambda: print_header(schedule, "f"), lambda: print_python(schedule), lambda: print_loops(schedule)):
        with pytest.raises(GeneratorError, match="The schedule is invalid"):
            printed()
