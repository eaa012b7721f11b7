"""A pipeline is described as it is, at its estimates: what its stages loop over, and what they read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.pipeline.shape import (
    PipelineShape,
    ReadDimension,
    ReadShape,
    describe_pipeline,
    read_shape,
)
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.unit.targets.pipeline.conftest import TARGET, OpenProgram

pytestmark = pytest.mark.toolchain

Describe = Callable[..., PipelineShape | GeneratorFailure]


@pytest.fixture(scope="module")
def describe(open_program: OpenProgram, cpp_compiler: HostCppCompiler) -> Describe:
    """Describes a generator's pipeline by its file's name, the estimates that are given and its parameters."""
    plugin = build_preparation_plugin(cpp_compiler)

    def describe(
        file_name: str, given: dict[str, str] | None = None, target: str = TARGET, **parameters: str
    ) -> PipelineShape | GeneratorFailure:
        program = open_program(file_name)
        inspected = Inspected(program, program.names[0], parameters, target)
        return describe_pipeline(inspected, PipelinePreparation(plugin, given or {}), cpp_compiler)

    return describe


@pytest.fixture(scope="module")
def products(describe: Describe) -> Callable[[str], PipelineShape]:
    """Products of values of one sign and of both, as they are described for a target."""

    def described(target: str) -> PipelineShape:
        shape = describe("products.cpp", target=target)
        assert isinstance(shape, PipelineShape), shape
        return shape

    return described


@pytest.fixture(scope="module")
def stages(describe: Describe) -> PipelineShape:
    shape = describe("shapes.cpp", way="stages")
    assert isinstance(shape, PipelineShape), shape
    return shape


@pytest.fixture(scope="module")
def updates(describe: Describe) -> PipelineShape:
    shape = describe("shapes.cpp", way="updates")
    assert isinstance(shape, PipelineShape), shape
    return shape


def read(shape: PipelineShape, func: str, name: str, stage: int = 0) -> ReadShape:
    (found,) = (each for each in shape.by_name[func].stages[stage].reads if each.name == name)
    return found


def test_loops_whose_number_chooses_between_values_are_told(describe: Describe) -> None:
    shape = describe("shapes.cpp", way="cases")
    assert isinstance(shape, PipelineShape), shape
    cases = {func.name: func.stages[0].cases for func in shape.funcs}
    assert cases["chosen"] == ("y",) and cases["compared"] == ("x", "y")
    assert not cases["ranged"], "most of its iterations compute the same"
    assert not cases["other"] and not cases["output"]


def test_the_funcs_come_producers_first_with_what_is_needed_of_them(stages: PipelineShape) -> None:
    extents = {func.name: func.extents for func in stages.funcs}
    assert extents == {
        "input_im": (37, 33),
        "blur": (34, 32),
        "half": (17, 16),
        "places_im": (256,),
        "table": (256,),
        "looked_up": (32, 32),
        "output": (32, 32),
    }
    for func in stages.funcs:
        of_it = [each.name for stage in func.stages for each in stage.reads if not each.is_input]
        assert all(stages.index[name] < stages.index[func.name] for name in of_it)
    assert [func.name for func in stages.funcs if func.is_output] == ["output"]
    assert stages.by_name["half"].points == 17 * 16


def test_the_targets_vectors_and_the_funcs_values_have_their_sizes(
    stages: PipelineShape, updates: PipelineShape
) -> None:
    assert stages.vector_bytes == 32
    sizes = {func.name: (func.value_bytes, func.narrowest_bytes, func.stages[0].has_floats) for func in stages.funcs}
    assert sizes["input_im"] == (1, 1, False)
    assert sizes["blur"] == (2, 2, False)
    assert sizes["output"] == (4, 4, True)
    pair = updates.by_name["pair"]
    assert (pair.value_bytes, pair.narrowest_bytes, pair.stages[0].has_floats) == (5, 1, True), (
        "a tuple's elements together"
    )


def test_a_stencil_is_as_wide_as_its_furthest_points(stages: PipelineShape) -> None:
    stencil = read(stages, "blur", "input_im")
    assert stencil.places == 3 and not stencil.is_input and not stencil.is_of_one_point
    assert stencil.dimensions == (ReadDimension({"x": 192}, 4), ReadDimension({"y": 192}, 2))
    assert stencil.dimensions[0].follows("x") and not stencil.dimensions[0].follows("y")


def test_slopes_are_of_192_steps_so_that_halves_are_whole(stages: PipelineShape) -> None:
    down = read(stages, "half", "blur")
    assert down.dimensions == (ReadDimension({"x": 384}, 2), ReadDimension({"y": 384}, 2))
    up = read(stages, "output", "half")
    assert up.dimensions == (ReadDimension({"x": 96}, 2), ReadDimension({"y": 96}, 1))
    assert up.places == 2 and not up.dimensions[0].follows("x")
    assert up.halved_loops == ("x", "y") and not down.halved_loops


def test_a_transposed_read_is_of_one_point_of_the_other_loops(stages: PipelineShape) -> None:
    transposed = read(stages, "output", "looked_up")
    assert [dict(each.slopes or {}) for each in transposed.dimensions] == [{"y": 192}, {"x": 192}]
    assert transposed.is_of_one_point


def test_an_index_that_data_decide_has_neither_slope_nor_width(stages: PipelineShape) -> None:
    looked_up = read(stages, "looked_up", "table")
    assert looked_up.dimensions == (ReadDimension(None, None),) and not looked_up.is_of_one_point
    assert read(stages, "looked_up", "blur").is_of_one_point, "the index's own read"


def test_inputs_are_told_from_funcs(stages: PipelineShape) -> None:
    assert read(stages, "input_im", "input").is_input
    assert not read(stages, "table", "places_im").is_input


def test_only_what_an_output_promises_is_bounded(stages: PipelineShape, updates: PipelineShape) -> None:
    assert {func.name: func.bounded for func in stages.funcs if func.bounded} == {"output": ("x",)}
    assert not any(func.bounded for func in updates.funcs)


def test_loops_are_told_by_whether_their_order_counts(updates: PipelineShape) -> None:
    kinds = {
        func.name: [(loop.name, loop.kind, loop.extent) for loop in func.stages[1].loops]
        for func in updates.funcs
        if len(func.stages) > 1
    }
    assert kinds == {
        "filled": [("f$x", "free", 8), ("x", "pure", 32)],
        "histogram": [("r$x", "ordered", 64), ("r$y", "ordered", 48)],
        "total": [("d$x", "ordered", 9), ("x", "pure", 32)],
        "running": [("t$x", "ordered", 31), ("x", "pure", 32)],
    }
    for func in updates.funcs:
        assert all(loop.is_reduction == (loop.name not in func.args) for stage in func.stages for loop in stage.loops)


def test_an_extent_that_callers_give_is_known_but_not_constant(updates: PipelineShape) -> None:
    loops = [loop for func in updates.funcs for stage in func.stages for loop in stage.loops]
    assert {loop.name for loop in loops if loop.is_constant} == {"f$x", "r$x", "r$y", "t$x"}


def test_what_can_be_merged_is_associative(updates: PipelineShape) -> None:
    told = {func.name: func.stages[1].is_associative for func in updates.funcs if len(func.stages) > 1}
    assert told == {"filled": False, "histogram": True, "total": True, "running": False}
    assert not any(func.stages[0].is_associative for func in updates.funcs)


def test_a_stage_that_reads_itself_says_so_and_not_as_a_read(updates: PipelineShape) -> None:
    reading = {func.name: [stage.reads_itself for stage in func.stages] for func in updates.funcs if func.stages[1:]}
    assert reading == {name: [False, name != "filled"] for name in ("filled", "histogram", "total", "running")}
    for func in updates.funcs:
        assert all(each.name != func.name for stage in func.stages for each in stage.reads)


def test_what_is_read_again_at_the_same_place_is_one_place(updates: PipelineShape) -> None:
    assert read(updates, "output", "pair").places == 1, "two elements of one tuple"
    assert read(updates, "histogram", "input_im", 1).places == 1, "an index on both sides"
    assert read(updates, "histogram", "input_im", 1).is_of_one_point


def test_the_longer_definition_has_more_operations(stages: PipelineShape) -> None:
    operations = {func.name: func.stages[0].operations for func in stages.funcs}
    assert operations["blur"] > operations["half"] > operations["table"] > 0


def test_estimates_that_are_given_win(describe: Describe) -> None:
    shape = describe("shapes.cpp", {"#0": "128x64"}, way="stages")
    assert isinstance(shape, PipelineShape)
    assert shape.by_name["output"].extents[1] == 64
    assert shape.by_name["half"].extents == (65, 32)


def test_a_schedule_of_its_own_is_not_in_the_way(describe: Describe) -> None:
    """It is the pipeline without its schedule that is described: the same with and without."""
    assert describe("scheduled.cpp", way="loops") == describe("scheduled.cpp", way="none")


def test_an_extern_stage_has_no_loops_and_reads_what_it_is_given(describe: Describe) -> None:
    shape = describe("shapes.cpp", way="extern")
    assert isinstance(shape, PipelineShape), shape
    (stage,) = shape.by_name["foreign"].stages
    unknown = ReadDimension(None, None)
    assert stage.loops == () and read(shape, "foreign", "before").dimensions == (unknown, unknown)
    assert {func.name for func in shape.funcs if func.is_extern} >= {"before", "foreign"}
    assert not shape.by_name["output"].is_extern


def test_a_generator_that_fails_is_a_failure(describe: Describe) -> None:
    failure = describe("shapes.cpp", way="stages", unknown="1")
    assert isinstance(failure, GeneratorFailure) and "unknown" in failure.message


def test_a_damaged_description_is_refused(stages: PipelineShape, tmp_path: Path) -> None:
    file = tmp_path / "shape.json"
    file.write_text('{"vector_bytes": 32, "funcs": [{"name": "f"}]}')
    with pytest.raises(GeneratorError):
        read_shape(file)


def test_what_riscv_multiplies_wrongly_in_vectors_is_told(products: Callable[[str], PipelineShape]) -> None:
    def wrong(target: str) -> dict[str, list[tuple[bool, bool]]]:
        shape = products(target)
        narrow = {func.name for func in shape.funcs if func.is_narrow}
        assert narrow & {"widened", "wider_yet", "signed_sum"} == (
            {"widened", "wider_yet"} if "rvv" in target else set()
        )
        return {
            func.name: [(stage.is_wrong_in_vectors, stage.is_wrong_if_inlined) for stage in func.stages]
            for func in shape.funcs
            if any(stage.is_wrong_if_inlined for stage in func.stages)
        }

    assert wrong("riscv-64-linux-rvv-vector_bits_128-no_runtime") == {
        "signed_sum": [(True, True)],
        "wider": [(True, True)],
        "of_widened": [(False, True)],
        "of_both": [(False, True)],
        "total": [(False, False), (True, True)],
    }
    assert wrong(TARGET) == wrong("arm-64-linux-no_runtime") == {}, "they are right there"


def test_how_many_values_hvx_must_have_in_a_vector_is_told(products: Callable[[str], PipelineShape]) -> None:
    def least(target: str) -> dict[str, list[int]]:
        shape = products(target)
        return {func.name: [stage.least_lanes for stage in func.stages] for func in shape.funcs}

    of_hvx = least("hexagon-32-noos-hvx-hvx_128-hvx_v66-no_runtime")
    assert of_hvx["signed_sum"] == [128], "of bytes"
    assert of_hvx["of_widened"] == [64] and of_hvx["of_both"] == [32], "of what others have widened"
    assert of_hvx["total"] == [32, 128]
    assert {lanes for stages in least(TARGET).values() for lanes in stages} == {1}
