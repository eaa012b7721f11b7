"""Whether a schedule that went through the SDK's own data and back gives the code of the autoscheduler that made it.

Every example (or the generators that are named) is scheduled by Adams2019, Mullapudi2016 and Li2018 for the host and
for arm64, and by Anderson2021 for CUDA (no GPU is needed); the header is parsed, printed, compiled as a plug-in and
applied to the same generator, and what the two object files hold is compared byte by byte; only the names of their
symbols may differ, which Halide makes from the names of loops. Where the code is another one, an autoscheduler has
changed more than the schedule: Mullapudi2016 and Li2018 inline Funcs into the definitions themselves, which can change
the order of independent Funcs, and Li2018's names of loops decide the order of parallel tasks.

python -m benchmarks.schedule_round_trip --seeds 2
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.sdk.project.preparation import Workbench, open_workbench
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.build.object_code import is_same_code
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import (
    AutoschedulerRequest,
    GeneratedFiles,
    GeneratorFailure,
    GeneratorRequest,
    run_generator,
)
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.schedule.plugins import schedule_autoscheduler

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
LIMITS = ProcessLimits(time_s=180.0, memory_bytes=6 * 2**30)
TARGETS = {
    "host": "host-no_runtime",
    "arm64": "arm-64-linux-no_runtime",
    "cuda": "x86-64-linux-avx-avx2-f16c-fma-sse41-cuda-cuda_capability_80-no_runtime",
}
# Small, so that code is generated quickly; another size gives other schedules of the same kinds.
SIZES: Mapping[str, Mapping[str, str]] = {
    "convolution_layer": {"width": "28", "height": "28"},
    "matrix_product": {"rows": "128", "columns": "128", "depth": "128"},
}
DEFAULT_SIZE = {"width": "512", "height": "256"}


class Outcome(Enum):
    """How one schedule came through."""

    SAME_FILE = "same file"
    SAME_CODE = "same but for symbols"
    OTHER_CODE = "other code"
    NOT_PARSED = "not parsed"
    NOT_COMPILED = "header does not compile"
    NOT_APPLIED = "header cannot be applied"
    NOT_SCHEDULED = "no schedule to begin with"


@dataclass(frozen=True)
class Case:
    """One generator, target and autoscheduler with its parameters."""

    program: GeneratorProgram
    generator: str
    parameters: Mapping[str, str]
    target: str
    autoscheduler: AutoschedulerRequest
    even_names: Path

    def run(self, folder: Path, autoscheduler: AutoschedulerRequest, *emit: str) -> GeneratedFiles | GeneratorFailure:
        name = self.program.names[0]
        autoscheduler = AutoschedulerRequest(
            "SdkEvenNames",
            (*autoscheduler.plugins, self.even_names),
            {**autoscheduler.parameters, "search": autoscheduler.name},
        )
        request = GeneratorRequest(name, "f", "f", folder, emit, TARGETS[self.target], self.parameters, autoscheduler)
        return run_generator(self.program, request, LIMITS)


def main() -> int:
    """Print a line for what is not the same, then a table; exit code 1 when a header does not compile or apply."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generators", nargs="*", type=Path, help="default: all examples")
    parser.add_argument("--seeds", type=int, default=2, help="random schedules of each search")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--own-sizes", action="store_true", help="the generators' own parameters, not small ones")
    parser.add_argument("--keep", type=Path, help="put the emitted headers into this folder")
    arguments = parser.parse_args()
    generators = arguments.generators or sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.cpp")])
    counts: dict[tuple[str, str], collections.Counter[Outcome]] = collections.defaultdict(collections.Counter)
    started_s = time.monotonic()
    settings = read_settings()
    workbench = open_workbench(settings)
    even_names = workbench.compiler.build_plugin(Path(__file__).with_name("even_names.cpp"))
    for generator in generators:
        sizes = {} if arguments.own_sizes else SIZES.get(generator.stem, DEFAULT_SIZE)
        reference = parse_generator(str(generator))
        program = open_generator(reference, workbench.halide, workbench.compiler, settings.environment)
        with contextlib.closing(program):
            for target, request in itertools.chain.from_iterable(
                ((target, request) for request in _requests(workbench, target, arguments.seeds))
                for target in arguments.targets
            ):
                case = Case(program, generator.name, sizes, target, request, even_names)
                outcome, what = _round_trip(case, workbench, arguments.keep)
                counts[target, request.name][outcome] += 1
                if outcome not in (Outcome.SAME_FILE, Outcome.SAME_CODE):
                    print(f"{generator.name} {target} {request.name}: {outcome.value} {what}", flush=True)
    _print_table(counts)
    print(f"{time.monotonic() - started_s:.0f} s")
    broken = (Outcome.NOT_PARSED, Outcome.NOT_COMPILED, Outcome.NOT_APPLIED)
    return int(any(count[outcome] for count in counts.values() for outcome in broken))


