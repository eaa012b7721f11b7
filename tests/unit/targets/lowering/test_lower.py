"""Schedules are lowered without generating code: the loop nests are what they say, and what is refused is told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import (
    GeneratedFiles,
    GeneratorFailure,
    GeneratorFailureReason,
    GeneratorRequest,
    run_generator,
)
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.lowering.loop_nest import Access, Computation, Loop, LoopNest
from halide_autotune.targets.lowering.lower import Lowered, Refused, described, lower_schedules, read_nest
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.schedule.plugins import replay_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

pytestmark = pytest.mark.toolchain

WIDTH, HEIGHT, CHANNELS = 256, 128, 3
PARAMETERS = {"width": str(WIDTH), "height": str(HEIGHT)}
TARGET = "x86-64-linux-sse41-avx-avx2-no_runtime"
Lower = Callable[..., list[LoopNest | Refused] | GeneratorFailure]
LowerSource = Callable[[str, str, str], LoopNest]


@pytest.fixture(scope="module", params=["cpp", "py"])
def program(
    request: pytest.FixtureRequest,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    settings: Settings,
    examples: Path,
) -> Iterator[GeneratorProgram]:
    """The separable filter, in whatever language it is."""
    reference = parse_generator(str(examples / f"separable_filter.{request.param}"))
    opened = open_generator(reference, halide, cpp_compiler, settings.environment)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def lower(program: GeneratorProgram, cpp_compiler: HostCppCompiler) -> Lower:
    """Lowers schedules of it."""
    preparation = PipelinePreparation(build_preparation_plugin(cpp_compiler))

    def lowered(
        schedules: Sequence[str], *, limit_s: float = 60.0, time_s: float = 240.0, target: str = TARGET
    ) -> list[LoopNest | Refused] | GeneratorFailure:
        inspected = Inspected(program, program.names[0], PARAMETERS, target, ProcessLimits(time_s, 8 * 2**30))
        found = lower_schedules(inspected, preparation, schedules, limit_s, cpp_compiler)
        if isinstance(found, GeneratorFailure):
            return found
        assert found.duration_s > 0
        return [*found.nests]

    return lowered


def schedule(**calls: list[list[Any]]) -> str:
    """Of these Funcs, by name; the variables are x, y, c and what splits name."""
    made = {str(part) for of in calls.values() for call in of if call[0] == "split" for part in call[2:4]}
    return json.dumps(
        {
            "function_name": "separable_filter",
            "provenance": None,
            "funcs": [{"id": name, "name": name} for name in calls],
            "parameters": [],
            "variables": [{"id": name, "reduction": False, "name": name} for name in ("x", "y", "c", *sorted(made))],
            "stages": [{"func": name, "update": None, "if": [], "do": of} for name, of in calls.items()],
        }
    )


ROWS = schedule(
    output=[["split", "x", "xo", "xi", 32], ["vectorize", "xi"], ["parallel", "y"]],
    columns=[["compute_at", "output", "y"], ["split", "x", "xo", "xi", 16], ["vectorize", "xi"]],
)
# Each row of the output computes one of the columns; the first ones of a strip are for those that follow.
SLIDING = schedule(
    output=[["split", "y", "yo", "yi", 32], ["split", "x", "xo", "xi", 32], ["reorder", ["xi", "xo", "yi", "yo", "c"]]],
    columns=[["compute_at", "output", "yi"], ["store_root"]],
    repeat_edge=[["compute_at", "output", "yi"], ["store_at", "output", "yo"]],
)
AT_ROOT = schedule(columns=[["compute_root"]])


@pytest.fixture
def lower_source(
    tmp_path: Path, halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings
) -> LowerSource:
    """Lowers a schedule of a generator, by its name and what its file says."""

    def lowered(name: str, source: str, text: str) -> LoopNest:
        (tmp_path / f"{name}.py").write_text(source)
        reference = parse_generator(str(tmp_path / f"{name}.py"))
        with contextlib.closing(open_generator(reference, halide, cpp_compiler, settings.environment)) as program:
            inspected = Inspected(program, name, {}, TARGET, ProcessLimits(240.0, 8 * 2**30))
            preparation = PipelinePreparation(build_preparation_plugin(cpp_compiler))
            found = lower_schedules(inspected, preparation, [text], 60.0, cpp_compiler)
        assert isinstance(found, Lowered), found
        (nest,) = found.nests
        assert isinstance(nest, LoopNest), nest
        return nest

    return lowered


def nest_of(lower: Lower, text: str) -> LoopNest:
    found = lower([text])
    assert isinstance(found, list), found
    (nest,) = found
    assert isinstance(nest, LoopNest), nest
    return nest


def loops_in(loop: Loop) -> list[Loop]:
    return [loop, *(each for inside in loop.loops for each in loops_in(inside))]


def computed(loop: Loop, func: str) -> list[Computation]:
    return [each for inside in loops_in(loop) for each in inside.computations if each.func == func]


def accesses(loop: Loop, func: str, buffer: str) -> list[Access]:
    return [each for of in computed(loop, func) for each in of.accesses if each.buffer == buffer]


def test_loops_are_as_long_as_the_estimates_say(lower: Lower) -> None:
    nest = nest_of(lower, ROWS)
    assert (nest.vector_bytes, nest.root.kind, nest.root.extent) == (32, "root", 1)
    parallel = [each for each in loops_in(nest.root) if each.kind == "parallel"]
    assert {(each.func, each.extent) for each in parallel} == {("output", HEIGHT)}
    stores = accesses(nest.root, "output", "output")
    assert {(each.lanes, each.lane_stride, each.element_bytes, each.is_store) for each in stores} == {(32, 1, 1, True)}


def stored(loop: Loop, buffer: str, times: float = 1.0) -> float:
    """How many elements of a buffer are written."""
    assert loop.extent is not None
    times *= loop.extent
    accesses = [each for of in loop.computations for each in of.accesses if each.is_store and each.buffer == buffer]
    inside = sum(stored(each, buffer, times) for each in loop.loops)
    return inside + times * sum(each.count * each.lanes for each in accesses)


@pytest.mark.parametrize("text", [ROWS, SLIDING], ids=["rows", "sliding"])
def test_a_nest_that_is_written_in_passing_is_the_same_and_the_code_is_too(
    lower: Lower, program: GeneratorProgram, cpp_compiler: HostCppCompiler, tmp_path: Path, text: str
) -> None:
    data, nest_path = tmp_path / "schedule.json", tmp_path / "schedule.nest"
    data.write_text(text)
    preparation = PipelinePreparation(build_preparation_plugin(cpp_compiler))
    replay = replay_autoscheduler(data, cpp_compiler)
    codes = []
    for name, choice in {"plain": replay, "described": described(replay, nest_path, cpp_compiler)}.items():
        (tmp_path / name).mkdir()
        request = GeneratorRequest(
            generator_name=program.names[0],
            function_name="filter",
            base_name="filter",
            output_folder=tmp_path / name,
            emit=("object",),
            halide_target=TARGET,
            parameters=PARAMETERS,
            autoscheduler=preparation.before(choice),
        )
        made = run_generator(program, request, ProcessLimits(240.0, 8 * 2**30))
        assert isinstance(made, GeneratedFiles), made
        codes.append(made.files["object"].read_bytes())
    assert codes[0] == codes[1]
    assert read_nest(nest_path) == nest_of(lower, text)


@pytest.mark.parametrize("text", [ROWS, SLIDING, AT_ROOT], ids=["rows", "sliding", "root"])
def test_the_whole_output_is_written(lower: Lower, text: str) -> None:
    """Some loops write nothing at first, to have what they need; what a condition leaves out counts as left out."""
    assert stored(nest_of(lower, text).root, "output") == pytest.approx(WIDTH * HEIGHT * CHANNELS, rel=0.05)


def test_a_branch_has_a_share_of_the_iterations(lower: Lower) -> None:
    branches = [each for each in loops_in(nest_of(lower, SLIDING).root) if each.kind == "branch"]
    assert branches and all(each.extent is not None and 0 < each.extent < 1 for each in branches)


def test_an_access_moves_with_the_loops_around_it(lower: Lower) -> None:
    (channel,) = nest_of(lower, ROWS).root.loops
    (store,) = accesses(channel, "output", "output")
    # The channels, the rows, and vectors of 32 in a row.
    assert store.strides is not None and [*store.strides] == [WIDTH * HEIGHT, WIDTH, 32]
    columns = accesses(channel, "columns", "columns")
    assert (0, 0, 16) in {each.strides for each in columns if each.is_store}, "a row's memory is the same in each row"


def test_copies_lie_as_the_loop_that_is_unrolled_went(lower: Lower) -> None:
    """Two vectors in each of four rows."""
    block: list[list[Any]] = [
        ["split", "x", "xo", "xi", 64],
        ["split", "xi", "xu", "xv", 32],
        ["split", "y", "yo", "yi", 4],
    ]
    order: list[list[Any]] = [
        ["reorder", ["xv", "xu", "yi", "xo", "yo", "c"]],
        ["vectorize", "xv"],
        ["unroll", "xu"],
        ["unroll", "yi"],
    ]
    # More than one: at the edges of the picture the loops are others.
    stores = accesses(nest_of(lower, schedule(output=[*block, *order])).root, "output", "output")
    assert {(each.count, each.copies) for each in stores} == {(8, ((32, 2), (WIDTH, 4)))}
    assert (WIDTH * HEIGHT, 4 * WIDTH, 64) in {each.strides for each in stores}


def test_copies_lie_as_the_taps_of_a_stencil(lower: Lower) -> None:
    """A filter of seven taps along a row, and one of seven rows."""
    root = nest_of(lower, ROWS).root
    assert ((1, 7),) in {each.copies for each in accesses(root, "output", "columns")}
    assert ((WIDTH, 7),) in {each.copies for each in accesses(root, "columns", "input")}


def test_the_first_iteration_of_a_strip_computes_what_those_after_it_find_again(lower: Lower) -> None:
    """Strips of 32 rows, eight at a time: the first ones need three rows more on each side."""
    text = schedule(
        output=[
            ["split", "y", "yo", "yi", 32],
            ["split", "yi", "yio", "yii", 8],
            ["reorder", ["x", "yii", "yio", "yo", "c"]],
        ],
        columns=[["compute_at", "output", "yio"]],
        repeat_edge=[["compute_at", "output", "yio"], ["store_at", "output", "yo"]],
    )
    root = nest_of(lower, text).root
    strips = HEIGHT // 32 * CHANNELS
    assert stored(root, "repeat_edge") == pytest.approx(strips * (32 + 6) * (WIDTH + 6), rel=0.02)
    assert stored(root, "columns") == strips * 32 * (WIDTH + 6)


GRAY = """
import halide as hl

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")


