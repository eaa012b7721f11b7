"""How well the simulated clock ranks schedules: against this machine's own times, and what else an emulator has.

    python -m benchmarks.simulated_clock_ranking --schedules 40 --output ranking.json

Random Adams2019 schedules of the examples, at reduced sizes and with one thread, are timed natively (the second
fastest of many short rounds: a core that shares its units with another is half as fast for a while, and once in a
thousand times a virtual machine's clock loses some) and under qemu-x86_64 with three clocks: the simulated one, the
emulator's own time, and instructions alone. Native times are the thread's own processor time, which a busy machine
disturbs least. For each clock: Spearman's rank correlation with the native times, over all schedules and over the
faster half; of the pairs that lie 10 % or more apart natively, the share in order; and the native time of its first
choice as a multiple of the best native time. How well one half of the native rounds orders the schedules as the other
half does is what a perfect clock could reach: many random schedules are equally fast.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from halide_autotune.autotune_loop.search.plan import random_points
from halide_autotune.autotune_loop.training.lowered_samples import LoweringTools
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.build.executable import BuildTools, Executable, KernelObject, link_executable
from halide_autotune.targets.build.simulated_clock_plugin import (
    build_simulated_clock,
    check_emulator,
    simulated_clock_arguments,
)
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator, resolve_name
from halide_autotune.targets.generator.run import AutoschedulerRequest, GeneratedFiles, GeneratorRequest, run_generator
from halide_autotune.targets.halide_install import HalideInstall, find_halide_install
from halide_autotune.targets.process.compiler_run import run_compiler
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
from halide_autotune.targets.profile.host_probe import probe_host
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import MachineParameters, TargetProfile
from halide_autotune.targets.schedule.autoschedulers import profile_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from halide_autotune.targets.toolchain.zig import ZigToolchain
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import write_weights

EXAMPLES = Path(__file__).parents[1] / "examples"
THREAD_CLOCK = Path(__file__).parent / "thread_clock.c"
SIZES: Mapping[str, tuple[str, ...]] = {
    "corner_detector": ("width=768", "height=512"),
    "camera_pipeline": ("width=960", "height=640"),
    "separable_filter": ("width=960", "height=540"),
    "stencil_chain": ("width=768", "height=512"),
    "convolution_layer": ("input_channels=32", "output_channels=32", "width=28", "height=28"),
    "bilateral_grid": ("width=768", "height=512"),
    "matrix_product": ("rows=192", "columns=192", "depth=192"),
}
# Without these, `rep stosb` counts an instruction for each byte.
EMULATOR = ("qemu-x86_64", "-cpu", "max,-erms,-fsrm")
CLEARLY_SLOWER = 1.1
CLOCKS = ("simulated", "emulated", "instructions")
_TRIES_PER_SCHEDULE, _TRIES_AT_ONCE = 3, 8
_GENERATOR_LIMITS = ProcessLimits(time_s=60.0, memory_bytes=4 * 2**30)
_RUN_LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
_NATIVE_ARGUMENTS = ("--warm-up-s", "0.01", "--max-time-s", "0.06", "--precision", "0", "--threads", "1")
_EMULATED_ARGUMENTS = (
    "--warm-up-s",
    "0",
    "--min-repetition-s",
    "0",
    "--min-repetitions",
    "2",
    "--max-repetitions",
    "2",
)


@dataclass(frozen=True)
class ScheduleTimes:
    """One schedule's time by every clock, and how long the emulator worked on it with and without the model.

    Attributes:
        native_rounds_s: the fastest call of each round.
    """

    native_rounds_s: tuple[float, ...]
    simulated_s: float
    emulated_s: float
    instructions_s: float
    simulated_run_s: float
    emulated_run_s: float

    @property
    def native_s(self) -> float:
        """What the schedule takes on this processor."""
        return second_fastest(self.native_rounds_s)


@dataclass(frozen=True)
class Ranking:
    """One clock's order of one pipeline's schedules against the native order."""

    spearman: float
    spearman_of_faster_half: float
    clear_pairs_in_order: float
    first_choice: float
    best_of_first_three: float


@dataclass(frozen=True)
class Bench:
    """The tools that all pipelines use."""

    profile: TargetProfile
    halide: HalideInstall
    cache: ContentCache
    compiler: HostCppCompiler
    environment: Mapping[str, str]

    @property
    def kernel_target(self) -> str:
        """What schedules are compiled for: Halide's runtime is linked once for all of them."""
        return f"{self.profile.halide_target}-no_runtime"

    @property
    def lowering_tools(self) -> LoweringTools:
        """The same, as far as lowering needs them."""
        return LoweringTools(self.halide, self.compiler, self.environment)


