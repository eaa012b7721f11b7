"""Schedules are handed to devices and none is lost to a device's trouble, nor timed twice."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from halide_autotune.autotune_loop.events import DeviceChanged, Notice
from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import Forget, LookAround, Measure, Sense
from halide_autotune.autotune_loop.execute.tasks.task import MeasureTask, Task
from halide_autotune.autotune_loop.measure import dispatcher as dispatcher_module
from halide_autotune.autotune_loop.measure.retry_state import MeasureJob
from halide_autotune.devices.device import Clock
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.measure_settings import MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.targets.errors import UsageError
from tests.process_state import PATIENCE_S
from tests.scripted_executor import lost, timed
from tests.unit.autotune_loop.measure.conftest import (
    EXECUTABLE,
    SHORT_PATIENCE_S,
    SYMBOLS,
    MakeBench,
    always_timed,
)


def test_all_are_timed_by_several_devices_one_at_a_time(make_bench: MakeBench) -> None:
    bench = make_bench(["a", "b", "c"], always_timed)
    assert bench.run(SYMBOLS) == 0
    assert bench.reasons() == {"timed": 12} and set(bench.results) == set(SYMBOLS)
    assert {device for device, _ in bench.devices.measured} == {"a", "b", "c"}
    assert set(bench.executor.most_at_once.values()) == {1}


def test_results_count_once_they_are_on_disk(make_bench: MakeBench) -> None:
    names = [f"board{index}" for index in range(24)]
    together = threading.Barrier(len(names))

    def measure(device: str, symbol: str, times: int) -> Timing:
        together.wait(timeout=60)  # their answers come at the same time
        return timed(device, symbol)

    bench = make_bench(names, measure)
    counted: list[str] = []

    def finish(job: MeasureJob, result: Measurement | MeasureFailure, held_s: float) -> Callable[[], None]:
        assert isinstance(result, Measurement)
        bench.database.add_measurement(result, "sample", held_s)

        def count() -> None:
            with contextlib.closing(sqlite3.connect(bench.database_path)) as reader:
                rows = reader.execute("SELECT symbol FROM measurements").fetchall()
                assert (job.symbol,) in rows
            counted.append(job.symbol)

        return count

    jobs = [MeasureJob(EXECUTABLE, f"s{index}", 0, None, Tolerance(), None) for index in range(len(names))]
    assert bench.dispatcher.run(jobs, lambda job: MeasureSettings(), finish, lambda: False) == 0
    assert sorted(counted) == sorted(job.symbol for job in jobs)


def test_a_device_that_times_several_at_once_is_given_so_many(make_bench: MakeBench) -> None:
    together = threading.Barrier(3)

    def measure(device: str, symbol: str, times: int) -> Timing:
        together.wait(timeout=60)
        return timed(device, symbol)

    bench = make_bench(["emulator"], measure, at_once=3)
    assert bench.run(SYMBOLS) == 0
    assert bench.reasons() == {"timed": 12} and bench.executor.most_at_once == {"emulator": 3}


def test_that_a_device_times_schedules_alone_is_told_once(make_bench: MakeBench) -> None:
    bench = make_bench(["a", "b"], lambda d, s, n: replace(timed(d, s), alone=f"{d} times alone." if d == "b" else ""))
    assert bench.run(SYMBOLS) == 0
    assert [event.text for event in bench.events if isinstance(event, Notice)] == ["b times alone."]


def test_a_schedule_that_a_device_was_lost_under_is_timed_elsewhere(make_bench: MakeBench) -> None:
    bench = make_bench(["a", "b"], lambda d, s, n: lost(d, s) if (d, n) == ("a", 0) else timed(d, s))
    assert bench.run(SYMBOLS) == 0
    assert bench.reasons() == {"timed": 12}
    victim = bench.devices.measured[0][1] if bench.devices.measured[0][0] == "a" else bench.devices.measured[1][1]
    assert bench.results[victim].device == "b"
    assert bench.database.incident_counts() == {"a: connection lost": 1}
    states = [(event.device, event.state) for event in bench.events if isinstance(event, DeviceChanged)]
    assert states[0] == ("a", "out of service")


@pytest.mark.parametrize("fault", [ZeroDivisionError("division by zero"), UsageError("There is no such core.")])
def test_whatever_goes_wrong_with_a_device_costs_that_device_only(make_bench: MakeBench, fault: Exception) -> None:
    def measure(device: str, symbol: str, times: int) -> Timing:
        if device == "a":
            raise fault
        return timed(device, symbol)

    bench = make_bench(["a", "b"], measure)
    assert bench.run(SYMBOLS) == 0
    assert bench.reasons() == {"timed": 12}
    assert {result.device for result in bench.results.values()} == {"b"}
    told = [event for event in bench.events if isinstance(event, DeviceChanged)]
    assert (told[0].device, told[0].state) == ("a", "out of service") and str(fault).rstrip(".") in told[0].message


@pytest.mark.parametrize("task", [Sense, Forget, LookAround])
def test_whatever_goes_wrong_beside_timing_costs_nothing(make_bench: MakeBench, task: type[MeasureTask[Any]]) -> None:
    bench = make_bench(["a"], always_timed)
    answer = bench.executor.script

    def script(asked: Task[Any]) -> object:
        if isinstance(asked, Sense | Forget | LookAround):
            if isinstance(asked, task):
                raise ZeroDivisionError("division by zero")
            return None
        return answer(asked)

    bench.executor.script = script
    bench.dispatcher.sense("before")
    assert bench.run(SYMBOLS) == 0
    bench.dispatcher.forget(EXECUTABLE)
    assert bench.reasons() == {"timed": 12}


def test_a_lost_link_is_not_the_schedules_fault(make_bench: MakeBench) -> None:
    # The only device is lost three times under the first schedule, always the same boot: nothing went down.
    bench = make_bench(["a"], lambda d, s, n: lost(d, s) if n < 3 else timed(d, s))
    assert bench.run(["s0"]) == 0
    assert bench.reasons() == {"timed": 1}


def test_a_schedule_that_restarts_devices_is_tried_once_more_and_then_never_again(make_bench: MakeBench) -> None:
    bench = make_bench(
        ["a", "b"],
        lambda d, s, n: lost(d, s) if s == "killer" else timed(d, s),
        lambda device, times: f"boot {times}",
    )
    assert bench.run(["killer", *SYMBOLS]) == 0
    assert bench.reasons() == {"timed": 12, MeasureFailureReason.KILLS_DEVICE.value: 1}
    assert len([s for _, s in bench.devices.measured if s == "killer"]) == 2
    assert {d for d, s in bench.devices.measured if s == "killer"} == {"a", "b"}


def test_a_device_that_never_comes_back_is_blamed_on_the_schedule_in_the_end(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher_module, "_VERDICT_AFTER_S", 0.3)
    gone = DeviceTrouble(TroubleKind.UNREACHABLE, "no answer")
    bench = make_bench(
        ["a", "b", "c"],
        lambda d, s, n: lost(d, s) if s == "killer" else timed(d, s),
        lambda device, times: "boot" if times == 0 else gone,
    )
    assert bench.run(["killer"]) == 0
    assert bench.reasons() == {MeasureFailureReason.KILLS_DEVICE.value: 1}


def test_a_schedule_that_no_device_times_is_given_up_in_the_end(make_bench: MakeBench) -> None:
    drifted = TroubleKind.DRIFTED  # which costs no service, so that patience does not end it
    bench = make_bench(["a"], lambda d, s, n: lost(d, s, under_way=False, kind=drifted))
    assert bench.run(["s0"], enough=lambda: len(bench.devices.measured) > 50) == 0
    assert bench.reasons() == {MeasureFailureReason.DEVICE.value: 1}
    assert len(bench.devices.measured) <= 20


def test_a_schedule_goes_to_another_device_than_the_one_that_failed(make_bench: MakeBench) -> None:
    drifted = TroubleKind.DRIFTED
    bench = make_bench(
        ["a", "b"], lambda d, s, n: lost(d, s, under_way=False, kind=drifted) if d == "a" else timed(d, s)
    )
    assert bench.run(["s0"]) == 0
    assert bench.devices.measured == [("a", "s0"), ("b", "s0")]


def test_a_drift_costs_no_service(make_bench: MakeBench) -> None:
    drifted = TroubleKind.DRIFTED
    bench = make_bench(["a"], lambda d, s, n: lost(d, s, under_way=False, kind=drifted) if n in (0, 3) else timed(d, s))
    assert bench.run(SYMBOLS) == 0
    assert bench.reasons() == {"timed": 12}
    assert not [event for event in bench.events if isinstance(event, DeviceChanged)]
    assert bench.database.incident_counts() == {f"a: {drifted.value}": 2}


def test_what_is_the_schedules_own_fault_is_final(make_bench: MakeBench) -> None:
    failure = MeasureFailure("s0", "a", MeasureFailureReason.WRONG_OUTPUT, "wrong", "")
    bench = make_bench(["a"], lambda d, s, n: Timing(failure, 0.1))
    assert bench.run(["s0"]) == 0 and bench.results["s0"] == failure and len(bench.devices.measured) == 1


def test_a_device_that_fails_again_and_again_is_reported_and_the_rest_goes_on(make_bench: MakeBench) -> None:
    bench = make_bench(
        ["bad", "good"],
        lambda d, s, n: lost(d, s, under_way=False) if d == "bad" and n < 3 else timed(d, s),
    )
    while ("bad", None) not in bench.health:
        assert bench.run([f"s{len(bench.results)}"]) == 0
    assert [why for name, why in bench.health if name == "bad"] == ["bad is gone.", None], "and then that it is well"
    assert bench.reasons()["timed"] == len(bench.results)


def test_somebody_elses_lease_is_no_fault_of_the_device(make_bench: MakeBench) -> None:
    leased = DeviceTrouble(TroubleKind.LEASED, "leased by ann@lab")
    bench = make_bench(["a", "b"], always_timed, lambda device, times: leased if device == "b" else "boot")
    while bench.devices.opened.count("b") < 4:
        assert bench.run([f"s{len(bench.results)}"]) == 0
    assert bench.health == [("a", None)]


def test_enough_ends_it_with_what_is_under_way_finished(make_bench: MakeBench) -> None:
    bench = make_bench(["a"], always_timed)
    undone = bench.run(SYMBOLS, lambda: len(bench.results) >= 3)
    assert len(bench.results) + undone == 12 and 3 <= len(bench.results) <= 5
    assert len(bench.devices.measured) == len(bench.results)


def test_a_job_for_a_device_that_stays_out_ends_while_others_serve(make_bench: MakeBench) -> None:
    gone = DeviceTrouble(TroubleKind.UNREACHABLE, "no answer")
    bench = make_bench(
        ["a", "b"], always_timed, lambda device, times: gone if device == "b" else "boot", patience_s=SHORT_PATIENCE_S
    )
    assert bench.run(["s0"], device="b") == 0
    assert bench.reasons() == {MeasureFailureReason.DEVICE.value: 1} and bench.devices.measured == []
    assert bench.dispatcher.taking_part == ["a"]


def test_a_job_for_a_device_that_is_lost_for_a_moment_is_timed_there(make_bench: MakeBench) -> None:
    bench = make_bench(
        ["a", "b"], lambda device, symbol, times: lost(device, symbol) if times == 0 else timed(device, symbol)
    )
    assert bench.run(SYMBOLS, device="b") == 0
    assert bench.reasons() == {"timed": 12} and {device for device, _ in bench.devices.measured} == {"b"}


def test_a_device_that_has_timed_something_takes_part_when_it_is_out(make_bench: MakeBench) -> None:
    gone = DeviceTrouble(TroubleKind.UNREACHABLE, "no answer")
    bench = make_bench(
        ["a", "b"], always_timed, lambda device, times: "boot" if times == 0 else gone, patience_s=SHORT_PATIENCE_S
    )
    bench.run(["s0"], device="a")
    bench.run(["s1"], device="b")
    bench.devices.measure = lambda device, symbol, times: lost(device, symbol)
    bench.run(["s2"], device="b")
    assert bench.dispatcher.in_service == ["a"] and bench.dispatcher.taking_part == ["a", "b"]


def test_times_of_boards_are_brought_to_the_first_ones_scale(make_bench: MakeBench) -> None:
    speeds = {"a": 1.0, "b": 2.0}

    def measure(device: str, symbol: str, times: int) -> Timing:
        return timed(device, symbol, 0.001 * speeds[device], f"{device}-boot/1", 0.004 * speeds[device])

    bench = make_bench(["a", "b"], measure)
    bench.run(["s0"], device="a")
    bench.run(SYMBOLS[1:])
    for result in bench.results.values():
        assert isinstance(result, Measurement)
        assert result.comparable_median_s == pytest.approx(0.001)
        assert result.median_s == pytest.approx(0.001 * speeds[result.device]), "what was timed stays as it was"
    factors = {row.device: row.board.factor for row in bench.database.calibrations()}
    assert factors == {"a": 1.0, "b": pytest.approx(0.5)}


def test_a_board_unlike_the_others_is_left_out_and_its_schedules_are_timed_by_them(make_bench: MakeBench) -> None:
    ratios = {"a": (1.0, 1.0, 1.0), "b": (2.0, 2.0, 2.1), "odd": (1.0, 1.1, 2.5)}

    def measure(device: str, symbol: str, times: int) -> Timing:
        timing = timed(device, symbol, 0.001, f"{device}-boot/1", 0.004 * ratios[device][0])
        others = [
            Measurement(f"other_{n}", device, Clock.WALL, (0.003 * ratios[device][n],), "", False) for n in (1, 2)
        ]
        return replace(timing, references=(*timing.references, *others))

    bench = make_bench(["a", "b", "odd"], measure)
    bench.run(["s0"], device="a")
    assert bench.run(SYMBOLS[1:]) == 0
    assert bench.reasons() == {"timed": 12} and {result.device for result in bench.results.values()} == {"a", "b"}
    assert set(bench.database.incident_counts()) == {"odd: outlier"}
    assert bench.dispatcher.in_service == ["a", "b"] and all(name != "odd" for name, _ in bench.health)
    told = [event.text for event in bench.events if isinstance(event, DeviceChanged) and event.device == "odd"]
    assert len(told) == 1 and "odd cannot be compared with a:" in told[0]


@pytest.mark.parametrize("seed", range(6))
def test_random_faults_lose_nothing_and_double_nothing(make_bench: MakeBench, seed: int) -> None:
    chance = random.Random(seed)
    boots = Counter[str]()

    def measure(device: str, symbol: str, times: int) -> Timing:
        if chance.random() < 0.35:
            kind = chance.choice([TroubleKind.LOST, TroubleKind.TIMEOUT, TroubleKind.PROTOCOL_ERROR, TroubleKind.FULL])
            return lost(device, symbol, under_way=chance.random() < 0.5, kind=kind)
        return timed(device, symbol)

    def open_device(device: str, times: int) -> str:
        boots[device] += int(chance.random() < 0.05)
        return f"{device} boot {boots[device]}"

    bench = make_bench(["a", "b", "c"], measure, open_device)
    symbols = [f"s{index}" for index in range(60)]
    assert bench.run(symbols) == 0
    assert set(bench.results) == set(symbols)
    assert bench.reasons()["timed"] >= 55


def test_a_device_that_joins_in_mid_run_takes_its_share(make_bench: MakeBench) -> None:
    bench = make_bench(["a"], always_timed)
    joined = threading.Event()

    def measure(device: str, symbol: str, times: int) -> Timing:
        if (device, times) == ("a", 1):
            bench.executor.arriving.append("b")
        elif device == "b":
            joined.set()
        elif times > 1:
            assert joined.wait(60), "it never gets a schedule"
        return timed(device, symbol)

    bench.devices.measure = measure
    assert bench.run([f"s{index}" for index in range(40)]) == 0
    assert bench.reasons() == {"timed": 40}
    assert {device for device, _ in bench.devices.measured} == {"a", "b"}
    assert [(e.device, e.state) for e in bench.events if isinstance(e, DeviceChanged)] == [("b", "in service")]


def test_a_member_that_is_lost_costs_no_schedule_its_name(make_bench: MakeBench) -> None:
    """However often members die under it: that says nothing about the schedule."""

    def measure(device: str, symbol: str, times: int) -> Timing:
        if symbol == "s0" and times < 4:
            raise DeviceTrouble(TroubleKind.LOST, f"The farm's member that serves {device} is gone.")
        return timed(device, symbol)

    def open_device(device: str, times: int) -> str:
        if times % 2:
            raise DeviceTrouble(TroubleKind.LOST, f"The farm's member that serves {device} is gone.")
        return "boot"

    bench = make_bench(["a"], measure, open_device)
    assert bench.run(["s0", "s1"]) == 0
    assert bench.reasons() == {"timed": 2}
    assert set(bench.database.incident_counts()) == {"a: connection lost"}


@pytest.mark.parametrize("is_overdue", [False, True])
def test_what_is_under_way_is_stopped_only_once_it_is_overdue(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, is_overdue: bool
) -> None:
    begun, killed, looked = threading.Event(), threading.Event(), threading.Event()

    def measure(device: str, symbol: str, times: int) -> Timing:
        begun.set()
        assert looked.wait(PATIENCE_S)
        if is_overdue:
            assert killed.wait(PATIENCE_S)
            return Timing(MeasureFailure(symbol, device, MeasureFailureReason.STOPPED, "It was stopped.", ""), 1.0)
        return timed(device, symbol)

    def overdue() -> bool:
        looked.set()
        return is_overdue

    bench = make_bench(["pi"], measure)
    monkeypatch.setattr(bench.executor, "interrupt", killed.set)
    handed_out: list[object] = []
    submit = bench.executor.submit

    def counted(task: Any, *more: Any, **named: Any) -> Any:
        handed_out.extend([task] if isinstance(task, Measure) else [])
        return submit(task, *more, **named)

    monkeypatch.setattr(bench.executor, "submit", counted)

    def enough() -> bool:
        """Once one is timed and another one waits for the device."""
        return begun.is_set() and len(handed_out) == 2

    assert bench.run(["a", "b", "c"], enough=enough, overdue=overdue) == 1
    assert bench.reasons() == {"stopped" if is_overdue else "timed": 2}
    assert killed.is_set() is is_overdue