@hl.generator(name="tinted")
class Tinted(hl.Generator):
    input = hl.InputBuffer(hl.UInt(8), 3)
    output = hl.OutputBuffer(hl.UInt(8), 3)

    def generate(self):
        gray = hl.Func("gray")
        gray[x, y] = hl.u8((hl.u16(self.input[x, y, 0]) + hl.u16(self.input[x, y, 1])) / 2)
        self.output[x, y, c] = gray[x, y] - self.input[x, y, c]
        self.input.set_estimates([(0, 256), (0, 128), (0, 3)])
        self.output.set_estimates([(0, 256), (0, 128), (0, 3)])
"""


@pytest.mark.parametrize("unrolled", [[], [["unroll", "y"]]], ids=["a loop", "unrolled"])
def test_what_only_the_first_iteration_of_a_loop_computes_counts_as_often(
    lower_source: LowerSource, unrolled: list[list[Any]]
) -> None:
    """Each row's gray values are computed with its first channel, and found again by the others."""
    text = schedule(
        output=[["reorder", ["x", "c", "y"]]],
        gray=[["compute_at", "output", "c"], ["store_at", "output", "y"], *unrolled],
    )
    nest = lower_source("tinted", GRAY, text)
    assert stored(nest.root, "gray") == pytest.approx(WIDTH * HEIGHT)
    assert stored(nest.root, "output") == WIDTH * HEIGHT * CHANNELS


