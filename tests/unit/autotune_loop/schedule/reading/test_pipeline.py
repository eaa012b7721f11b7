"""A schedule that somebody wrote by hand is read as data, and the data make the same code from the plain pipeline."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.directives import (
    AlignStorage,
    ComputeAt,
    ComputeWith,
    FoldStorage,
    Fuse,
    HoistStorage,
    Parallel,
    PartitionLoop,
    Prefetch,
    Rename,
    Reorder,
    ReorderStorage,
    RFactor,
    SpecializeFail,
    Split,
    StoreAt,
    Vectorize,
)
from halide_autotune.autotune_loop.schedule.model import (
    Accessor,
    ByName,
    Clone,
    DimensionList,
    Intermediate,
    Schedule,
    Variable,
    Wrapper,
)
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.reading.pipeline import ReadSchedule, read_schedule
from halide_autotune.autotune_loop.schedule.values import (
    ROOT,
    Expression,
    LoopAlignStrategy,
    LoopLevel,
    Source,
    Stage,
    TailStrategy,
)
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import GeneratorReference, parse_generator
from halide_autotune.targets.generator.run import (
    AutoschedulerRequest,
    GeneratedFiles,
    GeneratorFailure,
    GeneratorFailureReason,
    GeneratorRequest,
    run_generator,
)
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.schedule.pipeline_schedule import read_pipeline
from halide_autotune.targets.schedule.plugins import replay_autoscheduler, schedule_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

pytestmark = pytest.mark.toolchain

GENERATORS = Path(__file__).parent / "generators"
EXPERT = GENERATORS / "expert.cpp"
TARGET = "x86-64-linux-avx-avx2-f16c-fma-sse41-no_runtime"
LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)


@pytest.fixture(scope="module")
def expert(halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings) -> ReadSchedule:
    return read(parse_generator(str(EXPERT)), halide, cpp_compiler, settings)


def read(
    reference: GeneratorReference, halide: HalideInstall, compiler: HostCppCompiler, settings: Settings
) -> ReadSchedule:
    with contextlib.closing(open_generator(reference, halide, compiler, settings.environment)) as program:
        read = read_pipeline(Inspected(program, program.names[0], {}, TARGET), compiler)
    return read_schedule(read.scheduled, read.plain)


def directives_of(schedule: Schedule, func: str, *conditions: Expression) -> tuple[object, ...]:
    return tuple(
        directive
        for stage in schedule.stages
        if stage.func == func and stage.conditions == conditions
        for directive in stage.directives
    )


def test_loops_are_splits_in_their_order_then_one_reorder_then_the_types_of_loops(expert: ReadSchedule) -> None:
    output = directives_of(expert.schedule, "output")
    kinds = [type(directive) for directive in output]
    first = kinds.index(Split)
    assert kinds[first:] == [Split, Split, Fuse, Split, Reorder, Vectorize, PartitionLoop, Parallel]
    assert output[first + 4] == Reorder(("x_i_i", "x_i__", "yi", "tile"))


def test_storage_and_levels(expert: ReadSchedule) -> None:
    rows = directives_of(expert.schedule, "rows")
    assert {ComputeAt(LoopLevel("columns", "y")), StoreAt(ROOT), HoistStorage(ROOT), FoldStorage("y", 4)} <= set(rows)
    assert Rename("x", "fast") in rows
    assert any(isinstance(each, Prefetch) and each.source == Source("input") for each in rows)
    assert ReorderStorage(("y", "x")) in directives_of(expert.schedule, "twice")


def test_wrappers_and_clones_are_the_calls_that_made_them(expert: ReadSchedule) -> None:
    made = {func.identifier: func.origin for func in expert.schedule.funcs}
    assert made["rows_clone_in_output_0"] == Clone("rows", ("output",))
    assert made["wide_in_twice_0"] == Wrapper("wide", ("twice",))
    assert made["wide_global_wrapper_1"] == Wrapper("wide", ())
    wrapper = directives_of(expert.schedule, "wide_in_twice_0")
    assert AlignStorage("x", 32) in wrapper
    fused = ComputeWith(Stage("wide_global_wrapper_1"), "y", (("y", LoopAlignStrategy.ALIGN_START),))
    assert fused in wrapper


def test_specializations_have_their_conditions(expert: ReadSchedule) -> None:
    planar = Expression("==", (Expression("input_stride_0"), 1))
    wide = Expression("&&", (planar, Expression(">", (Expression("radius"), 2))))
    assert any(isinstance(each, Split) for each in directives_of(expert.schedule, "columns", wide))
    (failure,) = (each for each in directives_of(expert.schedule, "columns") if isinstance(each, SpecializeFail))
    assert failure.message.text == "The radius is not supported."


def test_variables_without_a_name_are_called_after_what_they_come_from(expert: ReadSchedule) -> None:
    known = {variable.identifier: variable for variable in expert.schedule.variables}
    assert known["v0"] == Variable("v0", False, Accessor("table", None, DimensionList.ARGS, 0))
    assert "v0_i" in known
    assert expert.differences == ()


def test_what_rfactor_made_is_read_as_the_splits_and_the_call(
    halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings
) -> None:
    factored = read(parse_generator(str(GENERATORS / "factored.cpp")), halide, cpp_compiler, settings)
    made = {func.identifier: func.origin for func in factored.schedule.funcs}
    assert made["rows_intm"] == made["histogram_intm"] == Intermediate()
    assert made["histogram_intm_global_wrapper_0"] == Wrapper("histogram_intm", ())
    assert directives_of(factored.schedule, "rows")[:2] == (
        Split("s_x", "so", "si", 8, TailStrategy.GUARD_WITH_IF),
        RFactor((("si", "v"),), "rows_intm"),
    )
    assert RFactor((("r_x", "w"), ("ro", "u")), "histogram_intm") in directives_of(factored.schedule, "histogram")
    # Nothing was split by an extent that is no number.
    assert RFactor((("t_y", "w"),), "brightest_intm") in directives_of(factored.schedule, "brightest")
    assert factored.differences == ()
    assert ByName("f0") in made.values()  # f1 where the generator schedules


@pytest.mark.slow
@pytest.mark.parametrize("generator", ["expert.cpp", "factored.cpp", "stencil_chain.py", "convolution_layer.py"])
def test_what_was_read_gives_the_generators_own_code(
    generator: str,
    examples: Path,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    settings: Settings,
    tmp_path: Path,
) -> None:
    own = GENERATORS / generator
    reference = parse_generator(str(own if own.is_file() else examples / generator))
    schedule = read(reference, halide, cpp_compiler, settings).schedule
    data = tmp_path / "schedule.json"
    data.write_text(print_json(schedule))

    def compiled(folder: str, autoscheduler: AutoschedulerRequest | None) -> bytes:
        with contextlib.closing(open_generator(reference, halide, cpp_compiler, settings.environment)) as program:
            name = program.names[0]
            request = GeneratorRequest(
                name, "f", "f", tmp_path / folder, ("object",), TARGET, autoscheduler=autoscheduler
            )
            result = run_generator(program, request, LIMITS)
        assert isinstance(result, GeneratedFiles), result
        return result.files["object"].read_bytes()

    wanted = compiled("own", None)
    assert compiled("data", replay_autoscheduler(data, cpp_compiler)) == wanted
    header = schedule_autoscheduler(print_header(schedule, "f"), cpp_compiler)
    assert compiled("header", header) == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('["compute_root"]', '["compute_at", "histogram", "xo"]', "invalid location"),
        ('["vectorize", "fast_i"]', '["vectorize", "bin"]', "there is no variable 'bin'"),
        ('["vectorize", "fast_i"]', '["vectorize", "tile"]', "could not find dimension tile"),
        ('"funcs": [', '"funcs": [{"id": "none", "name": "none"}, ', "there is no Func 'none'"),
        ('"stages": [', '"stages": ', "unexpected text"),
    ],
)
def test_what_halide_refuses_comes_back_with_its_sentence(
    before: str,
    after: str,
    sentence: str,
    expert: ReadSchedule,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    settings: Settings,
    tmp_path: Path,
) -> None:
    text = print_json(expert.schedule)
    data = tmp_path / "schedule.json"
    data.write_text(text.replace(before, after))
    assert data.read_text() != text
    reference = parse_generator(str(EXPERT))
    with contextlib.closing(open_generator(reference, halide, cpp_compiler, settings.environment)) as program:
        replay = replay_autoscheduler(data, cpp_compiler)
        request = GeneratorRequest("expert", "f", "f", tmp_path / "o", ("object",), TARGET, autoscheduler=replay)
        result = run_generator(program, request, LIMITS)
    assert isinstance(result, GeneratorFailure)
    assert result.reason is GeneratorFailureReason.INVALID_SCHEDULE
    assert sentence in result.message
