"""Before the first batch: devices are opened, waited for where that can help, and run the reference."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.events import DeviceChanged, Notice
from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.measurement import MeasureFailure, Measurement
from halide_autotune.targets.errors import DeviceError
from tests.scripted_executor import lost, timed
from tests.unit.autotune_loop.measure.conftest import SHORT_PATIENCE_S, SYMBOLS, MakeBench, always_timed, prepared


def test_no_device_at_the_start_is_an_error(make_bench: MakeBench) -> None:
    trouble = DeviceTrouble(TroubleKind.UNREACHABLE, "no answer")
    with pytest.raises(DeviceError, match="no answer"):
        make_bench(["a", "b"], always_timed, lambda device, times: trouble)


def test_a_leased_device_is_waited_for_and_its_holder_is_told_once(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("halide_autotune.autotune_loop.measure.device_state._LEASE_CHECK_S", 0.01)
    leased = DeviceTrouble(TroubleKind.LEASED, "leased by ann@lab")
    bench = make_bench(["a"], always_timed, lambda device, times: leased if times < 5 else "boot")
    assert bench.run(["s0"]) == 0 and bench.devices.opened.count("a") == 6
    told = [(event.state, event.message) for event in bench.events if isinstance(event, DeviceChanged)]
    assert told[:2] == [("out of service", "leased by ann@lab"), ("in service", "")]
    assert [e.text for e in bench.events if isinstance(e, Notice)] == ["The run waits for a device, 2 min at most."]


def test_a_device_without_room_is_waited_for_at_the_start(make_bench: MakeBench) -> None:
    full = DeviceTrouble(TroubleKind.FULL, "no room", next_step="Free some storage.")
    bench = make_bench(["a"], always_timed, lambda device, times: full if times < 2 else "boot")
    assert bench.run(["s0"]) == 0 and bench.devices.opened.count("a") == 3
    told = [(event.state, event.message) for event in bench.events if isinstance(event, DeviceChanged)]
    assert told[0] == ("out of service", "no room Free some storage.")


def test_patience_ends_with_the_holder_of_the_lease(make_bench: MakeBench) -> None:
    leased = DeviceTrouble(TroubleKind.LEASED, "leased by ann@lab")
    with pytest.raises(DeviceError, match="leased by ann@lab"):
        make_bench(["a"], always_timed, lambda device, times: leased, patience_s=SHORT_PATIENCE_S)


def test_the_only_device_is_waited_for_when_it_fails_before_the_first_batch(make_bench: MakeBench) -> None:
    away = DeviceTrouble(TroubleKind.UNREACHABLE, "no answer")
    bench = make_bench(
        ["a"], lambda d, s, n: lost(d, s) if n < 3 else timed(d, s), lambda d, times: away if times == 1 else "boot"
    )
    assert isinstance(prepared(bench).result, Measurement)
    assert bench.database.incident_counts() == {"a: connection lost": 3}
    assert bench.run(SYMBOLS) == 0 and bench.reasons() == {"timed": 12}


def test_the_reference_runs_on_another_device_when_the_first_one_fails(make_bench: MakeBench) -> None:
    bench = make_bench(["a", "b"], lambda d, s, n: lost(d, s) if d == "a" else timed(d, s))
    result = prepared(bench).result
    assert isinstance(result, Measurement) and result.device == "b"


def test_the_wait_before_the_first_batch_ends_with_the_patience_or_a_stop(make_bench: MakeBench) -> None:
    gone = DeviceTrouble(TroubleKind.UNREACHABLE, "no answer")

    def open_device(device: str, times: int) -> str | DeviceError:
        return "boot" if times == 0 else gone

    bench = make_bench(["a"], lambda d, s, n: lost(d, s), open_device, patience_s=SHORT_PATIENCE_S)
    assert isinstance(prepared(bench).result, MeasureFailure) and bench.dispatcher.is_lost
    stopped = make_bench(["a"], lambda d, s, n: lost(d, s), open_device, patience_s=SHORT_PATIENCE_S)
    assert isinstance(prepared(stopped, lambda: True).result, MeasureFailure) and not stopped.dispatcher.is_lost


def test_a_reference_that_restarts_the_device_is_not_tried_for_ever(make_bench: MakeBench) -> None:
    bench = make_bench(["a"], lambda d, s, n: lost(d, s), lambda device, times: f"boot {times}")
    assert isinstance(prepared(bench).result, MeasureFailure)
    assert bench.devices.measured == [("a", "reference")] * 2


def test_trouble_that_waiting_does_not_mend_ends_the_preparation(make_bench: MakeBench) -> None:
    bench = make_bench(["a"], lambda d, s, n: lost(d, s, under_way=False, kind=TroubleKind.BROKEN))
    failure = prepared(bench).result
    assert isinstance(failure, MeasureFailure) and failure.trouble is TroubleKind.BROKEN
    assert bench.devices.measured == [("a", "reference")] * 2


def test_a_device_whose_storage_is_full_is_waited_for(make_bench: MakeBench) -> None:
    full_times = 3

    def time(device: str, symbol: str, times: int) -> Timing:
        if times < full_times:
            return lost(device, symbol, under_way=False, kind=TroubleKind.FULL)
        return timed(device, symbol)

    bench = make_bench(["a"], time)
    assert isinstance(prepared(bench).result, Measurement)
    assert bench.devices.measured == [("a", "reference")] * (full_times + 1)
    stays_full = make_bench(
        ["a"], lambda d, s, n: lost(d, s, under_way=False, kind=TroubleKind.FULL), patience_s=SHORT_PATIENCE_S
    )
    failure = prepared(stays_full).result
    assert isinstance(failure, MeasureFailure) and failure.trouble is TroubleKind.FULL


def test_a_device_that_is_lost_while_it_is_opened_is_waited_for(make_bench: MakeBench) -> None:
    troubles = {0: TroubleKind.LOST, 1: TroubleKind.UNREACHABLE}
    bench = make_bench(
        ["a"], always_timed, lambda d, times: DeviceTrouble(troubles[times], "away") if times in troubles else "boot"
    )
    assert bench.run(SYMBOLS) == 0 and bench.reasons() == {"timed": 12}