def main() -> int:
    """Print a table, and write every time to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(SIZES), metavar="PIPELINE", help="of the examples; all")
    parser.add_argument("--schedules", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=12, help="of native times, 4 or more")
    parser.add_argument("--output", type=Path, help="a JSON file of all times")
    arguments = parser.parse_args()
    bench = open_bench()
    check_emulator(EMULATOR[0], bench.environment)
    measured: dict[str, list[ScheduleTimes]] = {}
    print(
        f"{'pipeline':20}{'schedules':>10}{'native itself':>14}"
        + "".join(f"{clock:>36}" for clock in CLOCKS)
        + f"{'slow-down':>11}"
    )
    for name in arguments.names:
        with tempfile.TemporaryDirectory(prefix="sdk-ranking-") as folder:
            executable = build_schedules(bench, name, arguments.schedules, Path(folder))
            measured[name] = time_schedules(bench, executable, arguments.rounds)
        print(table_row(name, measured[name]), flush=True)
        if arguments.output:
            times = {name: [asdict(times) for times in rows] for name, rows in measured.items()}
            arguments.output.write_text(json.dumps(times, indent=1))
    return 0


def open_bench(profile: str = "x86-64") -> Bench:
    """The tools of this machine, for a target profile."""
    settings = read_settings()
    halide, cache = find_halide_install(), ContentCache(settings.cache_folder)
    compiler = HostCppCompiler(halide, cache, settings.environment)
    return Bench(load_profile(profile), halide, cache, compiler, settings.environment)


def build_schedules(bench: Bench, name: str, count: int, folder: Path, cores: int = 1) -> Executable:
    """Up to `count` different schedules of one example for so many cores, in one executable for this machine."""
    reference = parse_generator(str(EXAMPLES / f"{name}.cpp"), SIZES[name])
    program = open_generator(reference, bench.halide, bench.compiler, bench.environment)
    reference = resolve_name(reference, program.names)
    requests = _requests(bench, str(reference.name), reference.parameters, folder, cores)
    kernels: dict[str, KernelObject] = {}
    with ThreadPoolExecutor(2) as pool:
        for _ in range(_TRIES_PER_SCHEDULE * count // _TRIES_AT_ONCE + 1):
            tries = list(islice(requests, _TRIES_AT_ONCE))
            for schedule, kernel in pool.map(lambda request: _compile(program, request), tries):
                if kernel is not None and len(kernels) < count:
                    kernels.setdefault(schedule, kernel)
            if len(kernels) == count:
                break
    toolchain = ZigToolchain(bench.profile.toolchain.triple, bench.cache.root / "zig")
    tools = BuildTools(bench.halide, bench.cache, toolchain)
    return link_executable(list(kernels.values()), bench.profile.halide_target, tools, folder / "batch")


def _requests(
    bench: Bench, name: str, parameters: Mapping[str, str], folder: Path, cores: int
) -> Iterator[GeneratorRequest]:
    weights = baseline_weights(bench.halide.plugin_path("Adams2019"))
    for index, point in enumerate(random_points(0, 0, 0, folder)):
        weights_path = folder / f"{index}.weights"
        write_weights(perturb_weights(weights, point.weights_noise, point.seed), weights_path)
        search: AutoschedulerRequest = profile_autoscheduler(
            bench.halide,
            bench.profile,
            cores,
            {
                "beam_size": str(point.beam_size),
                "random_dropout": str(point.random_dropout),
                "random_dropout_seed": str(point.seed),
                "weights_path": str(weights_path),
            },
        )
        symbol = f"schedule_{index}"
        emit = ("object", "featurization")
        yield GeneratorRequest(name, symbol, symbol, folder, emit, bench.kernel_target, parameters, search)


def _compile(program: GeneratorProgram, request: GeneratorRequest) -> tuple[str, KernelObject | None]:
    result = run_generator(program, request, _GENERATOR_LIMITS)
    if not isinstance(result, GeneratedFiles):
        return "", None
    features = sha256(result.files["featurization"].read_bytes()).hexdigest()
    return features, KernelObject(request.function_name, result.files["object"])


def time_schedules(bench: Bench, executable: Executable, rounds: int) -> list[ScheduleTimes]:
    """Every schedule by every clock; the native rounds lie far apart, so that a busy while spoils none of them."""
    plugin = build_simulated_clock(bench.environment, bench.cache)
    host = probe_host()
    machine = MachineParameters(
        1, host.l1_data_cache_bytes, host.l2_cache_bytes, host.last_level_cache_bytes, vector_bits=256
    )
    simulated = (*EMULATOR, *simulated_clock_arguments(plugin, EMULATOR[0], machine, 1, marked=True))
    counted = (*EMULATOR, "-plugin", f"file={plugin}")
    one_core, one_thread = (*_EMULATED_ARGUMENTS, "--simulated-cores", "1"), (*_EMULATED_ARGUMENTS, "--threads", "1")
    thread_clock = {"LD_PRELOAD": str(_build_thread_clock(bench))}
    native: dict[str, list[float]] = {kernel: [] for kernel in executable.kernels}
    others: dict[str, list[tuple[float, float]]] = {kernel: [] for kernel in executable.kernels}
    failed: set[str] = set()
    for clock in ((), simulated, (), EMULATOR, (), counted, *[()] * (rounds - 3)):
        for kernel in executable.kernels:
            if kernel in failed:
                continue
            try:
                if not clock:
                    native[kernel].append(_run(executable, kernel, (), _NATIVE_ARGUMENTS, thread_clock)[0])
                else:
                    arguments = one_core if clock is simulated else one_thread
                    others[kernel].append(_run(executable, kernel, clock, arguments))
            except RuntimeError as error:
                print(f"left out: {error}", file=sys.stderr)
                failed.add(kernel)
    rows = []
    for kernel in sorted(set(executable.kernels) - failed):
        (simulated_s, simulated_run_s), (emulated_s, emulated_run_s), (instructions_s, _) = others[kernel]
        rounds_s = tuple(native[kernel])
        rows.append(ScheduleTimes(rounds_s, simulated_s, emulated_s, instructions_s, simulated_run_s, emulated_run_s))
    return rows


def _build_thread_clock(bench: Bench) -> Path:
    source = THREAD_CLOCK.read_bytes()

    def build(output: Path) -> None:
        command = ["cc", "-O2", "-shared", "-fPIC", str(THREAD_CLOCK), "-o", str(output)]
        run_compiler(command, bench.environment, f"{THREAD_CLOCK.name} does not compile", "cc")

    return bench.cache.get_or_build(["thread clock", source], ".so", build)


def _run(
    executable: Executable,
    kernel: str,
    emulator: Sequence[str],
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
) -> tuple[float, float]:
    """The fastest call's seconds by the program's clock, and the seconds that the whole run took."""
    command = [*emulator, str(executable.path), "--kernel", kernel, "--time", *arguments]
    program = shutil.which(command[0])
    if program is None:
        raise FileNotFoundError(command[0])
    outcome = run_limited([program, *command[1:]], _RUN_LIMITS, environment=environment or {})
    for line in outcome.log.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "timed" and outcome.succeeded:
            return min(event["repetitions_s"]), outcome.duration_s
    raise RuntimeError(f"{kernel} {outcome.describe()}: {outcome.log[-300:]}")


def rank(native_s: NDArray[np.float64], clock_s: NDArray[np.float64]) -> Ranking:
    """Compare one clock's order with the native one."""
    faster = native_s <= np.median(native_s)
    chosen = native_s[np.argsort(clock_s, kind="stable")]
    return Ranking(
        spearman=spearman(native_s, clock_s),
        spearman_of_faster_half=spearman(native_s[faster], clock_s[faster]),
        clear_pairs_in_order=clear_pairs_in_order(native_s, clock_s),
        first_choice=float(chosen[0] / native_s.min()),
        best_of_first_three=float(chosen[:3].min() / native_s.min()),
    )


