"""A schedule is checked and timed at every size, each against the reference there."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.execute.device_session import DeviceSession, ReferenceRun, Timing
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.devices.timing.measurement_at_sizes import medians_by_size_s
from halide_autotune.devices.transport import RunOutcome
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.process.stop_signal import StopSignal

EXECUTABLE = Executable(Path("batch"), (), "sha256")
REFERENCE = ReferenceRun(Executable(Path("reference"), (), "other"), "reference", "reference.raw", 60.0)
INPUTS = KernelInputs(sizes={"input": "64x48"}, also_sizes=("input=32x24", "input=16x12"))
LABELS = ["input=64x48", "input=32x24", "input=16x12"]
TIMES_S = {"64x48": 8e-3, "32x24": 4e-3, "16x12": 2e-3}
WRONG_OUTPUT = 7


@dataclass
class Board:
    """A device with a kernel that is wrong at some sizes.

    Attributes:
        wrong_at: those sizes.
        runs: of each process its arguments by their names.
    """

    wrong_at: set[str] = field(default_factory=set)
    runs: list[dict[str, str]] = field(default_factory=list)

    def push(self, source: Path, name: str) -> None:
        """Nothing to do."""

    def pull(self, name: str, destination: Path) -> None:
        raise AssertionError("nothing is fetched")

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        values = dict(itertools.pairwise(arguments))
        self.runs.append(values)
        size = values["--size"].removeprefix("input=")
        if values["--kernel"] == "k" and size in self.wrong_at:
            error = {"event": "error", "kind": "wrong_output", "message": "wrong"}
            return RunOutcome(WRONG_OUTPUT, False, False, json.dumps(error), 0.1)
        report: dict[str, object] = {
            "event": "timed",
            "repetitions_s": [TIMES_S[size]],
            "disturbed": [False],
            "stopped_by": "time",
        }
        if beside := values.get("--beside"):
            others = {"beside_s": [2 * TIMES_S[size]], "beside_disturbed": [False], "beside_first": [True]}
            report |= {"beside": beside, **others}
        return RunOutcome(0, False, False, json.dumps(report), 0.1)

    def remove(self, name: str) -> None:
        raise AssertionError("nothing is deleted")

    def close(self) -> None:
        """Nothing to do."""


def timed(
    board: Board,
    settings: MeasureSettings,
    inputs: KernelInputs = INPUTS,
    clock: Clock = Clock.WALL,
) -> Timing:
    device = Device("board", "ssh", "arm64", clock, 1, uses_host_cores=False)
    session = DeviceSession(device, lambda: board, inputs)
    return session.measure(EXECUTABLE, "k", settings, REFERENCE, Tolerance(), StopSignal())


@pytest.mark.parametrize("clock", [Clock.WALL, Clock.SIMULATED])
def test_each_size_is_compared_with_the_reference_there(clock: Clock) -> None:
    board = Board()
    timing = timed(board, MeasureSettings(), clock=clock)
    assert isinstance(timing.result, Measurement) and timing.result.output_checked
    assert medians_by_size_s(timing.result) == dict(zip(LABELS, TIMES_S.values(), strict=True))
    assert timing.result.median_s == pytest.approx(4e-3)
    (reference,) = timing.references
    assert reference.median_s == pytest.approx(4e-3) and list(medians_by_size_s(reference)) == LABELS
    written = {run["--write-reference"]: run["--size"] for run in board.runs if "--write-reference" in run}
    assert written == {"reference.raw": LABELS[0], "1_reference.raw": LABELS[1], "2_reference.raw": LABELS[2]}
    compared = {run["--reference"]: run["--size"] for run in board.runs if run["--kernel"] == "k"}
    assert compared == written


def test_at_a_further_size_a_schedule_may_not_compute_more_and_the_reference_may() -> None:
    board = Board()
    timed(board, MeasureSettings())
    exact = [run["--size"] for run in board.runs if "--exact-outputs" in run]
    assert exact == LABELS[1:]
    assert all(run["--kernel"] == "k" for run in board.runs if "--exact-outputs" in run)


def test_a_wrong_output_at_one_size_is_the_schedules_failure() -> None:
    board = Board(wrong_at={"32x24"})
    timing = timed(board, MeasureSettings())
    assert isinstance(timing.result, MeasureFailure) and timing.result.reason is MeasureFailureReason.WRONG_OUTPUT
    assert timing.result.message.startswith("At input=32x24: ")
    sizes = [run["--size"] for run in board.runs if run["--kernel"] == "k"]
    assert sizes == LABELS[:2], "what is wrong is not timed further"


def test_a_schedule_may_be_slow_at_a_size_if_it_is_fast_at_the_others() -> None:
    board = Board()
    settings = MeasureSettings(beside="best", lost_over=1.1, give_up_over_s=1e-3)
    timing = timed(board, settings)
    assert isinstance(timing.result, Measurement) and timing.result.ratio == pytest.approx(0.5)
    runs = [run for run in board.runs if run["--kernel"] == "k"]
    assert [float(run["--lost-over"]) for run in runs] == pytest.approx([1.1**3] * 3)
    assert not any("--give-up-over-s" in run for run in runs)


def test_the_limit_is_one_that_the_runner_takes() -> None:
    board = Board()
    timed(board, MeasureSettings(beside="best", lost_over=1e6))
    assert {run["--lost-over"] for run in board.runs if "--lost-over" in run} == {"1000000.0"}


def test_one_size_is_timed_as_ever() -> None:
    board = Board()
    settings = MeasureSettings(beside="best", lost_over=1.1, give_up_over_s=1e-3)
    timing = timed(board, settings, KernelInputs(sizes={"input": "64x48"}))
    assert type(timing.result) is Measurement
    (run,) = [run for run in board.runs if run["--kernel"] == "k"]
    assert (run["--reference"], run["--lost-over"], run["--give-up-over-s"]) == ("reference.raw", "1.1", "0.001")
