"""A schedule that went through a draft gives the code that it gave before: nothing of it is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import LoopKind
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.repair import repair
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import mend_header
from halide_autotune.autotune_loop.schedule.reading.pipeline import read_schedule
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.object_code import loaded_content
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import AutoschedulerRequest, GeneratedFiles, GeneratorRequest, run_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.pipeline.shape import PipelineShape, describe_pipeline
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import li2018, mullapudi2016
from halide_autotune.targets.schedule.pipeline_schedule import read_pipeline
from halide_autotune.targets.schedule.plugins import replay_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.drafted_pipelines import EXAMPLES, RECORDED, SHAPES, recorded

pytestmark = pytest.mark.toolchain

TARGET = "x86-64-linux-avx-avx2-f16c-fma-sse41-no_runtime"
LIMITS = ProcessLimits(time_s=180.0, memory_bytes=6 * 2**30)
BY_HAND = Path(__file__).parents[1] / "schedule" / "reading" / "generators"

OpenProgram = Callable[[str], GeneratorProgram]


@pytest.fixture(scope="module")
def open_program(
    examples: Path, halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings
) -> Iterator[OpenProgram]:
    """Opens an example's Python generator, or one of these tests'; each once."""
    with contextlib.ExitStack() as opened:
        programs: dict[str, GeneratorProgram] = {}

        def get(name: str) -> GeneratorProgram:
            if name not in programs:
                own = {each: BY_HAND / f"{each}.cpp" for each in ("expert", "factored")}
                own["scan"] = Path(__file__).parent / "generators" / "scan.py"
                reference = parse_generator(str(own.get(name, examples / f"{name}.py")))
                program = open_generator(reference, halide, cpp_compiler, settings.environment)
                programs[name] = opened.enter_context(contextlib.closing(program))
            return programs[name]

        yield get


def described(program: GeneratorProgram, compiler: HostCppCompiler) -> PipelineShape:
    preparation = PipelinePreparation(build_preparation_plugin(compiler))
    shape = describe_pipeline(Inspected(program, program.names[0], {}, TARGET), preparation, compiler)
    assert isinstance(shape, PipelineShape), shape
    return shape


def run(
    program: GeneratorProgram,
    folder: Path,
    autoscheduler: AutoschedulerRequest,
    compiler: HostCppCompiler,
    *emit: str,
) -> GeneratedFiles:
    name = program.names[0]
    prepared = PipelinePreparation(build_preparation_plugin(compiler)).before(autoscheduler)
    folder.mkdir(parents=True)
    request = GeneratorRequest(name, "f", "f", folder, emit, TARGET, {}, prepared)
    result = run_generator(program, request, LIMITS)
    assert isinstance(result, GeneratedFiles), result
    return result


def code(program: GeneratorProgram, schedule: Schedule, folder: Path, compiler: HostCppCompiler) -> list[bytes]:
    """What a schedule's object file puts into memory; the names of symbols come from loops' names."""
    data = folder.with_suffix(".json")
    data.write_text(print_json(schedule))
    made = run(program, folder, replay_autoscheduler(data, compiler), compiler, "object")
    return loaded_content(made.files["object"].read_bytes())


def own_schedule(program: GeneratorProgram, compiler: HostCppCompiler) -> Schedule:
    read = read_pipeline(Inspected(program, program.names[0], {}, TARGET), compiler)
    return read_schedule(read.scheduled, read.plain).schedule


@pytest.mark.parametrize("name", RECORDED)
def test_what_other_tests_take_for_an_example_is_the_example(
    name: str, open_program: OpenProgram, cpp_compiler: HostCppCompiler
) -> None:
    """To record one again: msgspec.json.encode() of what `describe_pipeline` returns."""
    assert described(open_program(name), cpp_compiler) == recorded(name).shape, f"{SHAPES / name}.json is old"


@pytest.mark.slow
@pytest.mark.parametrize("autoscheduler", ["own", "adams2019", "mullapudi2016", "li2018"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_code_is_the_same(
    name: str,
    autoscheduler: str,
    open_program: OpenProgram,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    tmp_path: Path,
) -> None:
    program, names = open_program(name), recorded(name)
    if autoscheduler == "own":
        schedule = own_schedule(program, cpp_compiler)
    else:
        search = {
            "adams2019": AutoschedulerRequest(
                "Adams2019", (halide.plugin_path("Adams2019"),), {"parallelism": "4", "beam_size": "1"}
            ),
            "mullapudi2016": mullapudi2016(halide, 4, load_profile("x86-64").machine),
            "li2018": li2018(halide, 4),
        }[autoscheduler]
        text = run(program, tmp_path / "search", search, cpp_compiler, "schedule").files["schedule"].read_text()
        schedule = parse_schedule(mend_header(text, "f"))
    draft = draft_of(schedule, names)
    drafted = schedule_of(draft, names, "f")
    assert draft_of(drafted, names) == draft
    before = code(program, schedule, tmp_path / "before", cpp_compiler)
    assert code(program, drafted, tmp_path / "after", cpp_compiler) == before


@pytest.mark.slow
def test_the_comparison_would_tell_one_mark(
    open_program: OpenProgram, cpp_compiler: HostCppCompiler, tmp_path: Path
) -> None:
    program, names = open_program("separable_filter"), recorded("separable_filter")
    draft = draft_of(own_schedule(program, cpp_compiler), names)
    output = draft.funcs["output"]
    loop = output.stages[0].first_of_kind(LoopKind.VECTORIZED)
    assert loop is not None
    serial = draft.with_func("output", output.with_stage(0, output.stages[0].with_kind(loop, None)))
    made = [schedule_of(each, names, "f") for each in (draft, serial)]
    codes = [code(program, each, tmp_path / str(place), cpp_compiler) for place, each in enumerate(made)]
    assert codes[0] != codes[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["expert", "factored"])
def test_what_an_expert_wrote_by_hand_is_not_lost(
    name: str, open_program: OpenProgram, cpp_compiler: HostCppCompiler, tmp_path: Path
) -> None:
    """Wrappers, clones, storage, prefetches, `compute_with`; specializations and rfactors are kept as they are."""
    program = open_program(name)
    schedule = own_schedule(program, cpp_compiler)
    names = PipelineNames(described(program, cpp_compiler))
    draft = draft_of(schedule, names)
    assert any(func.frozen for func in draft.funcs.values()) and not all(func.frozen for func in draft.funcs.values())
    drafted = schedule_of(draft, names, "f")
    assert draft_of(drafted, names) == draft == repair(draft, names)
    before = code(program, schedule, tmp_path / "before", cpp_compiler)
    assert code(program, drafted, tmp_path / "after", cpp_compiler) == before
