"""Sketches of pipelines of several kinds are schedules that Halide takes, and have what each kind asks for."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import sdk
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.repair import repair
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.schedule.apply import apply_schedule
from halide_autotune.autotune_loop.schedule.directives import ReorderStorage, Split
from halide_autotune.autotune_loop.schedule.model import Clone, Intermediate
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel, TailStrategy
from halide_autotune.autotune_loop.sketches.sketches import sketches
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorRequest, run_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.pipeline.estimates import EstimateOptions
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.pipeline.shape import describe_pipeline
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.drafted_pipelines import for_target, func, loop, pipeline, read, recorded, stage

pytestmark = pytest.mark.toolchain

TARGET = "x86-64-linux-sse41-avx-avx2-fma-no_runtime"
KINDS = Path(__file__).parent / "generators" / "kinds.cpp"
LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
Named = Callable[[str], PipelineNames]


@pytest.fixture(scope="module")
def program(halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings) -> Iterator[GeneratorProgram]:
    opened = open_generator(parse_generator(f"{KINDS}:stencils"), halide, cpp_compiler, settings.environment)
    with contextlib.closing(opened):
        yield opened


@pytest.fixture(scope="module")
def named(program: GeneratorProgram, cpp_compiler: HostCppCompiler) -> Named:
    """The names of a generator's pipeline."""

    def get(generator: str) -> PipelineNames:
        preparation = PipelinePreparation(build_preparation_plugin(cpp_compiler))
        shape = describe_pipeline(Inspected(program, generator, {}, TARGET), preparation, cpp_compiler)
        assert not isinstance(shape, GeneratorFailure), shape.message
        return PipelineNames(shape)

    return get


def by_name(names: PipelineNames) -> dict[str, Draft]:
    return {sketch.name: sketch.draft for sketch in sketches(names, cores=2)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "generator",
    "stencils bins mosaic patches phases planes product pyramid scan slices spread statistics tones versions".split(),
)
def test_every_sketch_is_taken(
    generator: str,
    program: GeneratorProgram,
    named: Named,
    cpp_compiler: HostCppCompiler,
    cache: ContentCache,
    tmp_path: Path,
) -> None:
    names = named(generator)
    found = tuple(sketches(names, cores=2))
    assert 4 <= len(found) <= 16
    for sketch in found:
        schedule = schedule_of(sketch.draft, names, generator)
        request = GeneratorRequest(
            generator_name=generator,
            function_name=generator,
            base_name=generator,
            output_folder=tmp_path,
            emit=("object",),
            halide_target=TARGET,
            parameters={},
            autoscheduler=PipelinePreparation(build_preparation_plugin(cpp_compiler)).before(
                apply_schedule(schedule, cpp_compiler, cache)
            ),
        )
        result = run_generator(program, request, LIMITS)
        assert not isinstance(result, GeneratorFailure), f"{sketch.name}: {result.message}"


def test_sketches_differ_and_are_whole(named: Named) -> None:
    names = named("stencils")
    found = tuple(sketches(names, cores=2))
    assert len({sketch.name for sketch in found}) == len(found)
    assert all(one.draft != other.draft for one in found for other in found if one is not other)
    assert all(repair(sketch.draft, names) == sketch.draft for sketch in found)


def test_windows_slide_in_strips(named: Named) -> None:
    across = by_name(named("stencils"))["rows"].funcs["across"]
    assert across.compute is not None
    assert across.store is not None
    assert across.compute.func == across.store.func == "output"
    assert across.stages[0].kinds[across.stages[0].order[0]] is LoopKind.VECTORIZED


def test_where_few_rows_need_something_new_a_task_has_all_of_it_at_once(named: Named) -> None:
    rows = by_name(named("enlarged"))["rows"]
    coarse, output = rows.funcs["coarse"], rows.funcs["output"]
    assert coarse.compute is not None and coarse.compute.func == "output" and coarse.store is None
    assert output.stages[0].kinds[coarse.compute.variable or ""] is LoopKind.PARALLEL


@pytest.mark.parametrize(("cores", "high", "rows"), [(2, 1, 32), (8, 1, 12), (64, 1, 8), (8, 3, 32)])
def test_tasks_are_small_where_rows_are_few_unless_they_read_the_same_rows(cores: int, high: int, rows: int) -> None:
    first = func("first", (1002, 1002))
    second = func("second", (1002, 1000), read("first", ("x", 1), ("y", high)))
    names = pipeline(first, second, func("output", (1000, 1000), read("second", ("x", 3), ("y", 1))))
    draft = next(sketch.draft for sketch in sketches(names, cores) if sketch.name == "rows")
    (tasks,) = [
        made for made in draft.funcs["output"].stages[0].transforms if isinstance(made, Split) and made.old == "y"
    ]
    assert tasks.factor == rows, "of a thousand"


