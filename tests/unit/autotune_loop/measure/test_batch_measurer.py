"""A batch on scripted devices whose speed changes from moment to moment, as a shared machine's does."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.candidate import BuiltBatch, Candidate, Measured, Yardstick
from halide_autotune.autotune_loop.events import Event, SampleFailed, SampleMeasured
from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import Forget, Measure, OpenDevice, Sense
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.measure import batch_measurer
from halide_autotune.autotune_loop.measure.batch_measurer import BatchMeasurer, TaskReference
from halide_autotune.autotune_loop.measure.dispatcher import Dispatcher
from halide_autotune.autotune_loop.run_scale import RunScale
from halide_autotune.autotune_loop.store.featurization import Featurization, format_featurization
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measure_settings import MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import Beside, MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.targets.build.executable import Executable, KernelObject
from tests.contract.writing_process import RECORD, candidate
from tests.scripted_executor import ScriptedExecutor

YARDSTICK_MS = 10.0
FEATURES = format_featurization(Featurization(np.ones((2, 39), np.float32), np.ones((2, 287), np.float32)))
FASTEST_MS, SLOWEST_MS = 4.0, 16.0


@dataclass
class Machine:
    """A device that computes at another speed in every process.

    Attributes:
        true_ms: what each schedule really takes.
        luck: symbol → by how much each of its timings is off, beginning with the first.
        failing: symbol → why it fails, from so many timings of it on.
        asked: the settings and the symbol of every timing.
    """

    true_ms: dict[str, float]
    speed: Callable[[], float] = lambda: 1.0
    luck: dict[str, list[float]] = field(default_factory=dict)
    failing: dict[str, tuple[int, MeasureFailureReason]] = field(default_factory=dict)
    asked: list[tuple[str, MeasureSettings]] = field(default_factory=list)

    def answer(self, task: Task[Any]) -> object:
        if isinstance(task, Measure):
            return self._measure(task.symbol, task.settings)
        assert isinstance(task, OpenDevice | Sense | Forget)
        return "boot" if isinstance(task, OpenDevice) else None

    def _measure(self, symbol: str, settings: MeasureSettings) -> Timing:
        before = self.times_asked(symbol)
        self.asked.append((symbol, settings))
        after, reason = self.failing.get(symbol, (10**9, MeasureFailureReason.CRASHED))
        if before >= after:
            return Timing(MeasureFailure(symbol, "pi", reason, "It failed.", ""), 0.0)
        speed = self.speed()
        luck = self.luck.get(symbol, [])[before : before + 1] or [1.0]
        own_s, marks = (self.true_ms[symbol] * luck[0] * speed * 1e-3,) * 3, (False,) * 3
        beside = None
        if settings.beside is not None:
            beside = Beside(settings.beside, (self.true_ms[settings.beside] * speed * 1e-3,) * 3, marks, marks)
        return Timing(Measurement(symbol, "pi", Clock.WALL, own_s, "time", True, disturbed=marks, beside=beside), 0.1)

    def times_asked(self, symbol: str) -> int:
        return sum(1 for name, _ in self.asked if name == symbol)


@dataclass
class Outcome:
    measured: list[Measured]
    timed: list[Measurement]
    counts: tuple[int, int]
    events: list[Event]

    def time_ms(self, symbol: str) -> float:
        return next(one.median_ms for one in self.measured if one.candidate.symbol == symbol)


@pytest.fixture(autouse=True)
def _patient_races(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine that tests this, the race has the time that it needs."""
    monkeypatch.setattr(batch_measurer, "_SHORTEST_RACE_S", 600.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path / "run", RECORD, resume=False)
    made.database.add_yardstick(0, new_yardstick())
    yield made
    made.close()


def new_yardstick() -> Yardstick:
    """The reference, once it was timed."""
    return Yardstick(KernelObject("yardstick", Path("yardstick.o")), RunScale("pi", [YARDSTICK_MS]))


def candidates(store: RunStore, count: int) -> list[Candidate]:
    made = []
    for index in range(count):
        one = candidate(store.candidate_folder(0, 0, index), 0, index)
        store.database.add_candidate(one)
        folder = store.candidate_folder(0, 0, index)
        folder.mkdir(parents=True)
        store.featurization_path(folder).write_bytes(FEATURES)
        made.append(one)
    return made


