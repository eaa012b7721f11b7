"""Samples a minute of `sdk autotune` against Halide's own loop: same generator, same machine, same run.

    python -m benchmarks.loop_throughput examples/corner_detector.cpp --rounds 4

Both build, time and learn from batches of 32 schedules for the same target. Halide's loop does one batch (it takes
minutes); ours as many as `--rounds`, start-up and the shortest play-off included in its time. The C++ generator is
built before either clock starts. Run it on an idle machine: everything else on it lowers both figures, ours more.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import sdk
from benchmarks.halide_loop import HalideLoopResult, format_result, run_halide_loop
from halide_autotune.sdk.project.preparation import open_named_generator, open_workbench
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.profile.loader import load_profile

BATCH_SIZE = 32
GOAL = 8.0


def main() -> int:
    """Run both and print the ratio; exit code 1 when it is below the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generator", nargs="?", default="examples/corner_detector.cpp")
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sdk-throughput-") as folder:
        theirs = _run_theirs(arguments.generator, arguments.target, Path(folder) / "halide")
        ours = sdk.autotune(
            arguments.generator,
            target=arguments.target,
            options=sdk.RunOptions.of(
                no_history=True, rounds=arguments.rounds, weights="baseline", batch_size=BATCH_SIZE, play_off_turns=8
            ),
            run_folder=Path(folder) / "ours",
        )
    ratio = (60 * ours.totals.samples_timed / ours.totals.duration_s) / theirs.samples_per_minute
    if arguments.json:
        print(json.dumps({"ratio": ratio, "goal": GOAL, "halide": theirs.__dict__, "sdk": ours.to_dict()}, indent=2))
    else:
        _print(theirs, ours, ratio)
    return 0 if ratio >= GOAL else 1


def _run_theirs(generator: str, target: str, scratch: Path) -> HalideLoopResult:
    settings = read_settings()
    bench = open_workbench(settings)
    with open_named_generator(generator, (), bench, settings) as (reference, _):
        pass
    assert reference.name is not None
    binary = bench.compiler.build_generator(reference.file)
    profile = load_profile(target, settings.profile_folder)
    return run_halide_loop(binary, reference.name, profile.halide_target, scratch)


def _print(theirs: HalideLoopResult, ours: sdk.TuneResult, ratio: float) -> None:
    print("Halide's loop\n" + format_result(theirs))
    rate = 60 * ours.totals.samples_timed / ours.totals.duration_s
    print(f"sdk autotune: {ours.totals.samples_timed} samples in {ours.totals.duration_s:.1f} s: {rate:.1f} a minute")
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in ours.totals.stages_s.items())
    print(f"  {stages} (stages overlap); rest is start-up and the play-off")
    print(f"  default {ours.best.default_ms:.3f} ms, tuned {ours.best.tuned_ms:.3f} ms")
    print(f"ratio: {ratio:.1f} (goal {GOAL:g})")


if __name__ == "__main__":
    sys.exit(main())