@pytest.mark.parametrize("rows", [(), (2,), (6,)])
def test_a_signal_is_cut_into_long_parts_of_which_each_task_computes_all(rows: tuple[int, ...]) -> None:
    """And so is a picture of a few long rows."""
    length, taps = 2**20, ("x", 9)
    others = [("y", 1)] * len(rows)
    names = pipeline(
        func("before", (length + 8, *rows), read("source", taps, *others, is_input=True)),
        func("output", (length, *rows), read("before", taps, *others)),
    )
    heavy = PipelineNames(
        replace(
            names.shape,
            funcs=tuple(
                replace(each, stages=tuple(replace(one, operations=400) for one in each.stages))
                for each in names.shape.funcs
            ),
        )
    )
    made = {one.name: one.draft for one in sketches(heavy, 4)}
    for draft in made.values():
        output = draft.funcs["output"].stages[0]
        (tasks,) = [loop for loop in output.order if output.kind(loop) is LoopKind.PARALLEL]
        assert [each.factor for each in output.transforms if isinstance(each, Split) and each.outer == tasks] == [4096]
    level = made["rows"].funcs["before"].compute
    assert level is not None and level.func == "output", "in the tasks"


def test_what_is_cheap_has_no_storage(named: Named) -> None:
    rows = by_name(named("stencils"))["rows"]
    assert rows.funcs["wide"].is_inlined
    assert rows.funcs["down"].is_inlined


def test_bins_are_filled_by_rows_with_a_copy_of_what_they_count(named: Named) -> None:
    rows = by_name(named("bins"))["rows"]
    of_row = rows.funcs["of_row"]
    assert of_row.compute == ROOT
    assert LoopKind.PARALLEL in of_row.stages[1].kinds.values()
    assert LoopKind.VECTORIZED not in of_row.stages[1].kinds.values()
    (copy,) = [func for func in rows.funcs.values() if func.origin]
    assert copy.origin == Clone("bright", ("of_row",))
    assert copy.compute is not None and copy.compute.func == "of_row", "as vectors, which the update is not"
    innermost, columns, around, _ = of_row.stages[1].order
    assert of_row.stages[1].kinds.get(innermost) is LoopKind.UNROLLED, "a few rows in turns"
    assert columns == "of_row_r_x"
    assert copy.compute.variable == around, "all that these rows count"
    assert rows.funcs["all"].compute == ROOT


def test_what_several_channels_need_is_computed_once_for_each_vector(named: Named) -> None:
    found = by_name(named("mosaic"))
    assert found["rows-pairs"].funcs["red"].is_inlined
    drafts = found["rows-pairs-per-vector"]
    colour, red = drafts.funcs["colour"], drafts.funcs["red"]
    assert red.compute is not None and red.compute.func == "colour" and red.store is None
    inside = colour.stages[0].order[: colour.stages[0].order.index(red.compute.variable or "")]
    assert colour.stages[0].kinds[inside[0]] is LoopKind.VECTORIZED
    assert all(colour.stages[0].kinds[loop] is LoopKind.UNROLLED for loop in inside[1:]), "the loop of vectors is next"


def test_a_pair_computes_once_what_both_of_it_read(named: Named) -> None:
    """Each point of a phase of a mosaic is then computed once where it is read, and needs no storage."""
    found = by_name(named("phases"))
    for phase in ("even", "odd"):
        assert found["rows-pairs-per-vector"].funcs[phase].is_inlined
        assert not found["rows"].funcs[phase].is_inlined
    sharp = found["rows-pairs-per-vector"].funcs["sharp"]
    assert not sharp.is_inlined, "three read it"
    (lanes,) = [made.factor for made in sharp.stages[0].transforms if isinstance(made, Split) and made.old == "x"]
    assert lanes == 32, "so that sixteen points of a phase fill a vector, too"


def test_a_product_is_summed_in_registers(named: Named) -> None:
    found = by_name(named("product"))
    total = found["rows-block-0"].funcs["total"]
    assert total.compute is not None
    assert total.compute.func == "output"
    vector, *others = total.stages[1].order
    assert total.stages[1].kinds[vector] is LoopKind.VECTORIZED
    assert [total.stages[1].kinds.get(loop) for loop in others[:2]] == [LoopKind.UNROLLED] * 2
    assert found["rows-block-0"] != found["rows-block-1"], "several blocks are worth a try"
    assert not any("block" in name for name in by_name(named("statistics"))), "whose sums no point reads"