LEVELS = """
import halide as hl

x, y, level = hl.Var("x"), hl.Var("y"), hl.Var("level")


@hl.generator(name="levels")
class Levels(hl.Generator):
    input = hl.InputBuffer(hl.UInt(8), 2)
    curve = hl.InputBuffer(hl.Int(32), 1)
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self):
        count, row = hl.Func("count"), hl.RDom([(0, 256)])
        count[level, y] = hl.u32(0)
        count[hl.i32(self.input[row.x, y]), y] += hl.u32(1)
        bent = self.curve[hl.clamp(self.curve[self.input[x, y]], 10, 40)]
        few = self.curve[self.input[x, y] / 16] + self.curve[self.input[x, y] % 8]
        two = self.curve[hl.select(self.input[x, y] > 9, 7, 200)]
        self.output[x, y] = hl.u8(count[hl.clamp(bent, 0, 31), y] + hl.u32(few + two))
        self.input.set_estimates([(0, 256), (0, 128)])
        self.curve.set_estimates([(0, 256)])
        self.output.set_estimates([(0, 256), (0, 128)])
"""


def test_what_data_decide_is_told_with_its_bounds_and_what_loops_add(lower_source: LowerSource) -> None:
    """The bins of histograms of rows, eight at once; and look-ups by a pixel, a part of it and what is clamped."""
    whole: list[list[Any]] = [["compute_root"], ["reorder_storage", ["y", "level"]]]
    text = json.loads(schedule(output=[["split", "x", "xo", "xi", 8], ["vectorize", "xi"]], count=whole))
    text["variables"] += [{"id": name, "reduction": False, "name": name} for name in ("level", "yo", "yi")]
    rows = [["split", "y", "yo", "yi", 8], ["reorder", ["yi", "yo"]], ["vectorize", "yi"]]
    text["stages"].append({"func": "count", "update": 0, "if": [], "do": rows})
    nest = lower_source("levels", LEVELS, json.dumps(text))
    bins = accesses(nest.root, "count", "count")
    # Of the update, for each eight rows and each pixel: lanes side by side, and bins that are a picture's height apart.
    update = [((8, 0), ((1, 8), (HEIGHT, 256)))] * 2
    assert [(each.strides, each.spread) for each in bins if each.lane_stride is None] == update
    looked_up = accesses(nest.root, "output", "curve") + accesses(nest.root, "output", "count")
    assert {(each.buffer, each.strides, each.spread[-1]) for each in looked_up} == {
        ("curve", (0, 0), (1, 256)),
        ("curve", (0, 0), (1, 31)),
        ("curve", (0, 0), (1, 16)),
        ("curve", (0, 0), (1, 8)),
        ("curve", (0, 0), (193, 2)),
        ("count", (1, 0), (HEIGHT, 32)),
    }


