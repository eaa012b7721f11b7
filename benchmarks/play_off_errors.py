"""How often play-offs err: equals of which one is called faster, and true gains that are not found.

    python -m benchmarks.play_off_errors --trials 200

Two kernels of one generator are timed on this machine: one has `--gain` more rows than the other, and so much more to
do. A play-off of the smaller one against itself must not have a winner; one against the larger must. Nothing is
simulated, the noise of the machine included; let something else run beside it to see that it only takes more turns.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from scipy.stats import beta

from halide_autotune.autotune_loop.measure.kernel_bench import BenchPlan, BuiltKernels, KernelBench
from halide_autotune.autotune_loop.play_off.course import PlayOffCourse, Turn
from halide_autotune.autotune_loop.play_off.times import ProcessTime, turn_settings
from halide_autotune.autotune_loop.play_off.verdict import Verdict
from halide_autotune.autotune_loop.specification.objective import CONFIDENCE, Objective
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.devices.device import Device
from halide_autotune.devices.local.open_device import choose_device
from halide_autotune.devices.remote.open import device_transport
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.devices.transport import Transport
from halide_autotune.sdk.project.preparation import open_named_generator, open_workbench
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.build.artifacts import KernelRecipe, build_kernel
from halide_autotune.targets.build.executable import BuildTools, link_executable
from halide_autotune.targets.profile.host_probe import probe_host
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain

GENERATOR = Path(__file__).parents[1] / "examples" / "separable_filter.py"
ROWS, COLUMNS = 480, 256
MOST_FALSE_WINS = 0.05
FEWEST_TRUE_WINS = 0.90
# Short, so that hundreds of play-offs take minutes; a real one is steadier.
SETTINGS = MeasureSettings(warm_up_s=0.002, max_time_s=0.01)


@dataclass(frozen=True)
class Result:
    """What was counted.

    Attributes:
        highest_false_rate: see `highest_rate`.
        found: play-offs that found the true gain.
        true_ratio: of the two kernels' times, the median over all play-offs.
        turns: the mean number of turns of a verdict, of equals and of the true gain.
    """

    trials: int
    false_wins: int
    highest_false_rate: float
    found: int
    true_ratio: float
    turns: tuple[float, float]
    duration_s: float


def main() -> int:
    """Count; exit code 1 when either rate misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=60, help="play-offs of each kind")
    parser.add_argument("--gain", type=float, default=0.05, help="how much more the larger kernel has to do")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    started_s = time.monotonic()
    with opened_bench(arguments.gain) as (bench, device):
        small, twin, large = bench.built.symbols
        equal, better = [], []
        for trial in range(arguments.trials):
            seed = arguments.seed + trial
            equal.append(play_off(bench, device, {"stays": small, "challenges": twin}, seed))
            better.append(play_off(bench, device, {"stays": large, "challenges": small}, seed))
            if not arguments.json and sys.stderr.isatty():
                print(f"\r{trial + 1} of {arguments.trials}", end="", file=sys.stderr)
    result = count(equal, better, time.monotonic() - started_s)
    print(json.dumps(asdict(result)) if arguments.json else _text(result))
    is_good = result.false_wins <= MOST_FALSE_WINS * result.trials and result.found >= FEWEST_TRUE_WINS * result.trials
    return 0 if is_good else 1


