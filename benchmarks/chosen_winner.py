"""Whether runs choose the best of what they built, and announce what it takes: on a quiet and on a loaded machine.

    python -m benchmarks.chosen_winner corner_detector --runs 10 --budget-s 60 --output chosen.json

An example is tuned again and again, first on the machine as it is, then with other load that keeps every core busy half
of the time. After each run, on the quiet machine, everything that it timed is settled: three turns for each schedule
beside the winner, then 30 turns for the winner, whatever was announced as the best so far, and the best eight of the
others. Printed: the winner's time as a multiple of the best one's, in 30 further turns, and how far the run let the
best one come; how many winners are within 3 % of it (goal: nine of ten); how many of the announced ranges have the
settled time of what was announced (goal: 95 %); how far announced times were off; and schedules timed a minute.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import sdk
from benchmarks.paired_timing import recorded_time, time_once
from benchmarks.random_load import random_load
from benchmarks.simulated_clock_ranking import EXAMPLES, Bench, open_bench
from halide_autotune.autotune_loop.candidate import Origin, is_default, sample_name
from halide_autotune.autotune_loop.events import BestImproved, Event, SampleMeasured
from halide_autotune.targets.build.executable import BuildTools, Executable, KernelObject, link_executable
from halide_autotune.targets.toolchain.zig import ZigToolchain

NEAR = 1.03
_SCREENING_TURNS, _TURNS, _FINALISTS = 3, 30, 8
_TO_THE_END = ("--lost-over", "1e6")


@dataclass
class Kept:
    """What a run timed and announced; its objects are kept, which the run deletes.

    Attributes:
        objects: sample → its kernel.
        default: the sample of the schedule without tuning.
        announced: sample, time and range of every best so far.
    """

    run_folder: Path
    folder: Path
    objects: dict[str, KernelObject] = field(default_factory=dict)
    default: str = ""
    announced: list[tuple[str, float, tuple[float, float] | None]] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        """Note an event of the run."""
        if isinstance(event, SampleMeasured):
            sample = sample_name(event.round_index, event.task_index, event.sample_index)
            self._keep(sample, f"_r{event.round_index}_a{event.task_index}_s{event.sample_index}")
            if is_default(event.round_index, Origin(event.origin)):
                self.default = sample
        elif isinstance(event, BestImproved):
            if event.sample not in self.objects:
                self._keep(event.sample, f"_{event.sample.split('/')[0]}_a{event.task_index}")
            self.announced.append((event.sample, event.median_ms, event.range_ms))

    def _keep(self, sample: str, ending: str) -> None:
        path = next((self.run_folder / "objects").glob(f"*{ending}/*.o"))
        kept = self.folder / f"{path.parent.name}.o"
        with contextlib.suppress(FileExistsError):
            os.link(path, kept)
        self.objects[sample] = KernelObject(path.parent.name, kept)


@dataclass(frozen=True)
class Chosen:
    """One run, settled.

    Attributes:
        regret: the winner's time as a multiple of the best one's.
        reached: how far the run let the best one come: timed once, raced, or in the play-off.
        announced: for each best so far, its announced over its settled time, and whether that is in the range.
    """

    load: str
    winner: str
    best: str
    regret: float
    reached: str
    announced: Sequence[tuple[float, bool]]
    confirmed: bool
    samples: int
    duration_s: float


def main() -> int:
    """Print a line for each run and a summary; exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default="corner_detector", metavar="PIPELINE", help="of the examples")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--budget-s", type=float, default=60.0)
    parser.add_argument("--output", type=Path, help="a JSON file of all runs")
    arguments = parser.parse_args()
    bench, runs = open_bench(), []
    for load in ("quiet", "loaded"):
        for number in range(arguments.runs):
            chosen = tune_and_settle(bench, arguments.name, load, number, arguments.budget_s)
            runs.append(chosen)
            print(
                f"{load:8}{chosen.winner:18}{chosen.regret:6.3f}× {chosen.best:18}{chosen.reached:10}"
                f"{chosen.samples:5} timed,"
                f"{sum(inside for _, inside in chosen.announced):3} of {len(chosen.announced)} ranges right"
                f"{'' if chosen.confirmed else ', unconfirmed'}",
                flush=True,
            )
            if arguments.output:
                arguments.output.write_text(json.dumps([asdict(one) for one in runs], indent=1))
    reached = [summarise(load, [one for one in runs if one.load == load]) for load in ("quiet", "loaded")]
    return 0 if all(reached) else 1