def test_memory_is_where_it_is_taken(lower: Lower) -> None:
    rows, whole = (nest_of(lower, each).root for each in (ROWS, AT_ROOT))
    (row,) = (each for loop in loops_in(rows) for each in loop.allocations)
    assert row.buffer == "columns" and row.bytes is not None
    assert 2 * (WIDTH + 6) <= row.bytes <= 2 * (WIDTH + 6 + 32), "a row with its borders, in vectors"
    (all_of_it,) = whole.allocations
    assert all_of_it.bytes == 2 * (WIDTH + 6) * HEIGHT * CHANNELS and not all_of_it.is_constant


def test_what_is_inlined_is_computed_again(lower: Lower) -> None:
    apart, inlined = (nest_of(lower, text).root for text in (AT_ROOT, schedule(output=[])))

    def additions(root: Loop) -> float:
        return max(each.operations.get("int_add", 0.0) for each in computed(root, "output"))

    assert additions(inlined) > 4 * additions(apart)
    assert not computed(inlined, "columns")


def test_vectors_are_counted_by_the_targets_width(lower: Lower) -> None:
    narrow = lower([ROWS], target=TARGET.replace("-avx-avx2", ""))
    assert isinstance(narrow, list) and isinstance(narrow[0], LoopNest)
    assert narrow[0].vector_bytes == 16

    def casts(nest: LoopNest) -> float:
        return max(each.operations.get("int_cast", 0.0) for each in computed(nest.root, "output"))

    assert casts(narrow[0]) == 2 * casts(nest_of(lower, ROWS)) > 0


