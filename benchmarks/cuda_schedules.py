"""How many schedules sampled for a card assemble, and how many it could not run; no card is needed.

    python -m benchmarks.cuda_schedules [GENERATOR…] --count 20

Samples Anderson2021 schedules of the examples, or of the generators that are named, as `sdk autotune` does (dropout,
random tilings, noise on the weights), generates their code, assembles it with NVIDIA's `ptxas`, and holds what the
kernels need against the card's limits. Exit code 1 where a schedule does not assemble.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.autotune_loop.candidate import SearchPoint
from halide_autotune.autotune_loop.search.plan import random_points
from halide_autotune.sdk.project.preparation import Workbench, open_named_generator, open_workbench
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.cuda.device_code import CardCheck, embedded_ptx, run_checked_generator
from halide_autotune.targets.cuda.ptxas import AssembledKernel, assemble, find_ptxas
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason, GeneratorRequest
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.schedule.autoschedulers import profile_autoscheduler
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import Weights, write_weights

PIPELINES = tuple(
    Path("examples", f"{name}.cpp")
    for name in ("separable_filter", "corner_detector", "matrix_product", "bilateral_grid")
)
_LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
_EMIT = ("object", "featurization")


@dataclass
class Tally:
    """What became of one pipeline's samples.

    Attributes:
        sampled: searches, each with code.
        schedules: distinct features.
        failed: the generator's failures, by reason.
        unrunnable: of those that no device would see, why.
        spilling: schedules with registers in memory.
        most_registers: of any kernel's thread.
    """

    sampled: int = 0
    schedules: set[bytes] = field(default_factory=set)
    failed: Counter[str] = field(default_factory=Counter)
    unrunnable: list[str] = field(default_factory=list)
    spilling: int = 0
    most_registers: int = 0

    @property
    def not_assembled(self) -> int:
        """Schedules that `ptxas` refused."""
        return sum("ptxas fails" in message for message in self.unrunnable)


def main() -> int:
    """Sample, assemble, print; exit code 1 where a schedule does not assemble."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="cuda-sm80")
    parser.add_argument("--count", type=int, default=20, help="samples of each pipeline")
    parser.add_argument("generators", nargs="*", type=Path, default=PIPELINES)
    arguments = parser.parse_args()
    settings = read_settings()
    profile = load_profile(arguments.target, settings.profile_folder)
    ptxas = find_ptxas(settings.environment)
    if profile.machine.gpu is None or ptxas is None:
        print("A target with a card, and ptxas, are needed: pip install nvidia-cuda-nvcc-cu12", file=sys.stderr)
        return 2
    check = CardCheck(profile.machine.gpu, ptxas)
    tallies = {
        generator.stem: _sample(generator, arguments.count, profile, check, settings)
        for generator in arguments.generators
    }
    _print(tallies, profile)
    return 1 if any(tally.not_assembled for tally in tallies.values()) else 0


def _sample(generator: Path, count: int, profile: TargetProfile, check: CardCheck, settings: Settings) -> Tally:
    tally = Tally()
    bench = open_workbench(settings)
    weights = baseline_weights(bench.halide.plugin_path(profile.autoscheduler.name))
    with (
        open_named_generator(str(generator), (), bench, settings) as (reference, program),
        tempfile.TemporaryDirectory(prefix="sdk-cuda-") as scratch,
    ):
        assert reference.name is not None
        points = random_points(0, 0, 0, Path(scratch) / "start.weights")
        for number, point in enumerate(itertools.islice(points, count)):
            folder = Path(scratch) / str(number)
            request = _request(reference.name, point, folder, weights, profile, bench)
            _count(tally, program, request, check)
    return tally


def _request(
    name: str, point: SearchPoint, folder: Path, weights: Weights, profile: TargetProfile, bench: Workbench
) -> GeneratorRequest:
    folder.mkdir()
    noisy = folder / "noisy.weights"
    write_weights(perturb_weights(weights, point.weights_noise, point.seed), noisy)
    parameters: Mapping[str, str] = {
        "beam_size": str(point.beam_size),
        "random_dropout": str(point.random_dropout),
        "random_dropout_seed": str(point.seed),
        "randomize_tilings": "1",
        "weights_path": str(noisy),
    }
    autoscheduler = profile_autoscheduler(bench.halide, profile, profile.machine.parallelism, parameters)
    target = profile.halide_target + "-no_runtime"
    return GeneratorRequest(name, name, name, folder, _EMIT, target, {}, autoscheduler)


def _count(tally: Tally, program: GeneratorProgram, request: GeneratorRequest, check: CardCheck) -> None:
    tally.sampled += 1
    result = run_checked_generator(program, request, _LIMITS, check)
    if isinstance(result, GeneratorFailure):
        if result.reason is GeneratorFailureReason.UNRUNNABLE:
            tally.unrunnable.append(result.message)
        else:
            tally.failed[result.message.splitlines()[0]] += 1
        return
    tally.schedules.add(result.files["featurization"].read_bytes())
    kernels = _kernels(result.files["object"], check)
    tally.spilling += any(kernel.spill_bytes for kernel in kernels)
    tally.most_registers = max([tally.most_registers, *(kernel.registers for kernel in kernels)])


def _kernels(object_path: Path, check: CardCheck) -> list[AssembledKernel]:
    assert check.ptxas is not None
    assembled = [assemble(check.ptxas, ptx, check.card.architecture) for ptx in embedded_ptx(object_path)]
    return [kernel for kernels in assembled if isinstance(kernels, list) for kernel in kernels]


def _print(tallies: Mapping[str, Tally], profile: TargetProfile) -> None:
    assert profile.machine.gpu is not None
    print(f"{profile.name}, {profile.machine.gpu.name}, {profile.machine.gpu.architecture}\n")
    print("| pipeline | sampled | no code | assembled | dropped | distinct | with spills | most registers |")
    print("|---|---|---|---|---|---|---|---|")
    for name, tally in tallies.items():
        without = tally.failed.total()
        coded = tally.sampled - without
        print(
            f"| {name} | {tally.sampled} | {without} | {coded - tally.not_assembled} of {coded} "
            f"| {len(tally.unrunnable)} | {len(tally.schedules)} | {tally.spilling} | {tally.most_registers} |"
        )
    for name, tally in tallies.items():
        for message, number in tally.failed.items():
            print(f"{name}, no code, {number} times: {message}")
        for message in tally.unrunnable:
            print(f"{name}, dropped: {message}")


if __name__ == "__main__":
    sys.exit(main())
