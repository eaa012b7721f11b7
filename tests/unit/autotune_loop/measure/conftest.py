"""What tests of the dispatcher share: one on scripted devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import Event
from halide_autotune.autotune_loop.execute.device_session import ReferenceRun, Timing
from halide_autotune.autotune_loop.measure import device_state as state
from halide_autotune.autotune_loop.measure.dispatcher import Dispatcher
from halide_autotune.autotune_loop.measure.retry_state import MeasureJob
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.devices.timing.measure_settings import MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, Measurement
from halide_autotune.targets.build.executable import Executable
from tests.process_state import PATIENCE_S
from tests.scripted_executor import MeasureScript, OpenScript, ScriptedDevices, ScriptedExecutor, timed

EXECUTABLE = Executable(Path("batch"), (), "")
REFERENCE = ReferenceRun(EXECUTABLE, "reference", "reference_0.raw", 1.0)
SYMBOLS = [f"s{index}" for index in range(12)]


def always_timed(device: str, symbol: str, times: int) -> Timing:
    return timed(device, symbol)


class Bench:
    """A dispatcher on scripted devices, with what it said and what came out."""

    def __init__(
        self,
        database: RunDatabase,
        database_path: Path,
        devices: list[str],
        measure: MeasureScript,
        open_device: OpenScript,
        at_once: int,
        patience_s: float,
        quiet_patience_s: float,
    ) -> None:
        self.devices = ScriptedDevices(measure, open_device)
        self.executor = ScriptedExecutor(self.devices.answer, at_once)
        self.events: list[Event] = []
        self.health: list[tuple[str, str | None]] = []
        self.results: dict[str, Measurement | MeasureFailure] = {}
        self.database, self.database_path = database, database_path
        self.dispatcher = Dispatcher(
            self.executor,
            devices,
            database,
            self.events.append,
            patience_s=patience_s,
            report_health=lambda name, trouble: self.health.append((name, None if trouble is None else str(trouble))),
            at_once=at_once,
            quiet_patience_s=quiet_patience_s,
        )

    def run(
        self,
        symbols: list[str],
        enough: Callable[[], bool] = lambda: False,
        device: str | None = None,
        overdue: Callable[[], bool] = lambda: False,
    ) -> int:
        jobs = [MeasureJob(EXECUTABLE, symbol, 0, None, Tolerance(), device) for symbol in symbols]

        def finish(job: MeasureJob, result: Measurement | MeasureFailure, held_s: float) -> None:
            assert job.symbol not in self.results, "a schedule has one result"
            self.results[job.symbol] = result

        return self.dispatcher.run(jobs, lambda job: MeasureSettings(), finish, enough, overdue)

    def reasons(self) -> Counter[str]:
        return Counter(
            "timed" if isinstance(result, Measurement) else result.reason.value for result in self.results.values()
        )


MakeBench = Callable[..., Bench]
# For devices that never come back.
SHORT_PATIENCE_S = 0.5


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[MakeBench]:
    made: list[Bench] = []
    path = tmp_path / "tuning.db"
    database = RunDatabase(path)

    def make(
        devices: list[str],
        measure: MeasureScript,
        open_device: OpenScript = lambda device, times: "boot",
        at_once: int = 1,
        patience_s: float = PATIENCE_S,
        quiet_patience_s: float = 0.0,
    ) -> Bench:
        bench = Bench(database, path, devices, measure, open_device, at_once, patience_s, quiet_patience_s)
        made.append(bench)
        bench.dispatcher.open(lambda: False)
        return bench

    yield make
    for bench in made:
        bench.executor.close()
    database.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices are looked at again soon, so that a test need not wait."""
    monkeypatch.setattr(state, "_FIRST_CHECK_S", 0.01)
    monkeypatch.setattr(state, "_LONGEST_CHECK_S", 0.05)


def prepared(bench: Bench, stopped: Callable[[], bool] = lambda: False) -> Timing:
    timing = bench.dispatcher.prepare(REFERENCE, 0, MeasureSettings(), stopped)
    assert timing is not None
    return timing