def test_each_of_many_is_lowered_or_told(lower: Lower) -> None:
    """What is refused, or takes too long, costs the others nothing."""
    refused = schedule(output=[["vectorize", "nothing"]])
    endless = schedule(output=[["split", "x", "xo", "xi", 200000], ["unroll", "xi"]])
    found = lower([ROWS, refused, endless, "{", AT_ROOT], limit_s=2.0)
    assert isinstance(found, list), found
    assert [type(each) for each in found] == [LoopNest, Refused, Refused, Refused, LoopNest]
    messages = [each.message for each in found if isinstance(each, Refused)]
    assert "nothing" in messages[0]
    assert messages[1] == "Lowering takes longer than 2 s."
    assert "unexpected text at character" in messages[2]
    assert found[0] == nest_of(lower, ROWS) and found[4] == nest_of(lower, AT_ROOT)


def test_where_the_generator_does_not_end_there_is_no_nest(lower: Lower) -> None:
    found = lower([ROWS], time_s=0.01)
    assert isinstance(found, GeneratorFailure)
    assert found.reason is GeneratorFailureReason.TIMED_OUT


@pytest.mark.parametrize(
    ("target", "vector_bytes"),
    [
        ("arm-64-linux-no_runtime", 16),
        ("arm-32-linux-no_runtime", 16),
        ("riscv-64-linux-rvv-vector_bits_128-no_runtime", 16),
        ("hexagon-32-noos-hvx-hvx_v66-no_runtime", 128),
    ],
)
def test_every_processor_has_the_same_loops_in_vectors_of_its_own(lower: Lower, target: str, vector_bytes: int) -> None:
    (here,), (there,) = lower([ROWS]), lower([ROWS], target=target)  # type: ignore[misc]  # a failure does not unpack
    assert isinstance(here, LoopNest) and isinstance(there, LoopNest)
    assert there.vector_bytes == vector_bytes

    def loops(loop: Loop) -> list[tuple[str, str, float | None]]:
        return [(loop.name, loop.kind, loop.extent), *(each for inside in loop.loops for each in loops(inside))]

    assert loops(there.root) == loops(here.root)


def test_the_loops_of_a_card_are_blocks_and_threads(lower: Lower) -> None:
    tiled = schedule(
        output=[
            ["split", "x", "xo", "xi", 32],
            ["split", "y", "yo", "yi", 8],
            ["reorder", ["xi", "yi", "xo", "yo", "c"]],
            ["gpu_blocks", "xo"],
            ["gpu_blocks", "yo"],
            ["gpu_threads", "xi"],
            ["gpu_threads", "yi"],
        ],
        columns=[["compute_at", "output", "xo"]],
    )
    # A failure does not unpack.
    (nest,) = lower([tiled], target=f"{TARGET}-cuda-cuda_capability_70")  # type: ignore[misc]
    assert isinstance(nest, LoopNest), nest
    kinds: dict[str, float] = {}

    def walk(loop: Loop) -> None:
        kinds[loop.kind] = kinds.get(loop.kind, 1.0) * (loop.extent or 1.0)
        for inside in loop.loops:
            walk(inside)

    walk(nest.root)
    assert kinds["gpu_block"] == (WIDTH // 32) * (HEIGHT // 8)
    assert kinds["gpu_thread"] >= 32 * 8