def _requests(workbench: Workbench, target: str, seeds: int) -> Iterator[AutoschedulerRequest]:
    def request(name: str, **parameters: str) -> AutoschedulerRequest:
        return AutoschedulerRequest(name, (workbench.halide.plugin_path(name),), parameters)

    search, parallelism = ("Anderson2021", "80") if target == "cuda" else ("Adams2019", "8")
    yield request(search, parallelism=parallelism, beam_size="1")
    for seed in range(1, seeds + 1):
        chance = {"random_dropout": str(1 + 7 * seed), "random_dropout_seed": str(seed)}
        yield request(search, parallelism=parallelism, beam_size="1", **chance)
    if target != "cuda":
        for cores, cache_bytes in (("8", "1000000"), ("32", "60000")):
            yield request("Mullapudi2016", parallelism=cores, last_level_cache_size=cache_bytes, balance="40")
            yield request("Li2018", parallelism=cores)


def _round_trip(case: Case, workbench: Workbench, keep: Path | None) -> tuple[Outcome, str]:
    with tempfile.TemporaryDirectory(prefix="sdk-round-trip-") as folder:
        direct = case.run(Path(folder) / "direct", case.autoscheduler, "object", "schedule")
        if isinstance(direct, GeneratorFailure):
            return Outcome.NOT_SCHEDULED, direct.message
        emitted = direct.files["schedule"].read_text()
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            label = f"{case.generator.replace('.', '_')}_{case.target}_{case.autoscheduler.name}".lower()
            (keep / f"{label}_{len(list(keep.iterdir()))}.schedule.h").write_text(emitted)
        try:
            schedule = parse_schedule(emitted)
            header = print_header(replace(schedule, provenance=None), "round_trip")
        except SdkError as error:
            return Outcome.NOT_PARSED, str(error)
        try:
            applied = schedule_autoscheduler(header, workbench.compiler)
        except SdkError as error:
            return Outcome.NOT_COMPILED, str(error)
        again = case.run(Path(folder) / "again", applied, "object")
        if isinstance(again, GeneratorFailure):
            return Outcome.NOT_APPLIED, again.message
        files = (direct.files["object"].read_bytes(), again.files["object"].read_bytes())
        if files[0] == files[1]:
            return Outcome.SAME_FILE, ""
        return (Outcome.SAME_CODE if is_same_code(*files) else Outcome.OTHER_CODE), ""


def _print_table(counts: Mapping[tuple[str, str], Mapping[Outcome, int]]) -> None:
    seen = [outcome for outcome in Outcome if any(count[outcome] for count in counts.values())]
    print(f"\n{'target':8}{'autoscheduler':16}{'schedules':>10}" + "".join(f"{o.value:>28}" for o in seen))
    for (target, autoscheduler), count in sorted(counts.items()):
        total = sum(count[outcome] for outcome in seen)
        print(f"{target:8}{autoscheduler:16}{total:>10}" + "".join(f"{count[outcome]:>28}" for outcome in seen))


if __name__ == "__main__":
    sys.exit(main())