def test_columns_of_a_product_are_tasks(named: Named) -> None:
    """What is read along the columns, a layer's weights, is then read once by one core, as a copy."""
    found = by_name(named("product"))
    stage = found["columns-block-0"].funcs["output"].stages[0]
    task = stage.order[-1]
    assert stage.kinds[task] is LoopKind.PARALLEL
    assert "x" in stage.root_of(task)
    assert found["columns-block-0"].funcs["right_im"].compute == LoopLevel("output", task)
    assert found["columns-block-0"].funcs["left_im"].is_inlined, "whose rows are long"
    assert found["rows-block-0"].funcs["right_im"].is_inlined, "which each task reads as a whole"


def test_a_scan_is_taken_in_strips_of_its_reader(named: Named) -> None:
    found = [sketch.draft.funcs["along"] for sketch in sketches(named("scan"), cores=2)]
    in_strips = [along for along in found if along.compute is not None and along.compute.func == "output"]
    assert in_strips
    assert all(along.stages[1].kinds[along.stages[1].order[0]] is LoopKind.VECTORIZED for along in in_strips)


def test_what_goes_along_the_rows_is_computed_in_strips_of_columns(named: Named) -> None:
    found = by_name(named("spread"))
    output, along = found["columns-64"].funcs["output"], found["columns-64"].funcs["along"]
    kinds = output.stages[0].kinds
    (task,) = [loop for loop in output.stages[0].order if kinds.get(loop) is LoopKind.PARALLEL]
    assert along.compute == LoopLevel("output", task) and along.store is None
    assert "x" in output.stages[0].root_of(task) and "y" in output.stages[0].order, "all rows are of one task"
    assert not any(name.startswith("columns") for name in by_name(named("stencils"))), "nothing goes along its rows"


@pytest.mark.parametrize(("steps", "operations", "has_blocks"), [(64, 5, True), (16, 150, True), (16, 300, False)])
def test_sums_of_a_large_scan_are_taken_in_strips_where_they_are_much_of_the_work(
    steps: int, operations: int, has_blocks: bool
) -> None:
    """A third of it is enough; a step of the scan is so many operations."""
    x, y = loop("x", 1024), loop("y", 2048)
    before = read("source", ("x", 1), ("r$y", 1))
    scan = stage(before, loops=(x, loop("r$y", 2048, "ordered")), operations=operations)
    total = stage(read("along", ("x", 1), ("y", 1)), loops=(loop("r$x", steps, "ordered"), x, y), is_associative=True)
    names = pipeline(
        func("source", (1024, 2048)),
        func("along", (1024, 2048), updates=(scan,)),
        func("total", (1024, 2048), updates=(total,)),
        func("output", (1024, 2048), read("total", ("x", 1), ("y", 1))),
    )
    found = [sketch.name for sketch in sketches(names, cores=2)]
    blocks = [name for name in found if "block" in name]
    assert bool(blocks) is has_blocks
    assert found[: len(blocks[:2])] == blocks[:2], "the first to be tried"
    assert all(re.fullmatch("columns-[0-9]+-block-[0-9]", name) for name in blocks), "else all of it is in memory"


def test_large_pictures_between_scans_are_made_one_channel_at_a_time(named: Named) -> None:
    found = by_name(named("planes"))
    outside = found["tiles-32x16-channels-outside"].funcs
    assert outside["output"].stages[0].order[-1] == "c" and "c" not in outside["output"].stages[0].kinds
    turned = outside["turned"]
    assert turned.compute == LoopLevel("output", "c"), "all of it is needed, but of one channel"
    assert LoopKind.PARALLEL in turned.stages[0].kinds.values(), "with tasks of its own"
    for scan, reader in (("along", "turned"), ("again", "output")):
        compute = outside[scan].compute
        assert compute is not None and compute.func == reader and compute.variable != "c", "in the reader's tasks"
        assert all(LoopKind.PARALLEL not in stage.kinds.values() for stage in outside[scan].stages)
    assert found["tiles-32x16"].funcs["turned"].compute == ROOT
    assert "tiles-32x16-channels-outside" not in by_name(named("stencils")), "nothing goes along its rows"


def test_long_reductions_are_summed_in_parts(named: Named) -> None:
    found = by_name(named("statistics"))
    assert not any(isinstance(func.origin, Intermediate) for func in found["rows"].funcs.values())
    made = {name for name, func in found["rows-parts"].funcs.items() if isinstance(func.origin, Intermediate)}
    assert made == {"bins_part", "means_part", "columns_part", "brightness_part"}


def test_no_update_at_the_root_does_more_than_is_needed(named: Named) -> None:
    """Else a kernel would ask for a larger input than the pipeline needs."""
    columns = by_name(named("statistics"))["rows"].funcs["columns"].stages[1]
    tails = {made.tail for made in columns.transforms if isinstance(made, Split)}
    assert tails == {TailStrategy.GUARD_WITH_IF}


