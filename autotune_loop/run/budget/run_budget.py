"""The time that a run may take, and what it has taken so far."""

from __future__ import annotations

import time
from pathlib import Path

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.targets.errors import BudgetError

# A run may end so much later than its budget says: this share of it, but so many seconds in any case.
_OVERTIME_SHARE, _LEAST_OVERTIME_S = 0.25, 10.0
# Of that, what a loaded machine takes before the run, to start the command, and at its end, to kill what is under way,
# give devices back and close files.
_ENDING_S = 6.0
# Steps that took less are not told.
_SHORTEST_TOLD_S = 0.5
# A run that had no time for its first batch gets this times what it has taken, rounded up to one of these.
_ENOUGH_FACTOR = 4.0
_ADVISED_MINUTES = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 240, 480)


class RunBudget:
    """The budget of a run, and a ledger of its steps.

    Args:
        budget_s: None for a run without one.
        started_s: the monotonic time at which the run began.

    Attributes:
        deadline: when it is spent: nothing new begins.
        end: when whatever is under way is stopped.
        step: what the run is at, in words such as 'preparing the reference'.
    """

    def __init__(self, budget_s: float | None, started_s: float) -> None:
        self.budget_s = budget_s
        self.deadline = self.end = Deadline.after(None)
        if budget_s is not None:
            self.deadline = Deadline(started_s + budget_s)
            overtime_s = max(_OVERTIME_SHARE * budget_s, _LEAST_OVERTIME_S) - _ENDING_S
            self.end = Deadline(started_s + budget_s + overtime_s)
        self._steps = [("starting", started_s)]

    @property
    def step(self) -> str:
        """The newest step."""
        return self._steps[-1][0]

    @property
    def is_spent(self) -> bool:
        """Whether nothing new is to begin."""
        return self.deadline.within(0.0)

    def begin(self, step: str) -> None:
        """The run goes on to this step; nothing if it is at it already."""
        if step != self.step:
            self._steps.append((step, time.monotonic()))

    def too_short(self, generator: str, folder: Path, timed_before: int = 0) -> BudgetError:
        """The error of a run that ended before it had timed a schedule of its own.

        Args:
            timed_before: schedules that earlier processes of the run have timed.
        """
        now_s = time.monotonic()
        ends_s = [*(start_s for _, start_s in self._steps[1:]), now_s]
        took = [
            f"{step} {end_s - start_s:.0f} s"
            for (step, start_s), end_s in zip(self._steps, ends_s, strict=True)
            if end_s - start_s >= _SHORTEST_TOLD_S
        ]
        took_s = now_s - self._steps[0][1]
        minutes = next((m for m in _ADVISED_MINUTES if m * 60 >= _ENOUGH_FACTOR * took_s), _ADVISED_MINUTES[-1])
        nothing = f"no schedule of {generator} was timed"
        if timed_before:
            nothing = f"nothing of {generator} was timed beside what the run has already, {timed_before} schedules"
        return BudgetError(
            f"The budget of {self.budget_s:g} s was too short: {nothing} ({', '.join(took)}).",
            next_step=f"About {minutes}m should do: sdk autotune --resume {folder} --budget {minutes}m",
        )