def measure(
    store: RunStore,
    machine: Machine,
    batch: list[Candidate],
    *,
    alone: bool = False,
    best_ms: float = math.inf,
    enough: Callable[[int], bool] = lambda measured: False,
    settles_leaders: bool = True,
) -> Outcome:
    executor = ScriptedExecutor(machine.answer)
    events: list[Event] = []
    dispatcher = Dispatcher(
        executor, ["pi"], store.database, events.append, patience_s=5.0, report_health=lambda name, trouble: None
    )
    dispatcher.open(lambda: False)
    executable = Executable(store.folder / "batch", (), "")
    built = BuiltBatch(0, 0, tuple(batch), executable, False, 0, None, {}, None if alone else new_yardstick())
    measurer = BatchMeasurer(
        dispatcher, store, MeasureSettings(), events.append, enough, settles_leaders=settles_leaders
    )
    found = Outcome([], [], (0, 0), events)
    found.counts = measurer.measure(
        built,
        TaskReference(None, Tolerance(), 1),
        best_ms,
        lambda measurement, held_s: found.timed.append(measurement),
        found.measured.append,
    )
    executor.close()
    return found


def true_times(batch: list[Candidate]) -> dict[str, float]:
    step = (SLOWEST_MS / FASTEST_MS) ** (1 / max(1, len(batch) - 1))
    times_ms = {one.symbol: FASTEST_MS * step**index for index, one in enumerate(batch)}
    return {"yardstick": YARDSTICK_MS, **times_ms}


def test_times_are_multiples_of_the_yardsticks_whatever_the_machine_does(store: RunStore) -> None:
    batch, chance = candidates(store, 12), random.Random(0)
    machine = Machine(true_times(batch), speed=lambda: chance.uniform(0.5, 3.0))
    outcome = measure(store, machine, batch)
    for one in batch:
        assert outcome.time_ms(one.symbol) == pytest.approx(machine.true_ms[one.symbol])
    assert {settings.beside for _, settings in machine.asked} == {"yardstick"}
    assert [m.candidate.symbol for m in store.database.measured()] == [one.symbol for one in batch]
    for recorded in store.database.measured():
        share = recorded.median_ms / store.database.scales()[0].settled_ms
        assert share == pytest.approx(machine.true_ms[recorded.candidate.symbol] / YARDSTICK_MS)


def test_what_the_reference_takes_is_corrected_by_every_timing(store: RunStore) -> None:
    """It was first timed while the machine was three times as slow."""
    batch = candidates(store, 4)
    true_ms = {symbol: time_ms / 3 for symbol, time_ms in true_times(batch).items()}
    outcome = measure(store, Machine(true_ms), batch)
    last = [event for event in outcome.events if isinstance(event, SampleMeasured)][-1]
    assert last.median_ms == pytest.approx(SLOWEST_MS / 3)
    assert {one.candidate.symbol: one.median_ms for one in store.database.measured()} == pytest.approx(
        {one.symbol: true_ms[one.symbol] for one in batch}
    )


def test_without_a_yardstick_each_is_timed_alone_and_once(store: RunStore) -> None:
    batch = candidates(store, 6)
    machine = Machine(true_times(batch))
    outcome = measure(store, machine, batch, alone=True)
    assert outcome.counts == (6, 0)
    assert {settings.beside for _, settings in machine.asked} == {None}
    assert all(machine.times_asked(one.symbol) == 1 for one in batch)
    assert all(one.processes == 1 for one in outcome.measured)


def test_what_can_be_no_sample_has_a_time_all_the_same(store: RunStore) -> None:
    usual, slow, damaged = batch = candidates(store, 3)
    store.featurization_path(store.samples / damaged.sample).write_bytes(b"short")
    machine = Machine({usual.symbol: 4.0, slow.symbol: 200_000.0, damaged.symbol: 5.0})
    outcome = measure(store, machine, batch, alone=True)
    assert outcome.counts == (3, 0) and len(outcome.measured) == 3
    written = [one for one in batch if store.sample_path(store.samples / one.sample).is_file()]
    assert written == [usual]


