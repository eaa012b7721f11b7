"""What a display says of a run's times."""

from __future__ import annotations

import pytest

from halide_autotune.devices.device import Clock
from halide_autotune.sdk.display.clock_lines import clock_lines
from halide_autotune.sdk.display.event_lines import clock_message


@pytest.mark.parametrize(
    ("clock", "message"),
    [
        (Clock.WALL, "wall time"),
        (Clock.CYCLES, "the DSP's processor cycles as nanoseconds"),
        (Clock.EMULATED, "EMULATED TIME, NOT A DEVICE'S"),
        (Clock.SIMULATED, "SIMULATED TIME, NOT A DEVICE'S"),
    ],
)
def test_only_what_is_no_devices_time_is_in_capitals(clock: Clock, message: str) -> None:
    assert clock_message(clock.value) == message


@pytest.mark.parametrize(
    ("clocks", "lines"),
    [
        (["wall", "wall"], []),
        (["simulated", "simulated"], ["All times are simulated time, not a device's."]),
        (["simulated", "wall"], ["Times marked sim are simulated time, not a device's."]),
        (["cycles"], ["All times are the DSP's processor cycles as nanoseconds."]),
        (["sun"], ["All times are sun time, not a device's."]),
    ],
)
def test_what_times_are_is_said_once_for_each_clock(clocks: list[str], lines: list[str]) -> None:
    assert [line.plain for line in clock_lines(clocks)] == lines