def second_fastest(times_s: Sequence[float]) -> float:
    """The smallest but one."""
    return sorted(times_s)[1]


def native_agreement(rows: Sequence[ScheduleTimes]) -> float:
    """Spearman's rank correlation of every second native round with the others."""
    halves = (np.array([second_fastest(row.native_rounds_s[half::2]) for row in rows]) for half in (0, 1))
    return spearman(*halves)


def clear_pairs_in_order(native_s: NDArray[np.float64], clock_s: NDArray[np.float64]) -> float:
    """Of the pairs whose native times lie far enough apart to be told from noise, the share in the native order."""
    clear = native_s[:, None] * CLEARLY_SLOWER <= native_s[None, :]
    return float((clock_s[:, None] < clock_s[None, :])[clear].mean())


def spearman(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Spearman's rank correlation; equal values share their mean rank."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    below = (values[None, :] < values[:, None]).sum(axis=1)
    equal = (values[None, :] == values[:, None]).sum(axis=1)
    return np.asarray(below + (equal - 1) / 2, dtype=np.float64)


def table_row(name: str, rows: Sequence[ScheduleTimes]) -> str:
    """One line of the table: all / faster half, clear pairs in order, first choice (best of the first three)."""
    native_s = np.array([row.native_s for row in rows])
    cells = ""
    for clock in CLOCKS:
        ranking = rank(native_s, np.array([getattr(row, f"{clock}_s") for row in rows]))
        correlations = f"{ranking.spearman:.2f} / {ranking.spearman_of_faster_half:.2f}"
        cells += f"{correlations:>15} {ranking.clear_pairs_in_order:6.1%}"
        cells += f" {ranking.first_choice:5.2f}×({ranking.best_of_first_three:.2f})"
    slow_down = sum(row.simulated_run_s for row in rows) / sum(row.emulated_run_s for row in rows)
    return f"{name:20}{len(rows):>10}{native_agreement(rows):>14.2f}{cells}{slow_down:>10.2f}×"


if __name__ == "__main__":
    sys.exit(main())
