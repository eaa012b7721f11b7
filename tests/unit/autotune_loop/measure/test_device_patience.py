"""How long devices that are out of service are waited for, and what is said of them."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from halide_autotune.autotune_loop.events import DeviceChanged
from halide_autotune.autotune_loop.measure import device_state
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from tests.scripted_executor import lost, timed
from tests.unit.autotune_loop.measure.conftest import SHORT_PATIENCE_S, SYMBOLS, MakeBench, always_timed, prepared


def test_a_device_that_needs_a_person_is_not_asked_again(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("halide_autotune.autotune_loop.measure.device_state._FIRST_CHECK_S", 0.0)
    refused = DeviceTrouble(TroubleKind.REFUSED, "wrong key")
    bench = make_bench(["a", "b"], always_timed, lambda device, times: refused if device == "b" else "boot")
    assert bench.run(SYMBOLS) == 0
    assert {device for device, _ in bench.devices.measured} == {"a"}
    assert bench.devices.opened.count("b") == 1


def test_patience_ends_when_no_device_comes_back(make_bench: MakeBench) -> None:
    gone = DeviceTrouble(TroubleKind.UNREACHABLE, "no answer")
    bench = make_bench(
        ["a"],
        lambda d, s, n: timed(d, s) if n < 2 else lost(d, s),
        lambda device, times: "boot" if times == 0 else gone,
        patience_s=SHORT_PATIENCE_S,
    )
    undone = bench.run(SYMBOLS)
    assert bench.dispatcher.is_lost and len(bench.results) + undone == 12 and len(bench.results) == 2


def test_a_reference_after_the_last_device_was_lost_fails_by_its_trouble(make_bench: MakeBench) -> None:
    """As when the reference of an argument set took it down that is prepared after another one's."""
    gone = DeviceTrouble(TroubleKind.UNREACHABLE, "no answer")
    bench = make_bench(
        ["a"], lambda d, s, n: lost(d, s), lambda device, times: "boot" if times == 0 else gone, patience_s=0.0
    )
    bench.run(["s0"])
    assert bench.dispatcher.in_service == []
    result = prepared(bench).result
    assert isinstance(result, MeasureFailure) and result.reason is MeasureFailureReason.DEVICE


@pytest.mark.parametrize("when", ["in a batch", "before the first batch"])
def test_a_device_is_not_given_up_while_it_is_looked_at(make_bench: MakeBench, when: str) -> None:
    """As after this process was stopped for longer than the patience."""

    def open_device(device: str, times: int) -> str:
        time.sleep(0.8 if times == 1 else 0.0)
        return "boot"

    bench = make_bench(
        ["a"], lambda d, s, n: lost(d, s) if n == 0 else timed(d, s), open_device, patience_s=SHORT_PATIENCE_S
    )
    if when == "in a batch":
        assert bench.run(SYMBOLS) == 0 and bench.reasons() == {"timed": 12}
    else:
        assert isinstance(prepared(bench).result, Measurement)
    assert not bench.dispatcher.is_lost


def test_a_device_that_has_failed_again_after_the_patience_is_given_up_while_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a run with several dead devices goes on for as long as one of them is being looked at."""
    now_s = [1000.0]
    monkeypatch.setattr(device_state, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    state = device_state.DeviceState("a")
    state.out_of_service(TroubleKind.UNREACHABLE, "no answer")
    now_s[0] += 600.0
    state.checking = True
    assert not state.is_given_up(300.0), "nobody has asked it since"
    state.checking = False
    assert state.is_given_up(300.0)
    state.out_of_service(TroubleKind.UNREACHABLE, "no answer")
    state.checking = True
    assert state.is_given_up(300.0)
    state.checking = False
    state.back_in_service("boot")
    assert not state.is_given_up(300.0)


def test_patience_ends_when_a_device_comes_back_for_nothing_again_and_again(make_bench: MakeBench) -> None:
    bench = make_bench(
        ["a"], lambda d, s, n: lost(d, s, under_way=False, kind=TroubleKind.FULL), patience_s=SHORT_PATIENCE_S
    )
    undone = bench.run([f"s{index}" for index in range(300)])
    assert bench.dispatcher.is_lost and undone > 0
    states = [event.state for event in bench.events if isinstance(event, DeviceChanged)]
    assert states == ["out of service", "in service", "out of service", "in service", "unhealthy"]


def test_a_device_that_was_unhealthy_is_said_to_be_back_once_it_works(make_bench: MakeBench) -> None:
    bench = make_bench(["a"], lambda d, s, n: lost(d, s, under_way=False) if n < 8 else timed(d, s))
    assert bench.run(SYMBOLS) == 0
    states = [event.state for event in bench.events if isinstance(event, DeviceChanged)]
    assert states[-2:] == ["unhealthy", "in service"] and bench.health[-1] == ("a", None)
