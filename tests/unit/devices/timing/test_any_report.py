"""Whatever a runner reports is a sane time, or one failure that can be stored and shown."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.func_times import FuncTimes, time_funcs
from halide_autotune.devices.timing.measurement import MeasureFailure
from tests.device_replies import COMPARED, FAILED, FUNCS, JUNK, SIGNS, TIMED, lines, spoiled
from tests.unit.devices.timing.test_machine_signs import Board, session_on
from tests.unit.devices.timing.test_measure import check_sane, measure


def as_events(told: object) -> list[dict[str, object]]:
    return [event for event in told if isinstance(event, dict)] if isinstance(told, list) else []


@given(spoiled([TIMED, COMPARED, SIGNS]), st.sampled_from([0, 1, -11]))
def test_any_timing_is_judged(told: object, exit_code: int) -> None:
    result = measure(lines(*as_events(told)), exit_code, beside="yardstick")
    check_sane(result)
    if not isinstance(result, MeasureFailure):
        assert result.is_consistent and result.ratio is not None and result.ratio > 0
        assert all(output.name.isprintable() for output in result.reshaped)


@given(spoiled([COMPARED, FAILED]))
def test_any_complaint_is_judged(told: object) -> None:
    check_sane(measure(lines(*as_events(told)), 3))


@given(spoiled(FUNCS))
def test_any_times_of_funcs_can_be_compared(told: object) -> None:
    fields = told if isinstance(told, dict) else {}
    times = time_funcs(session_on(Board({**fields, "event": "funcs"}), Clock.WALL), "batch", "f", None, 60.0)
    if isinstance(times, FuncTimes):
        assert all(0 <= func.time_s / times.call_s <= 1 + 1e-9 for func in times.funcs)


@given(st.integers(900, 1010), st.sampled_from(["kind", "message"]), st.sampled_from("[{"))
def test_what_is_nested_as_deeply_as_can_be_read_is_judged(depth: int, key: str, bracket: str) -> None:
    ends = {"[": ("[", "]"), "{": ('{"a":', "}")}[bracket]
    nested = ends[0] * depth + "1" + ends[1] * depth
    check_sane(measure(f'{{"event": "error", "{key}": {nested}}}', 3))
    check_sane(measure(f'{{"event": "compared", "output": {nested}}}\n{json.dumps(FAILED)}', 3))


@given(JUNK)
def test_times_that_are_nothing_are_a_failure(junk: object) -> None:
    result = measure(lines(TIMED | {"repetitions_s": junk}), beside="yardstick")
    assert isinstance(result, MeasureFailure) or isinstance(junk, list)
