"""Schedules are kept from a device that is too disturbed to time on, as long as the run has patience."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace
from typing import Any

import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import LookAround
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.measure import machine_watch
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.machine_signs import MachineSigns, Surroundings
from halide_autotune.devices.timing.measurement import Measurement
from tests.scripted_executor import timed
from tests.unit.autotune_loop.measure.conftest import SYMBOLS, Bench, MakeBench

QUIET = MachineSigns(0.5, 2, 0.5, 0.5, 0.0, 0.0, None, None, None)
CROWDED = replace(QUIET, busy_s=1.0)


def crowded(device: str, symbol: str) -> Timing:
    timing = timed(device, symbol)
    assert isinstance(timing.result, Measurement)
    return replace(timing, result=replace(timing.result, disturbed=(True,), machine=CROWDED))


def looks(bench: Bench, signs: list[MachineSigns]) -> list[str]:
    """The devices that are looked at; what is found there, the last of it again and again."""
    looked: list[str] = []
    answer = bench.devices.answer

    def script(task: Task[Any]) -> object:
        if not isinstance(task, LookAround):
            return answer(task)
        looked.append(task.device_name)
        return Surroundings(signs[min(len(looked), len(signs)) - 1], None)

    bench.executor.script = script
    return looked


def notices(bench: Bench) -> list[str]:
    return [event.text for event in bench.events if isinstance(event, Notice)]


def test_a_disturbed_device_gets_nothing_until_it_is_quiet(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_watch, "_LOOK_AGAIN_S", 0.0)
    bench = make_bench(["a"], lambda d, s, n: crowded(d, s) if n < 5 else timed(d, s), quiet_patience_s=600.0)
    looked = looks(bench, [CROWDED, CROWDED, QUIET])
    assert bench.run(SYMBOLS) == 0
    assert bench.reasons() == {"timed": 12} and looked == ["a"] * 3
    told = notices(bench)
    assert len(told) == 2
    assert told[0].startswith("a is too disturbed to time on: others use 50% of its cores, who cannot be seen")
    assert told[1].startswith("a is quiet again after ")
    rows = bench.database._rows("SELECT device, moment, state FROM device_states")
    assert [(device, moment) for device, moment, _ in rows] == [("a", "look")] * 3
    assert json.loads(rows[0][2])["signs"]["busy_s"] == 1.0


def test_meanwhile_other_devices_go_on(make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a device that stays disturbed, as long as there is another one."""
    monkeypatch.setattr(machine_watch, "_LOOK_AGAIN_S", math.inf)
    enough = threading.Event()

    def measure(device: str, symbol: str, times: int) -> Timing:
        if device == "b" and times < 6:
            enough.wait(60)  # until the other one is known to be disturbed
        return crowded(device, symbol) if device == "a" else timed(device, symbol)

    bench = make_bench(["a", "b"], measure, quiet_patience_s=600.0)
    looked = looks(bench, [CROWDED])
    listen = bench.dispatcher.listen

    def hear(event: Event) -> None:
        listen(event)
        if isinstance(event, Notice):
            enough.set()

    bench.dispatcher.listen = hear
    assert bench.run([f"s{index}" for index in range(60)]) == 0
    assert bench.reasons() == {"timed": 60} and looked == ["a"]
    asked = [device for device, _ in bench.devices.measured]
    assert asked.count("a") < 12 and set(asked[-10:]) == {"b"}


@pytest.mark.parametrize("stopping", [True, False])
def test_waiting_for_a_quiet_device_ends_with_the_run_or_the_patience(make_bench: MakeBench, stopping: bool) -> None:
    bench = make_bench(["a"], lambda d, s, n: crowded(d, s), quiet_patience_s=600.0 if stopping else 0.0)
    looks(bench, [CROWDED])
    left = bench.run(SYMBOLS, enough=lambda: stopping and bool(notices(bench)))
    assert (left > 0) is stopping and len(bench.results) == len(SYMBOLS) - left
    assert len(notices(bench)) == 1


def test_a_device_that_cannot_be_looked_at_goes_on(make_bench: MakeBench) -> None:
    bench = make_bench(["a"], lambda d, s, n: crowded(d, s), quiet_patience_s=600.0)
    answer = bench.devices.answer

    def script(task: Task[Any]) -> object:
        if isinstance(task, LookAround):
            raise DeviceTrouble(TroubleKind.LOST, "The worker is gone.")
        return answer(task)

    bench.executor.script = script
    assert bench.run(SYMBOLS) == 0
    assert bench.reasons() == {"timed": 12} and notices(bench) == []