def test_the_leaders_are_timed_again_and_the_hopeless_are_not(store: RunStore) -> None:
    batch = candidates(store, 12)
    machine = Machine(true_times(batch))
    outcome = measure(store, machine, batch)
    processes = {one.candidate.symbol: one.processes for one in outcome.measured}
    assert processes[batch[0].symbol] == 3
    assert processes[batch[-1].symbol] == 1
    assert machine.times_asked(batch[0].symbol) == 7, "as a sample, three times in the race, and as the next yardstick"
    assert machine.times_asked(batch[1].symbol) == 1
    assert len(outcome.timed) == len(machine.asked)
    resumed = {one.candidate.symbol: one.processes for one in store.database.measured()}
    assert resumed == processes


def test_the_next_yardstick_does_not_keep_the_luck_by_which_it_was_chosen(store: RunStore) -> None:
    batch = candidates(store, 3)
    machine = Machine(true_times(batch), luck={batch[0].symbol: [0.9, 0.8, 0.9, 0.8]})
    outcome = measure(store, machine, batch)
    assert outcome.time_ms(batch[0].symbol) == pytest.approx(FASTEST_MS)
    assert {one.candidate.symbol for one in outcome.measured if one.is_timed_anew} == {batch[0].symbol}
    resumed = {one.candidate.symbol: (one.median_ms, one.is_timed_anew) for one in store.database.measured()}
    assert resumed == {one.candidate.symbol: (one.median_ms, one.is_timed_anew) for one in outcome.measured}


def test_if_it_falls_behind_the_next_best_is_timed_once_more(store: RunStore) -> None:
    batch = candidates(store, 2)
    true_ms = {"yardstick": YARDSTICK_MS, batch[0].symbol: 6.0, batch[1].symbol: 5.0}
    machine = Machine(true_ms, luck={batch[0].symbol: [0.8] * 4})
    outcome = measure(store, machine, batch)
    assert {one.candidate.symbol: one.median_ms for one in outcome.measured} == pytest.approx(
        {batch[0].symbol: 6.0, batch[1].symbol: 5.0}
    )
    assert all(one.is_timed_anew for one in outcome.measured)
    assert [machine.times_asked(one.symbol) for one in batch] == [7, 4], "the first was raced before"


@pytest.mark.parametrize(("true_ms", "best_ms"), [(9.5, math.inf), (4.95, 4.9)], ids=["little gain", "not the best"])
def test_what_will_be_no_yardstick_is_not_timed_once_more(store: RunStore, true_ms: float, best_ms: float) -> None:
    batch = candidates(store, 1)
    machine = Machine({"yardstick": YARDSTICK_MS, batch[0].symbol: true_ms})
    outcome = measure(store, machine, batch, best_ms=best_ms)
    assert machine.times_asked(batch[0].symbol) == 4
    assert not outcome.measured[0].is_timed_anew


@pytest.mark.parametrize(("alone", "precision"), [(False, 0.02), (True, 0.01)])
def test_beside_a_yardstick_a_ratio_is_known_well_enough_sooner(store: RunStore, alone: bool, precision: float) -> None:
    batch = candidates(store, 2)
    machine = Machine(true_times(batch))
    measure(store, machine, batch, alone=alone)
    assert {settings.precision for _, settings in machine.asked} == {precision}


def test_where_nothing_is_decided_each_is_timed_once(store: RunStore) -> None:
    batch = candidates(store, 6)
    machine = Machine(true_times(batch))
    outcome = measure(store, machine, batch, settles_leaders=False)
    assert [machine.times_asked(one.symbol) for one in batch] == [1] * 6
    assert outcome.counts == (6, 0) and outcome.time_ms(batch[0].symbol) == pytest.approx(FASTEST_MS)


@pytest.mark.parametrize(("held_s", "limit_s"), [([0.3] * 5, 10.0), ([2.0, 2.0, 40.0], 20.0), ([9.0] * 9, 60.0)])
def test_what_holds_the_device_ten_times_as_long_as_others_is_ended(
    store: RunStore, held_s: list[float], limit_s: float
) -> None:
    batch = candidates(store, 2)
    for seconds in held_s:
        before = Measurement("f_reference_a0", "pi", Clock.WALL, (1.0,), "time", True)
        store.database.add_measurement(before, "sample", seconds)
        of_another_task = Measurement("g_reference_a1", "pi", Clock.WALL, (1.0,), "time", True)
        store.database.add_measurement(of_another_task, "sample", 0.001)
    machine = Machine(true_times(batch))
    measure(store, machine, batch)
    assert machine.asked[0][1].run_limit_s == limit_s


