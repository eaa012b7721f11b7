"""How much of a budget the play-offs at the end will need."""

from __future__ import annotations

from autotune_loop.play_off.course import FEWEST_CHOOSING_TURNS
from autotune_loop.play_off.verdict import LOOKS
from devices.device import Clock
from devices.measurement import Measurement

PLAY_OFF_CONTENDERS = 4
_LINK_S = 3.0
# Of a timing, beside the calls that count.
_PROCESS_S = 0.1


def timing_s(measurement: Measurement, held_s: float) -> float:
    """Seconds in which a schedule like this is timed again; `held_s` is how long its process ran.

    What a simulated clock counts is none of the seconds that a run has.
    """
    return held_s if measurement.clock is Clock.SIMULATED else sum(measurement.repetitions_s)


def play_off_reserve_s(tasks: int, with_incumbent: int, longest_timing_s: float, clock: Clock) -> float:
    """Seconds that play-offs need until the first look.

    Args:
        tasks: what is tuned; each has a play-off.
        with_incumbent: how many of them have an incumbent.
        longest_timing_s: of one timing; the slowest of the best few decides how long a turn takes.
        clock: of the devices. By a simulated one each schedule is timed once, whatever the turns.
    """
    choosing = tasks * PLAY_OFF_CONTENDERS + with_incumbent
    deciding = tasks * 2 + with_incumbent
    timings = FEWEST_CHOOSING_TURNS * choosing + LOOKS[0] * deciding
    if clock is Clock.SIMULATED:
        timings = choosing
    return tasks * _LINK_S + timings * (longest_timing_s + _PROCESS_S)