def tune_and_settle(bench: Bench, name: str, load: str, number: int, budget_s: float) -> Chosen:
    """Tune an example once, then settle what its schedules take."""
    with tempfile.TemporaryDirectory(prefix="sdk-chosen-") as text:
        folder = Path(text)
        kept = Kept(folder / "run", folder)
        started_s = time.monotonic()
        with random_load(seed=number) if load == "loaded" else contextlib.nullcontext():
            result = sdk.autotune(
                str(EXAMPLES / f"{name}.cpp"),
                target="x86-64",
                options=sdk.RunOptions.of(
                    no_history=True, budget_s=budget_s, weights="baseline", seed=number, ignore_own_schedule=True
                ),
                run_folder=folder / "run",
                listen=kept,
            )
        duration_s = time.monotonic() - started_s
        winner = kept.default if result.best.sample == "default" else result.best.sample
        toolchain = ZigToolchain(bench.profile.toolchain.triple, bench.cache.root / "zig")
        tools = BuildTools(bench.halide, bench.cache, toolchain)
        kernels = list(kept.objects.values())
        executable = link_executable(kernels, bench.profile.halide_target, tools, folder / "all")
        settled_ms = settle(executable, kept, winner)
        best = min(settled_ms, key=settled_ms.__getitem__)
        regret = regret_of(executable, kept, winner, best)
        announced = [
            (ms / settled_ms[sample], between is not None and between[0] <= settled_ms[sample] <= between[1])
            for sample, ms, between in kept.announced
        ]
        samples = result.totals.samples_timed
        reached = how_far(folder / "run" / "tuning.db", kept.objects[best].name)
        return Chosen(load, winner, best, regret, reached, announced, result.best.confirmed, samples, duration_s)


def how_far(database: Path, symbol: str) -> str:
    """The last stage of a run in which a schedule was timed."""
    with contextlib.closing(sqlite3.connect(database)) as opened:
        rows = opened.execute("SELECT DISTINCT purpose FROM measurements WHERE symbol = ?", (symbol,))
        purposes = {purpose for (purpose,) in rows}
    return next(purpose for purpose in ("play-off", "race", "sample") if purpose in purposes)


def settle(executable: Executable, kept: Kept, winner: str) -> dict[str, float]:
    """What the finalists take, in milliseconds."""
    beside = kept.objects[winner].name
    screened, _ = take_turns(executable, kept.objects, beside, _SCREENING_TURNS, ())
    ranked = sorted(screened, key=screened.__getitem__)
    finalists = dict.fromkeys([winner, *(sample for sample, _, _ in kept.announced), *ranked[:_FINALISTS]])
    objects = {sample: kept.objects[sample] for sample in finalists}
    ratios, winner_ms = take_turns(executable, objects, beside, _TURNS, _TO_THE_END)
    return {sample: ratio * winner_ms for sample, ratio in ratios.items()} | {winner: winner_ms}


def regret_of(executable: Executable, kept: Kept, winner: str, best: str) -> float:
    """The winner's time over the best one's, in turns of their own.

    Of several that are equally fast one had the best luck in the turns that chose it.
    """
    if best == winner:
        return 1.0
    objects = {best: kept.objects[best]}
    ratios, _ = take_turns(executable, objects, kept.objects[winner].name, _TURNS, _TO_THE_END)
    return 1 / ratios[best]


def take_turns(
    executable: Executable, objects: Mapping[str, KernelObject], beside: str, turns: int, options: Iterable[str]
) -> tuple[dict[str, float], float]:
    """Each one's ratio to the kernel beside it, and what that takes in milliseconds: medians over the turns."""
    chance = random.Random(0)
    logs: dict[str, list[float]] = {sample: [] for sample in objects}
    beside_ms = []
    for _ in range(turns):
        for sample in chance.sample(list(objects), len(objects)):
            timed, _ = time_once(executable, objects[sample].name, ("--beside", beside, *options))
            logs[sample].append(math.log(recorded_time(timed)))
            assert timed.beside is not None, "it was timed beside the winner"
            beside_ms.append(timed.beside.median_s * 1e3)
    return {sample: math.exp(statistics.median(several)) for sample, several in logs.items()}, statistics.median(
        beside_ms
    )


def summarise(load: str, runs: Sequence[Chosen]) -> bool:
    """Print what the runs on a machine in one state have in common; whether the goals are met."""
    regret = statistics.median(run.regret for run in runs)
    near = sum(run.regret <= NEAR for run in runs)
    announced = [one for run in runs for one in run.announced]
    inside = sum(inside for _, inside in announced)
    off = statistics.median(abs(math.log(ratio)) for ratio, _ in announced)
    pace = statistics.median(60 * run.samples / run.duration_s for run in runs)
    print(
        f"{load}: {near} of {len(runs)} winners within {NEAR - 1:.0%} of the best (median {regret:.3f}×);"
        f" {inside} of {len(announced)} announced ranges right, announced times off by {off:.1%} in the median;"
        f" {pace:.0f} schedules a minute"
    )
    return near >= 0.9 * len(runs) and inside >= 0.95 * len(announced)


if __name__ == "__main__":
    sys.exit(main())
