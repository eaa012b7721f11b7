"""A board whose speed changes, on a clock of its own: which timings its canary lets through to the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.execute.device_session import DeviceSession
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import Measure, OpenDevice
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.measure.dispatcher import Dispatcher
from halide_autotune.autotune_loop.measure.retry_state import MeasureJob
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.devices.agent.protocol import Printable
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.health import device_speed
from halide_autotune.devices.remote.transport import AgentTransport, OpenedDevice
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, Measurement
from halide_autotune.devices.transport import RunOutcome
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.scripted_executor import ScriptedExecutor

EXECUTABLE = Executable(Path("batch"), (), "sha256")
ALONE, PAIRED = MeasureSettings(), MeasureSettings(beside="yardstick", alone_without_it=True)
SCHEDULES = [f"s{index}" for index in range(60)]
KERNEL_S, YARDSTICK_S, CANARY_S = 0.003, 0.002, 0.001
REPETITION_S, REPETITIONS = 0.03, 10
PAUSE_S = 0.25


@dataclass
class Board:
    """Its clock advances by what it does, and stands still otherwise.

    Attributes:
        slowness: the time of the clock → how many times as long everything takes then.
        timings: how often a schedule was timed.
    """

    slowness: Callable[[float], float]
    now_s: float = 0.0
    timings: int = 0

    def works(self, duration_s: float) -> float:
        """The seconds that work of a usual duration takes now."""
        took_s = duration_s * self.slowness(self.now_s)
        self.now_s += took_s
        return took_s

    def monotonic(self) -> float:
        return self.now_s


class BoardTransport(AgentTransport):
    """The transport of such a board, without a wire."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def open(self) -> OpenedDevice:
        text: Printable = "boot"
        return OpenedDevice(text, "aarch64")

    def push(self, source: Path, name: str) -> None:
        """Nothing to do."""

    def canary(self) -> float:
        return self._board.works(CANARY_S)

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        board, is_paired = self._board, "--beside" in arguments
        board.timings += 1
        board.now_s += PAUSE_S
        before_s = self.canary()
        own_s, beside_s = [], []
        for _ in range(REPETITIONS):
            own_s.append(board.works(REPETITION_S) * KERNEL_S / REPETITION_S)
            if is_paired:
                beside_s.append(board.works(REPETITION_S) * YARDSTICK_S / REPETITION_S)
        marks = [False] * REPETITIONS
        report: dict[str, object] = {"event": "timed", "repetitions_s": own_s, "stopped_by": "precision"}
        if is_paired:
            report |= {"beside": "yardstick", "beside_s": beside_s, "beside_disturbed": marks, "beside_first": marks}
        return RunOutcome(0, False, False, json.dumps(report), 0.6, (before_s, self.canary()), "boot")

    def close(self) -> None:
        """Nothing to do."""


class BoardStop(StopSignal):
    """Waiting takes no time but the board's."""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self._board = board

    def wait(self, timeout_s: float) -> bool:
        self._board.now_s += timeout_s
        return self.is_set()


@dataclass
class Run:
    """What a run with one such board got."""

    board: Board
    database: RunDatabase
    session: DeviceSession
    kept: list[Measurement] = field(default_factory=list)
    failed: list[MeasureFailure] = field(default_factory=list)
    epochs: list[str] = field(default_factory=list)

    @property
    def kept_share(self) -> float:
        return len(self.kept) / self.board.timings

    def time(self, settings: MeasureSettings) -> None:
        """Time all schedules through the dispatcher, which has those timed again that do not count."""
        executor = ScriptedExecutor(self._answer)
        dispatcher = Dispatcher(
            executor,
            ["board"],
            self.database,
            lambda event: None,
            patience_s=600.0,
            report_health=lambda name, trouble: None,
        )
        dispatcher.open(lambda: False)

        def finish(job: MeasureJob, result: Measurement | MeasureFailure, held_s: float) -> None:
            if isinstance(result, Measurement):
                self.kept.append(result)
            else:
                self.failed.append(result)

        jobs = [MeasureJob(EXECUTABLE, symbol, 0, None, Tolerance()) for symbol in SCHEDULES]
        dispatcher.run(jobs, lambda job: settings, finish, lambda: False)
        executor.close()

    def _answer(self, task: Task[Any]) -> object:
        if isinstance(task, OpenDevice):
            self.session.open()
            return self.session.boot
        assert isinstance(task, Measure)
        what = (task.executable, task.symbol, task.settings, task.reference, task.tolerance)
        timing = self.session.measure(*what, BoardStop(self.board))
        if isinstance(timing.result, Measurement) and timing.epoch not in self.epochs:
            self.epochs.append(timing.epoch)
        return timing


MakeRun = Callable[[Callable[[float], float]], Run]


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeRun]:
    database = RunDatabase(tmp_path / "tuning.db")

    def make(slowness: Callable[[float], float]) -> Run:
        board = Board(slowness)
        monkeypatch.setattr(device_speed, "time", board)
        device = Device("board", "ssh", "arm64", Clock.WALL, 1, uses_host_cores=False)
        return Run(board, database, DeviceSession(device, lambda: BoardTransport(board), KernelInputs()))

    yield make
    database.close()


def alternating(now_s: float) -> float:
    """Two speeds, 20 % apart, three seconds each."""
    return 1.2 if now_s % 6.0 >= 3.0 else 1.0


@pytest.mark.parametrize("start_s", [0.0, 3.0])
def test_pairs_of_a_board_with_two_speeds_count(make_run: MakeRun, start_s: float) -> None:
    """Whichever speed the baseline is of."""
    run = make_run(alternating)
    run.board.now_s = start_s
    run.time(PAIRED)
    assert len(run.kept) == len(SCHEDULES) and not run.failed
    assert run.kept_share >= 0.9
    assert {round(canary_s / CANARY_S, 3) for one in run.kept for canary_s in one.canary_s} == {1.0, 1.2}
    for one in run.kept:
        assert one.ratio == pytest.approx(KERNEL_S / YARDSTICK_S)


def test_alone_only_the_usual_speed_counts(make_run: MakeRun) -> None:
    run = make_run(alternating)
    run.time(ALONE)
    assert len(run.kept) == len(SCHEDULES) and not run.failed
    assert run.kept_share < 0.95
    assert {round(canary_s / CANARY_S, 3) for one in run.kept for canary_s in one.canary_s} == {1.0}
    dropped = run.board.timings - len(SCHEDULES)
    assert run.database.incident_counts() == {"board: speed changed": dropped}


@pytest.mark.parametrize("settings", [ALONE, PAIRED])
@pytest.mark.parametrize("factor", [3.0, 1 / 3.0])
def test_a_board_that_has_become_another_is_noticed(
    make_run: MakeRun, settings: MeasureSettings, factor: float
) -> None:
    """Its times do not count; after five minutes a new epoch begins, with a new baseline."""
    run = make_run(lambda now_s: factor if now_s >= 20.0 else 1.0)
    run.time(settings)
    assert len(run.kept) == len(SCHEDULES) and not run.failed
    incidents = run.database.incident_counts()["board: speed changed"]
    assert incidents == 2, "a schedule that was timed meanwhile, and the wait for the usual speed"
    assert run.board.timings == len(SCHEDULES) + 1
    assert run.board.now_s > 300.0
    usual = [one for one in run.kept if max(one.canary_s) == pytest.approx(CANARY_S)]
    other = [one for one in run.kept if max(one.canary_s) == pytest.approx(factor * CANARY_S)]
    assert usual and other and len(usual) + len(other) == len(SCHEDULES)
    assert len(run.epochs) == 2
