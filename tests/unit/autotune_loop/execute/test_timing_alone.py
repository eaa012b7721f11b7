"""A schedule is timed alone on a device where the kernel to time it beside fails, and nothing else changes that."""

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
from halide_autotune.devices.transport import RunOutcome
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.process.stop_signal import StopSignal

EXECUTABLE = Executable(Path("batch"), (), "sha256")
PAIRED = MeasureSettings(beside="best", alone_without_it=True)
CRASH = -4


@dataclass
class Board:
    """A device on which some kernels crash, by themselves or beside another one.

    Attributes:
        crashing: those kernels.
        runs: of each process the kernel, and the one beside it.
    """

    crashing: set[str] = field(default_factory=set)
    runs: list[tuple[str, str]] = field(default_factory=list)

    def push(self, source: Path, name: str) -> None:
        """Nothing to do."""

    def pull(self, name: str, destination: Path) -> None:
        raise AssertionError("nothing is fetched")

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        values = dict(itertools.pairwise(arguments))
        kernel, beside = values["--kernel"], values.get("--beside", "")
        self.runs.append((kernel, beside))
        if self.crashing & {kernel, beside}:
            return RunOutcome(CRASH, False, False, "", 0.1)
        report = {"event": "timed", "repetitions_s": [1e-3], "disturbed": [False], "stopped_by": "time"}
        if beside:
            report |= {"beside": beside, "beside_s": [2e-3], "beside_disturbed": [False], "beside_first": [True]}
        return RunOutcome(0, False, False, json.dumps(report), 0.1)

    def remove(self, name: str) -> None:
        raise AssertionError("nothing is deleted")

    def close(self) -> None:
        """Nothing to do."""


def session_on(board: Board, clock: Clock = Clock.WALL) -> DeviceSession:
    device = Device("board", "ssh", "arm64", clock, 1, uses_host_cores=False)
    return DeviceSession(device, lambda: board, KernelInputs())


def measure(session: DeviceSession, symbol: str, settings: MeasureSettings = PAIRED) -> Timing:
    return session.measure(EXECUTABLE, symbol, settings, None, Tolerance(), StopSignal())


def test_where_the_yardstick_fails_schedules_are_timed_alone() -> None:
    board = Board(crashing={"best"})
    session = session_on(board)
    timings = [measure(session, symbol) for symbol in ("a", "b")]
    assert [timing.result.kernel for timing in timings if isinstance(timing.result, Measurement)] == ["a", "b"]
    assert all(isinstance(timing.result, Measurement) and timing.result.ratio is None for timing in timings)
    notice = (
        "board times each schedule alone, because the one to time them beside, best, fails there:"
        " The kernel was ended by SIGILL."
    )
    assert {timing.alone for timing in timings} == {notice}
    assert board.runs == [("a", "best"), ("best", ""), ("a", ""), ("b", "")], "the yardstick is tried once"


def test_the_next_yardstick_is_used_again() -> None:
    session = session_on(Board(crashing={"best"}))
    measure(session, "a")
    timing = measure(session, "b", MeasureSettings(beside="better", alone_without_it=True))
    assert isinstance(timing.result, Measurement) and timing.result.ratio == pytest.approx(0.5)
    assert timing.alone == ""


@pytest.mark.parametrize("first", ["good", "bad"])
def test_a_schedule_that_fails_beside_a_sound_yardstick_has_failed(first: str) -> None:
    board = Board(crashing={"bad"})
    session = session_on(board)
    for symbol in (first, "bad"):
        timing = measure(session, symbol)
    assert isinstance(timing.result, MeasureFailure) and timing.result.reason is MeasureFailureReason.CRASHED
    assert timing.result.kernel == "bad" and timing.alone == ""
    assert board.runs.count(("best", "")) == (1 if first == "bad" else 0), "it is in doubt until it has worked once"


def test_without_leave_a_failure_beside_another_kernel_is_a_failure() -> None:
    """As in a play-off, where a time alone cannot be compared with ratios."""
    board = Board(crashing={"best"})
    timing = measure(session_on(board), "a", MeasureSettings(beside="best"))
    assert isinstance(timing.result, MeasureFailure) and timing.alone == ""
    assert board.runs == [("a", "best")]


def test_on_a_clock_without_noise_nothing_is_timed_beside_another() -> None:
    board = Board(crashing={"a", "best"})
    timing = measure(session_on(board, Clock.CYCLES), "a")
    assert isinstance(timing.result, MeasureFailure)
    assert board.runs == [("a", "")]


def test_the_reference_is_timed_alone_whatever_the_schedule_is_timed_beside() -> None:
    """A board that joins, or comes back, when the run has another yardstick, which the reference's executable lacks."""
    board = Board()
    run = ReferenceRun(Executable(Path("reference"), (), "other"), "reference", "reference.raw", 60.0)
    timing = session_on(board).measure(EXECUTABLE, "a", PAIRED, run, Tolerance(), StopSignal())
    assert [reference.kernel for reference in timing.references] == ["reference"]
    assert ("reference", "best") not in board.runs and board.runs[-1] == ("a", "best")
