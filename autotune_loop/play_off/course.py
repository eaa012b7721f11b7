"""The course of a play-off: turns that choose a challenger, then turns that compare it with the baseline.

The best of several looks better than it is on the same data, so the turns that choose do not count for the verdict.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.play_off.choice import FIRST_TURNS, Choice
from halide_autotune.autotune_loop.play_off.times import DeviceTimes, ProcessTime, Turns, devices_with, times_of
from halide_autotune.autotune_loop.play_off.verdict import (
    LEAST_GAIN,
    Comparison,
    Verdict,
    VerdictReason,
    compare_turns,
    decided_message,
    sentence,
)
from halide_autotune.autotune_loop.specification.objective import LOOKS, Objective, ObjectiveKind

# The most turns that choose the challenger.
CHOOSING_TURNS = 10

_STOPPED = "Unconfirmed: the play-off was stopped."
_NO_TIME = "Unconfirmed: there was no time left for enough turns."
_NOTHING_TIMED = "Unconfirmed: no device timed every contender to the end."
_NO_DEVICE = "Unconfirmed: all devices were lost."


@dataclass(frozen=True)
class Turn:
    """The result of one turn.

    Attributes:
        times: device → contender → its time, for devices that did not fail.
        failed: contenders that failed, and are out.
        stopped: whether the turn was not finished, which ends the play-off.
    """

    times: Mapping[str, Mapping[str, ProcessTime]]
    failed: frozenset[str] = frozenset()
    stopped: bool = False


@dataclass(frozen=True)
class PlayOffResult:
    """A verdict with its times.

    Attributes:
        times: contender → device → its times, best contender first; for those in the turns of the verdict, from these.
    """

    verdict: Verdict
    times: Mapping[str, Mapping[str, DeviceTimes]]


@dataclass
class PlayOffCourse:
    """One play-off; call `run` once.

    Attributes:
        contenders: name → what messages call it, such as 'the default'; at least one; equals in order of preference.
        baseline: the name of the contender that stays unless it is beaten; None if there is none.
        also_timed: the name of a further contender to time in the same turns, for an equally precise time; it takes the
            baseline's place if that fails.
        time_turn: times each contender once on every device, in this order, each in a fresh process, beside the
            one that is named last, if any.
        time_left_s: after it no further turn begins; infinite without a limit.
        least_gain: how much less time the challenger must take, as a share of the baseline's.
        first_look_left_s: the same for the turns of the first look; None for no other limit.
        devices: all that the winner is for; those that do not finish are reported as lost.
        most_turns: of challenger against baseline, at least LOOKS[0].
        tell: called before each turn with the number of contenders, its number and the highest possible number.
    """

    contenders: Mapping[str, str]
    baseline: str | None
    objective: Objective
    seed: int
    time_turn: Callable[[Sequence[str], str | None], Turn]
    time_left_s: Callable[[], float]
    devices: Sequence[str]
    most_turns: int = LOOKS[-1]
    tell: Callable[[int, int, int], None] = lambda contenders, turn, turns: None
    also_timed: str | None = None
    first_look_left_s: Callable[[], float] | None = None
    least_gain: float = LEAST_GAIN

    def __post_init__(self) -> None:
        self._order = random.Random(self.seed)
        self._alive = list(self.contenders)
        self._times: dict[str, Mapping[str, DeviceTimes]] = {}
        self._turns_done = 0
        is_choice = len(self._alive) > 2 or self.baseline not in self._alive
        self._choosing_turns = CHOOSING_TURNS if is_choice else 1

    def run(self) -> PlayOffResult:
        """Hold the play-off. A contender that fails is out, even the baseline, and the next best challenges."""
        choice = self._choice()
        return self._ended(self._unconfirmed("", _STOPPED) if choice is None else self._decide(choice.ranking))

    def _choice(self) -> Choice | None:
        """Choose the challenger; None if the play-off is stopped. Without its yardstick a choice begins again."""
        challengers = [name for name in self._alive if name != self.baseline]
        baseline = self.baseline if challengers and self.baseline in self._alive else None
        choice = Choice(challengers or self._alive, baseline, self.objective)
        started_s, timings = time.monotonic(), 0
        for turn in range(self._choosing_turns):
            is_hurried = turn >= FIRST_TURNS and self.time_left_s() <= self._needed_s(choice, started_s, timings)
            if choice.is_over or is_hurried:
                break
            names = choice.next_turn
            done = self._turn(names, choice.yardstick)
            if done is None:
                return None
            if choice.yardstick in done.failed:
                return self._choice() if self._alive else choice
            choice.add(done.times, done.failed)
            timings += len(names)
        return choice

    def _needed_s(self, choice: Choice, started_s: float, timings: int) -> float:
        """The seconds for one more turn of the choice and the turns up to the first look."""
        last = 2 if self.also_timed in (None, self.baseline) else 3
        timing_s = (time.monotonic() - started_s) / timings
        return timing_s * (len(choice.next_turn) + LOOKS[0] * min(last, max(1, len(self._alive))))

    def _turn(self, names: Sequence[str], yardstick: str) -> Turn | None:
        """Do one turn in a new order; None if the play-off is stopped. Contenders that fail are out.

        What is timed beside a yardstick that fails may have failed because of it, and stays.
        """
        order = list(names)
        self._order.shuffle(order)
        self._turns_done += 1
        self.tell(len(names), self._turns_done, self._choosing_turns + self.most_turns)
        turn = self.time_turn(order, yardstick)
        if turn.stopped:
            return None
        if yardstick in turn.failed:
            turn = replace(turn, failed=frozenset([yardstick]))
        self._alive = [name for name in self._alive if name not in turn.failed]
        return turn

    def _decide(self, times: Mapping[str, Mapping[str, DeviceTimes]]) -> Verdict:
        """Compare the best of the choice, whose times these are, with the baseline."""
        ranking = [name for name in times if name in self._alive]
        if not ranking:
            return self._unconfirmed("", _NOTHING_TIMED)
        devices = list(times[ranking[0]])
        self._times = {**times}
        if self.baseline not in self._alive and self.also_timed in self._alive:
            self.baseline = self.also_timed
        if self.baseline not in self._alive:
            return self._unopposed(ranking[0])
        for challenger in ranking:
            if challenger == self.baseline:
                continue
            verdict = self._confirm(challenger, self.baseline, devices)
            if self.baseline not in self._alive:
                return self._unopposed(challenger)
            if challenger in self._alive:
                return verdict
        message = sentence(f"{self.contenders[self.baseline]} stays: there is no other schedule to compare it with.")
        return Verdict(self.baseline, "", self.baseline, VerdictReason.NO_CHALLENGER, message)

    def _confirm(self, challenger: str, baseline: str, devices: Sequence[str]) -> Verdict:
        """Turns of the two alone, until a look decides, the last turn is done, or the time is over."""
        turns: Turns = []
        names = [n for n in dict.fromkeys([challenger, baseline, self.also_timed or ""]) if n in self._alive]
        compared: Comparison | None = None
        for look in [*(look for look in LOOKS[:-1] if look < self.most_turns), self.most_turns]:
            left_s = self.first_look_left_s if look == LOOKS[0] and self.first_look_left_s else self.time_left_s
            while len(turns) < look and left_s() > 0:
                turn = self._turn([name for name in names if name in self._alive], baseline)
                if turn is None:
                    return self._unconfirmed(challenger, _STOPPED)
                turns.append(turn.times)
                if challenger not in self._alive or baseline not in self._alive:
                    return self._unconfirmed(challenger, _NOTHING_TIMED)
            if len(turns) < LOOKS[0]:
                return self._unconfirmed(challenger, _NO_TIME)
            left = [device for device in devices_with(turns, [challenger, baseline]) if device in devices]
            if not left:
                return self._unconfirmed(challenger, _NO_DEVICE)
            compared = compare_turns(_log_ratios(turns, challenger, baseline, left), self.objective, self.least_gain)
            for name in names:
                if name in self._alive and (everywhere := devices_with(turns, [name])):
                    self._times[name] = times_of(turns, name, everywhere)
            if compared.is_won or compared.is_hopeless or len(turns) < look:
                break
        assert compared is not None, "there is a first look"
        lost = tuple(device for device in self.devices if device not in compared.by_device)
        return self._verdict(challenger, baseline, compared, lost)

    def _verdict(self, challenger: str, baseline: str, compared: Comparison, lost: tuple[str, ...]) -> Verdict:
        reason = _reason(compared, self.least_gain)
        if lost and self.objective.kind is ObjectiveKind.WORST:
            reason = VerdictReason.UNCONFIRMED
        verdict = Verdict(
            winner=challenger if reason is VerdictReason.FASTER else baseline,
            challenger=challenger,
            baseline=baseline,
            reason=reason,
            message="",
            estimate=compared.estimate,
            p_value=compared.p_value,
            turns=compared.turns,
            by_device=compared.by_device,
            devices_lost=lost,
        )
        labels = (self.contenders[challenger], self.contenders[baseline])
        told = decided_message(verdict, compared, labels, self.objective.worst_tolerance, self.least_gain)
        return replace(verdict, message=told)

    def _unopposed(self, winner: str) -> Verdict:
        message = f"{self.contenders[winner]} wins: there is neither a default nor an incumbent to compare it with."
        return Verdict(winner, winner, "", VerdictReason.UNOPPOSED, sentence(message))

    def _unconfirmed(self, challenger: str, why: str) -> Verdict:
        return Verdict(self.baseline or "", challenger, self.baseline or "", VerdictReason.UNCONFIRMED, why)

    def _ended(self, verdict: Verdict) -> PlayOffResult:
        return PlayOffResult(verdict, {name: self._times[name] for name in self._times if name in self._alive})


def _reason(compared: Comparison, least_gain: float) -> VerdictReason:
    if compared.is_won:
        return VerdictReason.FASTER
    if compared.is_faster:
        return VerdictReason.SLOWER_ON_A_DEVICE
    is_none = compared.estimate.ratio >= 1 or compared.estimate.low > 1 - least_gain
    return VerdictReason.NOT_FASTER if is_none else VerdictReason.NOT_PROVEN


def _log_ratios(turns: Turns, challenger: str, baseline: str, devices: Sequence[str]) -> list[dict[str, float]]:
    return [{d: math.log(turn[d][challenger].compared / turn[d][baseline].compared) for d in devices} for turn in turns]
