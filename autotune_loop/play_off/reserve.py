"""How much time the play-offs of a run need, and how many schedules can be timed before them."""

from __future__ import annotations

import math
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
# One writes its outputs, one is timed.
_RUNS_OF_A_REFERENCE = 2


class PlayOffReserve:
    """The time that play-offs need, from how long timing and training have taken so far.

    Args:
        clock: of the devices. With a simulated clock each schedule is timed only once, because times do not vary.
        at_once: schedules that are timed at once, on all devices together.
    """

    def __init__(self, clock: Clock, at_once: int = 1) -> None:
        self._clock = clock
        self._at_once = at_once
        self._longest_timing_s = 0.0
        self._training_s = 0.0
        self._process_s: list[float] = []  # sorted, because it is read before every schedule
        self._held_s = 0.0
        self._expected_s = 0.0

    def add_reference(self, held_s: float) -> None:
        """A reference held its device for `held_s`, which says what to expect before the first schedule is timed."""
        self._expected_s = max(self._expected_s, held_s / _RUNS_OF_A_REFERENCE)

    def add_timing(self, measurement: Measurement, held_s: float) -> None:
        """Record that timing a schedule held the device for `held_s`."""
        beside_s = () if measurement.beside is None else measurement.beside.repetitions_s
        calls_s = sum(measurement.repetitions_s) + sum(beside_s)
        if measurement.clock is Clock.SIMULATED:
            calls_s = 0.0  # simulated seconds say nothing about the budget
        # The slowest of the contenders determines how long a turn takes.
        self._longest_timing_s = max(self._longest_timing_s, calls_s)
        self._held_s += held_s
        insort(self._process_s, max(held_s - calls_s, _PROCESS_S))

    def add_training(self, duration_s: float) -> None:
        """The cost model was trained. A play-off may have to wait for a training; the latest one counts, because the
        first also starts TensorFlow.
        """
        self._training_s = duration_s

    @property
    def training_s(self) -> float:
        """How long the next training may take; 0 before the first."""
        return self._training_s

    def needed_s(self, tasks: int, with_incumbent: int) -> float:
        """Seconds until the first looks of all play-offs.

        Args:
            tasks: tuning tasks, one play-off each.
            with_incumbent: how many of them have an incumbent.
        """
        return self._training_s + self._play_offs_s(tasks, with_incumbent)

    def timed_within(self, time_s: float) -> int:
        """How many schedules can be timed in a finite time."""
        return int(max(0.0, time_s) / self._usual_s() * self._at_once)

    def _usual_s(self) -> float:
        """What timing a schedule takes: the mean so far."""
        mean_s = self._held_s / len(self._process_s) if self._process_s else self._expected_s
        return max(mean_s, _PROCESS_S)

    def _play_offs_s(self, tasks: int, with_incumbent: int) -> float:
        choosing = tasks * PLAY_OFF_CONTENDERS + with_incumbent
        deciding = tasks * 2 + with_incumbent
        if self._clock is Clock.SIMULATED:
            return tasks * _LINK_S + math.ceil(choosing / self._at_once) * self._usual_s()
        timings = FEWEST_CHOOSING_TURNS * choosing + LOOKS[0] * deciding
        process_s = self._process_s[len(self._process_s) // 2] if self._process_s else _PROCESS_S
        return tasks * _LINK_S + timings * (self._longest_timing_s + process_s)

    def deadline(self, run: Deadline, end: Deadline, with_incumbent: bool, play_offs: int) -> Deadline | None:
        """The deadline of a play-off that begins now: the run's, or a little later if that is too early.

        Args:
            run: when the budget is spent.
            end: when the run is over, whatever is under way.
            play_offs: that are to be held, this one included; they share what is left.

        Returns:
            None if there is not time enough for a play-off.
        """
        needed_s, left_s = self._play_offs_s(1, int(with_incumbent)), end.left_s / play_offs
        if left_s < needed_s:
            return None
        return Deadline(max(run.at_s, Deadline.after(needed_s).at_s))