def count(equal: Sequence[Verdict], better: Sequence[Verdict], duration_s: float) -> Result:
    """Sum up the verdicts on equals, 'stays' and 'challenges', and on a true gain."""
    false_wins = sum(verdict.winner == "challenges" for verdict in equal)
    ratios = sorted(verdict.estimate.ratio for verdict in better if verdict.estimate is not None)
    return Result(
        trials=len(equal),
        false_wins=false_wins,
        highest_false_rate=highest_rate(false_wins, len(equal)),
        found=sum(verdict.winner == "challenges" for verdict in better),
        true_ratio=ratios[len(ratios) // 2],
        turns=(_mean_turns(equal), _mean_turns(better)),
        duration_s=duration_s,
    )


def highest_rate(wins: int, trials: int) -> float:
    """The true rate is below this with `CONFIDENCE` (Clopper and Pearson)."""
    return 1.0 if wins == trials else float(beta.ppf(CONFIDENCE, wins + 1, trials - wins))


def _mean_turns(verdicts: Sequence[Verdict]) -> float:
    return sum(verdict.turns for verdict in verdicts) / len(verdicts)


def play_off(bench: KernelBench, device: Device, symbols: Mapping[str, str], seed: int) -> Verdict:
    """One play-off of two names, each of a kernel."""

    def time_turn(order: Sequence[str], yardstick: str | None) -> Turn:
        times, beside = {}, None if yardstick is None else symbols[yardstick]
        for name in order:
            result = bench.measure(device, symbols[name], turn_settings(SETTINGS, symbols[name], beside))
            if not isinstance(result, Measurement):
                raise SystemExit(result.message)
            times[name] = ProcessTime.of(result, beside)
        return Turn({device.name: times})

    contenders = {name: name for name in symbols}
    course = PlayOffCourse(contenders, "stays", Objective(), seed, time_turn, lambda: math.inf, [device.name])
    return course.run().verdict


@contextlib.contextmanager
def opened_bench(gain: float) -> Iterator[tuple[KernelBench, Device]]:
    """The kernels, one of them twice, in one executable on this machine, single-threaded as their own schedule is."""
    settings = read_settings()
    tools = open_workbench(settings)
    profile = load_profile("host", settings.profile_folder)
    device = choose_device(profile, "local", 1, probe_host())
    own = ScheduleChoice(OWN_SCHEDULE, None)
    build_tools = BuildTools(tools.halide, tools.cache, open_toolchain(profile, settings.cache_folder, None))
    with (
        tempfile.TemporaryDirectory(prefix="sdk-play-off-") as text,
        open_named_generator(str(GENERATOR), (), tools, settings) as (reference, program),
    ):
        assert reference.name is not None
        recipe = KernelRecipe(program, reference.name, reference.name, {}, profile, own)
        folder = Path(text)
        kernels = []
        for name, rows in (("small", ROWS), ("twin", ROWS), ("large", round(ROWS * (1 + gain)))):
            parameters = {"width": str(COLUMNS), "height": str(rows)}
            kernels.append(build_kernel(replace(recipe, parameters=parameters, function_name=name), folder))
        executable = link_executable(kernels, profile.halide_target, build_tools, folder / "bench")
        workspace = Workspace(settings.cache_folder, settings.cache_folder / "locks", settings.environment)
        plan = BenchPlan(recipe, [own], [device], KernelInputs(), SETTINGS, build_tools, workspace)
        cores = frozenset([min(os.sched_getaffinity(0))])

        def open_transport(opened: Device) -> Transport:
            return device_transport(opened, profile, folder / "device", settings.environment, cores, None, tools.cache)

        built = BuiltKernels(executable, ("small", "twin", "large"), {}, Tolerance(), None)
        with contextlib.closing(KernelBench(plan, built, open_transport, None, lambda step: None)) as bench:
            yield bench, device


def _text(result: Result) -> str:
    share = result.found / result.trials
    return (
        f"{result.trials} play-offs of each kind in {result.duration_s:.0f} s\n"
        f"equals: {result.false_wins} false wins ({result.false_wins / result.trials:.1%}, with 95 % confidence below"
        f" {result.highest_false_rate:.1%}; goal at most {MOST_FALSE_WINS:.0%}), {result.turns[0]:.0f} turns each\n"
        f"a true gain (measured {1 / result.true_ratio:.3f} times as fast): found {result.found} times ({share:.1%};"
        f" goal at least {FEWEST_TRUE_WINS:.0%}), {result.turns[1]:.0f} turns each"
    )


if __name__ == "__main__":
    sys.exit(main())
