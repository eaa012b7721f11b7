"""Whether a machine is too disturbed to time on: what disturbs it, and how long a run waits for it to become quiet.

The rule looks at the last timings, never at whether a time suits. The machine is then looked at while nothing is timed
on it, which names who disturbs; only what that look confirms is told, and waited for. Others that compute then are
not, if the timings did not feel them, for example because kernels have a higher priority.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from halide_autotune.devices.timing.machine_signs import OTHERS_SHARE, BusyProcess, MachineSigns, Surroundings, together
from halide_autotune.devices.timing.measurement import MeasureFailure, Measurement
from halide_autotune.targets.values.texts import brief_duration

# The last timings are judged, once there are so many of them, and so long: processor time ticks 100 times a second.
_LAST_TIMINGS, _LEAST_TIMINGS, _LEAST_S = 16, 4, 0.5
# Others are felt if over half of the repetitions were disturbed, or a task waited for a core for more than this share
# of the time, unless it cannot have been one of ours.
_DISTURBED_SHARE, _WAITING_SHARE = 0.5, 0.25
# A hypervisor disturbs if it took more than this share of the time for which there was work.
_STOLEN_SHARE = 0.10
# Of a run's budget, what it may spend on waiting for a quiet machine.
_BUDGET_SHARE = 0.1
# While a run waits, the machine is looked at this often, and this often somebody is told; when it does not wait, a
# machine is not looked at again before this.
_LOOK_AGAIN_S, _TELL_AGAIN_S, _NEXT_LOOK_S = 5.0, 60.0, 60.0


class Cause(Enum):
    """What disturbs a machine."""

    OTHERS = "others"
    HYPERVISOR = "hypervisor"
    HEAT = "heat"


@dataclass(frozen=True)
class News:
    """A sentence about a machine.

    Attributes:
        is_warning: the times are not as good as they could be.
    """

    text: str
    is_warning: bool = False


def quiet_patience_s(patience_s: float, budget_s: float | None, quiet_s: float | None = None) -> float:
    """How long a run may wait for a quiet machine, but not for much of its budget.

    Args:
        patience_s: how long it waits for a lost one.
        quiet_s: what was asked for quiet machines; None for as long as for a lost one.
    """
    asked_s = patience_s if quiet_s is None else quiet_s
    return asked_s if budget_s is None else min(asked_s, _BUDGET_SHARE * budget_s)


def causes_while_timing(timings: Sequence[Measurement]) -> frozenset[Cause]:
    """What has disturbed these timings; nothing if there are too few to tell, or the machine tells nothing."""
    signs = [timing.machine for timing in timings if timing.machine is not None]
    if len(signs) < _LEAST_TIMINGS or sum(one.duration_s for one in signs) < _LEAST_S:
        return frozenset()
    all_signs = together(signs)
    marks = [mark for timing in timings for mark in timing.disturbed_marks]
    disturbed_share = sum(marks) / len(marks) if marks else 0.0
    hot_share = sum(one.is_slowed_by_heat for one in signs) / len(signs)
    has_waited = all_signs.waiting_share > _WAITING_SHARE and not all_signs.has_priority
    is_felt = disturbed_share > _DISTURBED_SHARE or has_waited
    found = _causes(all_signs, is_hot=hot_share > _DISTURBED_SHARE)
    return found if is_felt else found - {Cause.OTHERS}


def causes_at_rest(signs: MachineSigns) -> frozenset[Cause]:
    """What would disturb a timing, on a machine on which nothing is timed."""
    return _causes(signs, is_hot=signs.is_slowed_by_heat)


def _causes(signs: MachineSigns, *, is_hot: bool) -> frozenset[Cause]:
    found = {
        Cause.OTHERS: signs.others_share > OTHERS_SHARE,
        Cause.HYPERVISOR: signs.stolen_share > _STOLEN_SHARE,
        Cause.HEAT: is_hot,
    }
    return frozenset(cause for cause, is_so in found.items() if is_so)


@dataclass
class MachineWatch:
    """One device in a run. Times are of a monotonic clock.

    Attributes:
        device: its name.
        patience_s: how long the run may wait for it, all in all.
        is_waiting: whether nothing is to be timed on it now.
    """

    device: str
    patience_s: float
    is_waiting: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._timings: deque[Measurement] = deque(maxlen=_LAST_TIMINGS)
        self._told: frozenset[Cause] = frozenset()
        # What the timings said when the machine was first looked at.
        self._felt: frozenset[Cause] = frozenset()
        self._next_look_s = -math.inf
        self._began_s = self._told_s = 0.0

    def add(self, result: Measurement | MeasureFailure) -> None:
        """A schedule was timed on it; one that failed says nothing."""
        if isinstance(result, Measurement):
            self._timings.append(result)

    def begins_look(self, now_s: float) -> bool:
        """Whether to look at the machine now, while nothing is timed on it; once, until `looked` has the answer."""
        if now_s < self._next_look_s:
            return False
        if not self.is_waiting:
            self._felt = causes_while_timing(self._timings)
        if self._felt:
            self._next_look_s = math.inf
        return bool(self._felt)

    def looked(self, found: Surroundings | None, now_s: float) -> list[News]:
        """Take the answer, and decide whether to wait; return what is new.

        Args:
            found: None if the machine did not answer.
        """
        self._timings.clear()
        causes = frozenset() if found is None else causes_at_rest(found.signs) - ({Cause.OTHERS} - self._felt)
        if found is None or not causes:
            return self._go_on(now_s)
        if not self.is_waiting:
            self._began_s = self._told_s = now_s
        is_new = not causes <= self._told
        self._told |= causes
        if now_s - self._began_s >= self.patience_s:
            return self._give_up(found, causes, now_s, is_new=is_new)
        self.is_waiting = True
        self._next_look_s = now_s + _LOOK_AGAIN_S
        left = (
            f"The run waits up to {brief_duration(self.patience_s - (now_s - self._began_s))} for it to become quiet."
        )
        if is_new:
            self._told_s = now_s
            return [News(f"{_too_disturbed(self.device, causes, found)} {left}", is_warning=True)]
        if now_s - self._told_s >= _TELL_AGAIN_S:
            self._told_s = now_s
            return [News(f"{self.device} is still disturbed after {brief_duration(now_s - self._began_s)}. {left}")]
        return []

    def _go_on(self, now_s: float) -> list[News]:
        self._next_look_s = now_s + _NEXT_LOOK_S
        if not self.is_waiting:
            return []
        waited_s = now_s - self._began_s
        self.is_waiting = False
        self.patience_s -= waited_s
        return [News(f"{self.device} is quiet again after {brief_duration(waited_s)}; the run goes on.")]

    def _give_up(self, found: Surroundings, causes: frozenset[Cause], now_s: float, *, is_new: bool) -> list[News]:
        waited_s, waited = now_s - self._began_s, self.is_waiting
        self.is_waiting, self.patience_s = False, 0.0
        self._next_look_s = now_s + _NEXT_LOOK_S
        goes_on = "the run goes on, and its times are less certain."
        if is_new:
            text = _too_disturbed(self.device, causes, found)
            return [News(f"{text} {goes_on[0].upper()}{goes_on[1:]}", is_warning=True)]
        if waited:
            return [
                News(f"{self.device} is still disturbed after {brief_duration(waited_s)}; {goes_on}", is_warning=True)
            ]
        return []


def _too_disturbed(device: str, causes: frozenset[Cause], found: Surroundings) -> str:
    signs, words = found.signs, []
    if Cause.OTHERS in causes:
        words.append(_others(signs, found.busiest))
    if Cause.HYPERVISOR in causes:
        words.append(f"its hypervisor takes {signs.stolen_share:.0%} of its processor time for other machines")
    if Cause.HEAT in causes and signs.hz and signs.max_hz:
        frequencies = f"{signs.hz / 1e9:.1f} of {signs.max_hz / 1e9:.1f} GHz"
        words.append(f"heat slows it down ({frequencies} at {signs.hottest_c:.0f} °C)")
    return f"{device} is too disturbed to time on: {'; '.join(words)}."


def _others(signs: MachineSigns, busiest: BusyProcess | None) -> str:
    share = f"others use {signs.others_share:.0%} of its cores"
    if busiest is None or busiest.busy_s <= 0:
        return f"{share}, who cannot be seen from here"
    who = "your user" if busiest.is_own_users else "another user"
    return f"{share}, most of all the process {busiest.name} of {who} (pid {busiest.pid})"
