"""Whether hand-written schedules that are read from generators, and replayed as data, give the code of their own build.

For each generator: its own schedule is read, printed as a header and parsed again, and applied to the generator's plain
pipeline by the plug-in that replays data. What the two object files hold is compared byte by byte, without the names of
their symbols; if that differs, the statements that Halide lowered the pipeline to, without the numbers of nameless
variables: code for GPUs contains their names, and the metadata of arguments contain estimates.

Generators of a folder are found by HALIDE_REGISTER_GENERATOR.

python -m benchmarks.hand_schedules FOLDER_OR_GENERATOR... [--include FOLDER]... [--source FILE]... [-p key=value]...
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.reading.pipeline import read_schedule
from halide_autotune.sdk.project.preparation import Workbench, open_workbench
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.build.object_code import is_same_code
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import GeneratorReference, parse_generator
from halide_autotune.targets.generator.run import AutoschedulerRequest, GeneratedFiles, GeneratorRequest, run_generator
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.schedule.pipeline_schedule import read_pipeline
from halide_autotune.targets.schedule.plugins import replay_autoscheduler, schedule_autoscheduler
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_NAMELESS = re.compile(r"(?<![A-Za-z0-9%])[vrt][0-9]+")
_INITIALIZED = re.compile(r"halide_\w+_initialize_kernels\(.*\)")
LIMITS = ProcessLimits(time_s=600.0, memory_bytes=10 * 2**30)
_REGISTERED = re.compile(
    r"HALIDE_REGISTER_GENERATOR\(\s*[\w:]+\s*,\s*(\w+)\s*[,)]|@hl\.(?:alias|generator)\(.*?\bname\s*=\s*[\"'](\w+)"
)


@dataclass(frozen=True)
class Outcome:
    """What became of one generator."""

    generator: str
    verdict: str
    differences: tuple[str, ...] = ()
    calls: int = 0


def main() -> int:
    """Print a line for each generator and a count of the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generators", nargs="+")
    parser.add_argument("--target", default="host-no_runtime", help="Halide's target string")
    parser.add_argument("--include", type=Path, action="append", default=[])
    parser.add_argument("--source", type=Path, action="append", default=[])
    parser.add_argument("--define", action="append", default=[])
    parser.add_argument("--cxxflag", action="append", default=[])
    parser.add_argument("-p", "--parameter", action="append", default=[])
    parser.add_argument("--keep", type=Path, help="put schedules and object files into this folder")
    parser.add_argument("--compile-header", action="store_true", help="also apply the printed header, compiled")
    arguments = parser.parse_args()
    settings = read_settings()
    workbench = open_workbench(settings)
    build = CppBuild(
        sources=tuple(path.resolve() for path in arguments.source),
        include_folders=tuple(path.resolve() for path in arguments.include),
        definitions=tuple(arguments.define),
        flags=tuple(arguments.cxxflag),
    )
    verdicts: dict[str, int] = {}
    for name in _generators(arguments.generators):
        is_cpp = name.partition(":")[0].endswith((".cpp", ".cc"))
        try:
            reference = parse_generator(name, arguments.parameter, build if is_cpp else None)
            outcome = _try(reference, name, workbench, settings, arguments)
        except SdkError as error:
            outcome = Outcome(name, "not read", (str(error),))
        verdicts[outcome.verdict] = verdicts.get(outcome.verdict, 0) + 1
        print(
            f"{outcome.generator}: {outcome.verdict} ({outcome.calls} calls)",
            *outcome.differences,
            sep="\n    ",
            flush=True,
        )
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    return 0


def _generators(named: list[str]) -> Iterator[str]:
    for name in named:
        if not Path(name).is_dir():
            yield name
            continue
        for file in sorted((*Path(name).rglob("*.cpp"), *Path(name).rglob("*.py"))):
            for found in _REGISTERED.finditer(file.read_text(errors="replace")):
                yield f"{file}:{found[1] or found[2]}"


def _try(
    reference: GeneratorReference, name: str, workbench: Workbench, settings: Settings, arguments: argparse.Namespace
) -> Outcome:
    program = open_generator(reference, workbench.halide, workbench.compiler, settings.environment)
    with contextlib.closing(program):
        generator = reference.name or program.names[0]
        inspected = Inspected(program, generator, reference.parameters, arguments.target)
        return _compare(inspected, name, workbench.compiler, arguments)


def _compare(inspected: Inspected, name: str, compiler: HostCppCompiler, arguments: argparse.Namespace) -> Outcome:
    pipeline = read_pipeline(inspected, compiler)
    read = read_schedule(pipeline.scheduled, pipeline.plain)
    calls = sum(len(stage.directives) for stage in read.schedule.stages)
    header = print_header(read.schedule, "f")
    differences = read.differences
    if print_header(parse_schedule(header), "f") != header:
        differences = (*differences, "The printed header is parsed as another schedule.")
    with tempfile.TemporaryDirectory(prefix="sdk-hand-schedules-") as temporary:
        folder = (
            Path(temporary) if arguments.keep is None else arguments.keep / name.replace("/", "_").replace(":", "_")
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedule.h").write_text(header)
        data = folder / "schedule.json"
        data.write_text(print_json(read.schedule))
        own = _run(inspected, folder / "own", None)
        if isinstance(own, str):
            return Outcome(name, "own build fails", (*differences, own), calls)
        preparation = PipelinePreparation(build_preparation_plugin(compiler))
        replayed = _run(inspected, folder / "replayed", preparation.before(replay_autoscheduler(data, compiler)))
        if arguments.compile_header:
            plugin = preparation.before(schedule_autoscheduler(header, compiler))
            if _run(inspected, folder / "compiled", plugin) != replayed:
                differences = (*differences, "The compiled header gives other code than the replay.")
    if isinstance(replayed, str):
        return Outcome(name, "refused", (*differences, replayed), calls)
    return Outcome(name, _verdict(own, replayed), differences, calls)


@dataclass(frozen=True)
class Built:
    """The object file, and what Halide lowered the pipeline to."""

    content: bytes
    lowered: str


def _verdict(own: Built, replayed: Built) -> str:
    if replayed.content == own.content:
        return "same file"
    if is_same_code(replayed.content, own.content):
        return "same but for symbols"
    if _with_even_names(replayed.lowered) == _with_even_names(own.lowered):
        return "same but for names and metadata"
    return "other code"


def _with_even_names(lowered: str) -> str:
    """The statement without the numbers of nameless variables, which on a GPU are part of the code and of its size."""
    return _INITIALIZED.sub("", _NAMELESS.sub("#", lowered))


def _run(inspected: Inspected, folder: Path, autoscheduler: AutoschedulerRequest | None) -> Built | str:
    """What is built, or why there is nothing."""
    name, target = inspected.generator_name, inspected.halide_target
    emit = ("object", "stmt")
    request = GeneratorRequest(name, "f", "f", folder, emit, target, inspected.parameters, autoscheduler)
    result = run_generator(inspected.program, request, LIMITS)
    if not isinstance(result, GeneratedFiles):
        return result.message
    return Built(result.files["object"].read_bytes(), result.files["stmt"].read_text(errors="replace"))


if __name__ == "__main__":
    sys.exit(main())
