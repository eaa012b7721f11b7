"""How long a kernel may run is a matter of the clock, whoever times it."""

from __future__ import annotations

from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measure_settings import MeasureSettings


def test_a_simulated_kernel_may_take_several_times_as_long() -> None:
    simulated, wall = MeasureSettings.by_clock(Clock.SIMULATED), MeasureSettings.by_clock(Clock.WALL)
    assert wall == MeasureSettings()
    assert simulated.run_limit_s == 3 * wall.run_limit_s


def test_what_is_asked_counts_where_a_clock_is_noisy() -> None:
    asked = {"precision": 0.05, "max_time_s": 1.0}
    wall, emulated = (MeasureSettings.by_clock(clock, **asked) for clock in (Clock.WALL, Clock.EMULATED))
    assert (wall.precision, wall.max_time_s) == (0.05, 1.0)
    assert (emulated.precision, emulated.max_time_s) == (0.05, 2.0)
    assert emulated.min_repetitions < wall.min_repetitions
    assert MeasureSettings.by_clock(Clock.SIMULATED, **asked) == MeasureSettings.by_clock(Clock.SIMULATED)
