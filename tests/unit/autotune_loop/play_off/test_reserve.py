"""What is kept of a budget for the play-offs."""

from __future__ import annotations

from autotune_loop.play_off.reserve import play_off_reserve_s, timing_s
from devices.device import Clock
from devices.measurement import Measurement


def measured(clock: Clock) -> Measurement:
    return Measurement("blur", "board", clock, (0.25, 0.5), "precision", True)


def test_simulated_seconds_are_none_of_the_runs() -> None:
    """An emulator takes seconds for what it says takes microseconds."""
    assert timing_s(measured(Clock.SIMULATED), held_s=9.0) == 9.0
    assert timing_s(measured(Clock.WALL), held_s=9.0) == 0.75


def test_simulated_turns_are_not_repeated() -> None:
    once_s = play_off_reserve_s(1, 0, 2.0, Clock.SIMULATED)
    assert 4 * 2.0 < once_s < 5 * 2.0 + 3.0
    assert play_off_reserve_s(1, 0, 2.0, Clock.WALL) > 16 * 2.0
    assert play_off_reserve_s(2, 1, 2.0, Clock.SIMULATED) > 2 * once_s
