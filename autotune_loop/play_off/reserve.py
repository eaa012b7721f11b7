"""How much time the play-offs of a run need, and how many schedules can be timed before them."""

from __future__ import annotations

import math
from bisect import insort
from dataclasses import dataclass

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.play_off.choice import FIRST_TURNS
from halide_autotune.autotune_loop.specification.objective import LOOKS
from halide_autotune.devices.device import Clock

PLAY_OFF_CONTENDERS = 6
# Where times do not vary only one that fails could make way for another.
_WITHOUT_NOISE = 4
# The best of the run and what it must beat.
_FEWEST_CONTENDERS = 2
# After its first turns the choice among all contenders takes about so many timings, and so much of a budget at most.
_FURTHER_CHOICE, _CHOICE_SHARE = 40, 0.1
# Beside its turns a play-off links, and pushes the executable to the devices. Linking is observed.
_START_S = 0.5
_LINK_S = 2.5
# The least that timing a schedule takes, and the estimate before the first.
_PROCESS_S = 0.1
# One writes its outputs, one is timed.
_RUNS_OF_A_REFERENCE = 2


@dataclass(frozen=True)
class PlayOffRoom:
    """What there is time for.

    Attributes:
        deadline: after it no further turn begins. What a play-off leaves of its share is for those after it.
        first_look_by: after it no turn of the first look begins, either.
        contenders: how many may take part, without an incumbent.
    """

    deadline: Deadline
    first_look_by: Deadline
    contenders: int


class PlayOffReserve:
    """The time that play-offs need, from how long timing, linking and training have taken so far.

    Args:
        clock: of the devices. With a simulated clock each schedule is timed only once, because times do not vary.
        at_once: schedules that are timed at once, on all devices together.
        budget_s: of the run; infinite without one.
    """

    def __init__(self, clock: Clock, at_once: int = 1, budget_s: float = math.inf) -> None:
        self._clock = clock
        self._budget_s = budget_s
        self._at_once = at_once
        self._held_s: list[float] = []  # sorted, because it is read before every schedule
        self._all_held_s = 0.0
        self._default_held_s: float | None = None
        self._training_s = 0.0
        self._link_s: float | None = None
        self._expected_s = 0.0

    def add_reference(self, held_s: float) -> None:
        """A reference held its device for `held_s`, which says what to expect before the first schedule is timed."""
        self._expected_s = max(self._expected_s, held_s / _RUNS_OF_A_REFERENCE)

    def add_timing(self, held_s: float, *, is_default: bool = False) -> None:
        """Timing a schedule held its device for `held_s`; that of a default, which play-offs time again, too."""
        if is_default:
            self._default_held_s = max(self._default_held_s or 0.0, held_s)
        self._all_held_s += held_s
        insort(self._held_s, held_s)

    def add_link(self, duration_s: float) -> None:
        """A batch was linked; the slowest one counts."""
        self._link_s = max(self._link_s or 0.0, duration_s)

    def add_training(self, duration_s: float) -> None:
        """The cost model was trained. A play-off may have to wait for a training; the latest one counts, because the
        first also starts TensorFlow.
        """
        self._training_s = duration_s

    @property
    def training_s(self) -> float:
        """How long the next training may take; 0 before the first."""
        return self._training_s

    def needed_s(self, tasks: int, with_incumbent: int, contenders: int = PLAY_OFF_CONTENDERS) -> float:
        """Seconds until the first looks of all play-offs, as turns usually go in this run.

        Args:
            tasks: tuning tasks, one play-off each.
            with_incumbent: how many of them have an incumbent.
            contenders: that each has, without it.
        """
        contenders = max(_FEWEST_CONTENDERS, min(self._most_contenders, contenders))
        without_s = (tasks - with_incumbent) * self._play_off_s(contenders, False)
        with_s = with_incumbent * self._play_off_s(contenders, True)
        return self._training_s + without_s + with_s + self._further_choice_s(tasks, contenders)

    def _further_choice_s(self, tasks: int, contenders: int) -> float:
        """What the choices take when they are close, after the turns without which there is no play-off."""
        if self._clock is Clock.SIMULATED or contenders <= _FEWEST_CONTENDERS:
            return 0.0
        return min(tasks * _FURTHER_CHOICE * self._typical_s(), _CHOICE_SHARE * self._budget_s)

    @property
    def _most_contenders(self) -> int:
        return _WITHOUT_NOISE if self._clock is Clock.SIMULATED else PLAY_OFF_CONTENDERS

    def timed_within(self, time_s: float) -> int:
        """How many schedules can be timed in a finite time."""
        return int(max(0.0, time_s) / self._usual_s() * self._at_once)

    def _usual_s(self) -> float:
        """What timing a schedule takes: the mean so far."""
        mean_s = self._all_held_s / len(self._held_s) if self._held_s else self._expected_s
        return max(mean_s, _PROCESS_S)

    def _typical_s(self) -> float:
        """What a turn takes of a contender: the mean of the quicker half so far, of which the fastest schedules are."""
        if not self._held_s:
            return self._usual_s()
        quicker_s = self._held_s[: (len(self._held_s) + 1) // 2]
        return max(sum(quicker_s) / len(quicker_s), _PROCESS_S)

    def _play_off_s(self, contenders: int, with_incumbent: bool) -> float:
        names = contenders + int(with_incumbent)
        start_s = _START_S + (_LINK_S if self._link_s is None else self._link_s)
        turn_s = self._typical_s()
        default_s = turn_s if self._default_held_s is None else self._default_held_s
        if self._clock is Clock.SIMULATED:
            return start_s + math.ceil(names / self._at_once) * max(turn_s, default_s)
        choosing = names * (FIRST_TURNS if names > _FEWEST_CONTENDERS else 1)
        deciding = (1 + int(with_incumbent)) * LOOKS[0]
        return start_s + (choosing + deciding) * turn_s + LOOKS[0] * default_s

    def room(self, run: Deadline, end: Deadline, with_incumbent: bool, play_offs: int) -> PlayOffRoom | None:
        """The play-off that there is time for now. Its first look may come after the run's deadline.

        Args:
            run: when the budget is spent.
            end: when the run is over, whatever is under way.
            play_offs: that are to be held, this one included; they share what is left.

        Returns:
            None if there is not time enough for the first look at two contenders.
        """
        left_s = end.left_s / play_offs
        shared = run if play_offs == 1 else run.share(1 / play_offs)
        for contenders in range(self._most_contenders, _FEWEST_CONTENDERS - 1, -1):
            if self._play_off_s(contenders, with_incumbent) <= left_s:
                return PlayOffRoom(shared, Deadline.after(left_s), contenders)
        return None