def test_what_is_read_at_few_of_many_places_is_computed_there(named: Named) -> None:
    """All versions that might be read at a point are more than the two that are."""
    funcs = by_name(named("versions"))["rows-clones"].funcs
    (copy,) = [name for name, func in funcs.items() if func.origin == Clone("versions", ("detail",))]
    assert funcs["detail"].is_inlined
    assert funcs[copy].is_inlined
    versions = funcs["versions"]
    assert versions.compute is not None
    assert versions.store is not None
    assert versions.compute.func == versions.store.func == "small", "for the others, in a window that slides"


def test_what_a_tile_needs_is_computed_for_all_of_it(named: Named) -> None:
    """Not again for each vector of its readers', though that would need less storage."""
    funcs = by_name(named("patches"))["tiles-32x16"].funcs
    for name in ("down", "alike"):
        compute = funcs[name].compute
        assert compute is not None
        assert compute.func == "output"


def test_vectors_of_a_table_are_looked_up_whole(named: Named) -> None:
    funcs = by_name(named("slices"))["rows"].funcs
    matrix, smooth, place = funcs["matrix"], funcs["smooth"], funcs["place"]
    assert matrix.stages[0].root_of(matrix.stages[0].order[0]) == ("k",)
    assert matrix.stages[0].kind(matrix.stages[0].order[0]) is LoopKind.VECTORIZED
    assert ReorderStorage(("k", "x", "y", "z")) in smooth.storage
    assert place.stages[0].root_of(place.stages[0].order[0]) == ("x",), "vectors of where to look"
    assert not {"matrix", "smooth", "place"} & {name for name, func in funcs.items() if func.compute in (None, ROOT)}
    at_root = by_name(named("slices"))["root"].funcs
    assert at_root["matrix"].is_inlined, "all of it in memory costs more than it gains"


@pytest.mark.slow
@pytest.mark.parametrize("seen", [3, 2], ids=["as estimated", "fewer"])
def test_channels_of_their_own_kinds_are_compiled_apart_and_any_others_too(
    seen: int, named: Named, settings: Settings, tmp_path: Path
) -> None:
    names = named("tones")
    draft = by_name(names)["rows"]
    assert draft.funcs["output"].cases == ("c",)
    header = tmp_path / "rows.schedule.h"
    header.write_text(print_header(schedule_of(draft, names, "tones"), "tones"))
    assert "(output_extent_2 == 3)" in header.read_text()
    sizes = EstimateOptions({"output": f"640x480x{seen}"})
    spec = sdk.GeneratorSpec(f"{KINDS}:tones", estimates=sizes)
    (result,) = sdk.bench(spec, [str(header)], target="x86-64", turns=1, settings=settings)
    assert result.failure is None and result.reference is not None, result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("generator", "chosen"),
    [("statistics", ("rows", "rows-parts", "rows-many-parts")), ("slices", ("rows", "tiles-32x16"))],
)
def test_the_output_is_right(
    generator: str, chosen: tuple[str, ...], named: Named, settings: Settings, tmp_path: Path
) -> None:
    names = named(generator)
    headers = []
    for name, draft in by_name(names).items():
        if name in chosen:
            headers.append(tmp_path / f"{name}.schedule.h")
            headers[-1].write_text(print_header(schedule_of(draft, names, generator), generator))
    results = sdk.bench(f"{KINDS}:{generator}", list(map(str, headers)), target="x86-64", turns=1, settings=settings)
    assert len(results) == len(chosen)
    for result in results:
        assert result.failure is None and result.reference is not None, result


def test_vectors_are_as_long_as_the_target_needs() -> None:
    names = recorded("stencil_chain")

    def lanes(of: PipelineNames) -> set[int]:
        return {
            made.factor
            for sketch in sketches(of, 4)
            for func in sketch.draft.funcs.values()
            for stage in func.stages
            for made in stage.transforms
            if isinstance(made, Split) and stage.kinds.get(made.inner) is LoopKind.VECTORIZED
            if isinstance(made.factor, int)
        }

    assert min(lanes(names)) < 64 == min(lanes(for_target(names, least_lanes=64)))


def test_what_spoils_the_vectors_of_its_readers_is_stored() -> None:
    usual = pipeline(
        func("wide", (640, 480), read("in", ("x", 1), ("y", 1), is_input=True)),
        func("output", (640, 480), read("wide", ("x", 1), ("y", 1))),
    )
    shape = for_target(usual, "output", is_wrong_if_inlined=True).shape
    wide, output = shape.funcs
    names = PipelineNames(replace(shape, funcs=(replace(wide, is_narrow=True), output)))
    first, other = (next(iter(sketches(of, 4))).draft.funcs for of in (usual, names))
    assert first["wide"].is_inlined and not other["wide"].is_inlined
    assert any(LoopKind.VECTORIZED in stage.kinds.values() for stage in other["output"].stages)
