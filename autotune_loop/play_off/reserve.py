"""How much time the play-offs of a run need."""

from __future__ import annotations

from bisect import insort

from autotune_loop.deadline import Deadline
from autotune_loop.play_off.course import FEWEST_CHOOSING_TURNS
from autotune_loop.specification.objective import LOOKS
from devices.device import Clock
from devices.timing.measurement import Measurement

PLAY_OFF_CONTENDERS = 4
_LINK_S = 3.0
# The least overhead of timing a schedule, and the estimate before the first.
_PROCESS_S = 0.1
# If the rounds used up the reserve, the play-off may exceed the budget by this share: an unconfirmed winner is
# worth little.
_OVERTIME_SHARE = 0.25


class PlayOffReserve:
    """The time that play-offs need, from how long timing and training have taken so far.

    Args:
        clock: of the devices. With a simulated clock each schedule is timed only once, because times do not vary.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._longest_timing_s = 0.0
        self._training_s = 0.0
        self._process_s: list[float] = []  # sorted, because it is read before every schedule

    def add_timing(self, measurement: Measurement, held_s: float) -> None:
        """Record that timing a schedule held the device for `held_s`."""
        beside_s = () if measurement.beside is None else measurement.beside.repetitions_s
        calls_s = sum(measurement.repetitions_s) + sum(beside_s)
        if measurement.clock is Clock.SIMULATED:
            calls_s = held_s  # simulated seconds say nothing about the budget
        # The slowest of the contenders determines how long a turn takes.
        self._longest_timing_s = max(self._longest_timing_s, calls_s)
        insort(self._process_s, max(held_s - calls_s, _PROCESS_S))

    def add_training(self, duration_s: float) -> None:
        """The cost model was trained. A play-off may have to wait for a training; the latest one counts, because the
        first also starts TensorFlow.
        """
        self._training_s = duration_s

    def needed_s(self, tasks: int, with_incumbent: int) -> float:
        """Seconds until the first looks of all play-offs.

        Args:
            tasks: tuning tasks, one play-off each.
            with_incumbent: how many of them have an incumbent.
        """
        return self._training_s + self._play_offs_s(tasks, with_incumbent)

    def _play_offs_s(self, tasks: int, with_incumbent: int) -> float:
        choosing = tasks * PLAY_OFF_CONTENDERS + with_incumbent
        deciding = tasks * 2 + with_incumbent
        timings = FEWEST_CHOOSING_TURNS * choosing + LOOKS[0] * deciding
        if self._clock is Clock.SIMULATED:
            timings = choosing
        process_s = self._process_s[len(self._process_s) // 2] if self._process_s else _PROCESS_S
        return tasks * _LINK_S + timings * (self._longest_timing_s + process_s)

    def deadline(self, run: Deadline, budget_s: float | None, with_incumbent: bool) -> Deadline:
        """The deadline of a play-off that begins now: the run's, or a little later if that is too early.

        Args:
            budget_s: of each task.
        """
        if budget_s is None:
            return run
        overtime_s = min(self._play_offs_s(1, int(with_incumbent)), _OVERTIME_SHARE * budget_s)
        return Deadline(max(run.at_s, Deadline.after(overtime_s).at_s))