def test_before_a_few_are_timed_nothing_is_known_of_how_long_it_takes(store: RunStore) -> None:
    batch = candidates(store, 6)
    machine = Machine(true_times(batch))
    measure(store, machine, batch, alone=True)
    limits_s = [settings.run_limit_s for _, settings in machine.asked]
    assert limits_s[:3] == [60.0] * 3 and limits_s[-1] == 10.0


def test_the_race_is_against_the_best_so_far_not_only_the_yardstick(store: RunStore) -> None:
    batch = candidates(store, 4)
    machine = Machine(true_times(batch))
    measure(store, machine, batch, best_ms=5.0)
    first = machine.asked[0][1]
    assert first.lost_over == pytest.approx(1.1 * 5.0 / YARDSTICK_MS)
    assert machine.asked[-1][1].lost_over == pytest.approx(1.1 * FASTEST_MS / YARDSTICK_MS)


def test_a_leader_that_crashes_in_the_race_has_no_time(store: RunStore) -> None:
    batch = candidates(store, 3)
    machine = Machine(true_times(batch), failing={batch[0].symbol: (1, MeasureFailureReason.CRASHED)})
    outcome = measure(store, machine, batch)
    assert batch[0].symbol not in {one.candidate.symbol for one in outcome.measured}
    assert store.database.failure_counts() == {"race: crashed": 1}
    assert outcome.counts == (3, 0), "it was timed before, and counts once"
    failure = store.database.failure_of(batch[0].symbol)
    assert failure is not None and failure.is_its_own
    assert [*store.database.failure_reasons(0)] == [batch[0].symbol]


def test_a_leader_whose_race_is_stopped_keeps_its_first_time(store: RunStore) -> None:
    batch = candidates(store, 3)
    machine = Machine(true_times(batch), failing={batch[0].symbol: (1, MeasureFailureReason.STOPPED)})
    outcome = measure(store, machine, batch)
    assert outcome.time_ms(batch[0].symbol) == pytest.approx(FASTEST_MS)
    assert store.database.failure_counts() == {}


def test_when_time_is_up_the_leaders_are_kept_as_they_were_timed(store: RunStore) -> None:
    batch = candidates(store, 5)
    outcome = measure(store, Machine(true_times(batch)), batch, enough=lambda measured: measured >= 5)
    assert outcome.counts == (5, 0)
    assert {one.processes for one in outcome.measured} == {1}
    assert len(outcome.measured) == 5


def test_a_schedule_that_the_end_of_the_budget_stops_is_not_done_and_has_not_failed(store: RunStore) -> None:
    batch = candidates(store, 4)
    machine = Machine(true_times(batch), failing={batch[1].symbol: (0, MeasureFailureReason.STOPPED)})
    outcome = measure(store, machine, batch, enough=lambda measured: machine.times_asked(batch[1].symbol) > 0)
    assert outcome.counts == (1, 0)
    assert store.database.failure_counts() == {} and store.database.not_done_count() == 1
    assert not [event for event in outcome.events if isinstance(event, SampleFailed)]


def test_an_interrupt_loses_no_time(store: RunStore) -> None:
    batch = candidates(store, 5)

    def interrupted(measured: int) -> bool:
        if measured == 4:
            raise KeyboardInterrupt
        return False

    kept: list[Measured] = []
    machine = Machine(true_times(batch))
    executor = ScriptedExecutor(machine.answer)
    dispatcher = Dispatcher(
        executor, ["pi"], store.database, lambda event: None, patience_s=5.0, report_health=lambda name, trouble: None
    )
    dispatcher.open(lambda: False)
    measurer = BatchMeasurer(dispatcher, store, MeasureSettings(), lambda event: None, interrupted)
    built = BuiltBatch(0, 0, tuple(batch), Executable(store.folder / "b", (), ""), False, 0, None, {}, new_yardstick())
    with pytest.raises(KeyboardInterrupt):
        measurer.measure(built, TaskReference(None, Tolerance(), 1), math.inf, lambda m, held_s: None, kept.append)
    executor.close()
    assert {one.candidate.symbol for one in kept} == {one.candidate.symbol for one in store.database.measured()}
    assert len(kept) == 4
