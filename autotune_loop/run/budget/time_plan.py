"""What a run has time for: another batch, how many schedules of it, the play-offs."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.play_off.reserve import PLAY_OFF_CONTENDERS, PlayOffReserve, PlayOffRoom
from halide_autotune.autotune_loop.run.budget.run_budget import RunBudget
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measurement import Measurement

# At least this many schedules of the first batch are timed as long as the budget lasts, and one after that.
_MIN_TIMED = 4
# Of the time left, while the first batch is built.
_SHARE_OF_PLAY_OFFS = 0.25


class TimePlan:
    """Plans the rest of a run from what its timings and trainings have taken so far.

    Args:
        clock: of the devices.
        at_once: schedules that are timed at once, on all devices together.
        batch_size: the most schedules of a batch.

    Attributes:
        play_offs: to be held, one for each task, and one for single sizes if there are several.
        with_incumbent: how many of them have an incumbent.
        to_time: schedules of the batch under way that are not timed yet.
        batches_done: batches that were timed.
        contenders: how many each play-off would have now, at most, without an incumbent.
    """

    def __init__(self, budget: RunBudget, clock: Clock, at_once: int, batch_size: int) -> None:
        self.budget = budget
        self.reserve = PlayOffReserve(clock, at_once, math.inf if budget.budget_s is None else budget.budget_s)
        self.play_offs = 1
        self.with_incumbent = 0
        self.to_time = 0
        self.batches_done = 0
        self.contenders: Callable[[], int] = lambda: PLAY_OFF_CONTENDERS
        self._at_once = at_once
        self._batch_size = batch_size

    def begin_batch(self, schedules: int) -> None:
        """A batch of so many schedules is to be timed."""
        self.to_time = schedules

    def add_timing(self, measurement: Measurement, held_s: float, *, defaults: Collection[str] = ()) -> None:
        """A schedule of the batch was timed; `defaults` are the symbols of those that are one."""
        self.reserve.add_timing(held_s, is_default=measurement.kernel in defaults)
        self.to_time = max(0, self.to_time - 1)

    def end_batch(self) -> None:
        """The batch under way is over."""
        self.to_time = 0
        self.batches_done += 1

    @property
    def is_time_for_play_offs(self) -> bool:
        """Whether the play-offs need all that is left."""
        return self.budget.deadline.within(self._reserve_s())

    @property
    def batch_deadline(self) -> Deadline:
        """By when a batch is to be built: before the play-offs, to which the first one leaves a share at most."""
        is_first = not (self.batches_done or self.to_time)
        most_s = _SHARE_OF_PLAY_OFFS * self.budget.deadline.left_s if is_first else math.inf
        return Deadline(self.budget.deadline.at_s - min(self._reserve_s(), most_s))

    def affordable(self) -> int:
        """How many schedules of a further batch can be timed, after those of the batch under way.

        The first batch may take the time of the play-off, which is nothing without it.
        """
        is_first = not (self.batches_done or self.to_time)
        left_s = self.budget.deadline.left_s - (0.0 if is_first else self._reserve_s())
        if math.isinf(left_s):
            return self._batch_size
        return min(self._batch_size, self.reserve.timed_within(left_s) - self.to_time)

    def has_time_for_a_batch(self) -> bool:
        """Whether a further batch is worth building: the devices can time a schedule each."""
        return self.affordable() >= self._at_once

    def is_enough(self, measured: int, *, in_service: bool) -> bool:
        """Whether to end the batch under way after so many results, because the play-offs need the time.

        Without a timed schedule there is no result, so a run that has none goes on.

        Args:
            in_service: whether a device can time more now.
        """
        least = 0 if self.batches_done else 1 if self.budget.is_spent else _MIN_TIMED
        return (measured >= least or not in_service) and self.is_time_for_play_offs

    def is_overdue(self, measured: int) -> bool:
        """Whether to stop even the measurements under way: the budget is spent, and there is a result."""
        return self.budget.is_spent and (measured > 0 or self.batches_done > 0)

    def play_off_room(self, to_come: int, with_incumbent: bool) -> PlayOffRoom | None:
        """What a play-off that begins now has time for; None if that is not its first look.

        Args:
            to_come: play-offs that are to be held, this one included.
        """
        return self.reserve.room(self.budget.deadline, self.budget.end, with_incumbent, to_come)

    def has_time_to_learn(self) -> bool:
        """Whether a training, which takes as long as the last one, ends before the run must."""
        return self.budget.end.left_s > self.reserve.training_s

    def _reserve_s(self) -> float:
        return self.reserve.needed_s(self.play_offs, self.with_incumbent, self.contenders())
