"""The choice of a challenger: contenders are timed in turns beside one of them, and clearly slower ones drop out.

So the time goes to those that are hard to tell apart (successive elimination: Even-Dar, Mannor and Mansour 2006).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence

from halide_autotune.autotune_loop.play_off.times import DeviceTimes, ProcessTime, Turns, devices_with, times_of
from halide_autotune.autotune_loop.run_scale import PROCESS_NOISE
from halide_autotune.autotune_loop.specification.objective import Objective, ObjectiveKind

# Turns before any drops out, in which the baseline takes part.
FIRST_TURNS = 2
# A contender drops out once it is so many standard errors slower than the best.
_DEVIATIONS = 2.0
# What is known of the noise beforehand counts as much as so many turns.
_KNOWN_TURNS = 4


class Choice:
    """Says whom to time next, and ranks the contenders.

    Args:
        contenders: equals in order of preference; at least one.
        baseline: what they challenge; None if there is nothing.

    Attributes:
        yardstick: what the others are timed beside.
        racing: contenders that may be the best.
    """

    def __init__(self, contenders: Sequence[str], baseline: str | None, objective: Objective) -> None:
        self.yardstick = contenders[0]
        self.racing = list(contenders)
        self._baseline = baseline
        self._objective = objective
        self._turns: Turns = []
        self._devices: list[str] = []
        self._times: dict[str, dict[str, DeviceTimes]] = {}

    @property
    def is_over(self) -> bool:
        """Whether more turns have nothing to tell."""
        return len(self._turns) >= FIRST_TURNS and len(self.racing) < 2

    @property
    def next_turn(self) -> list[str]:
        """Whom to time next."""
        if self._baseline is None or len(self._turns) >= FIRST_TURNS:
            return list(self.racing)
        return [*self.racing, self._baseline]

    def add(self, times: Mapping[str, Mapping[str, ProcessTime]], failed: Collection[str]) -> None:
        """A turn of `next_turn` was done.

        Args:
            times: device → contender → its time, for devices that did not fail.
            failed: contenders that are out; not the yardstick, without which there is nothing to compare.
        """
        if self._baseline in failed:
            self._baseline = None
        self.racing = [name for name in self.racing if name not in failed]
        timed = [name for name in self.next_turn if name not in failed]
        self._turns.append(times)
        self._devices = devices_with(self._turns, self.racing)
        for name in timed:
            self._times[name] = times_of(self._turns, name, self._devices)
        for name in failed:
            self._times.pop(name, None)
        if len(self._turns) >= FIRST_TURNS and self._devices:
            self._drop_slower()

    @property
    def ranking(self) -> dict[str, dict[str, DeviceTimes]]:
        """Contender or baseline → device → its times, best first; empty if no device timed all in every turn."""
        if not self._devices:
            return {}
        ranked = sorted(self._times, key=self._score)
        return {name: {device: self._times[name][device] for device in self._devices} for name in ranked}

    def _score(self, name: str) -> float:
        compared = {device: self._times[name][device].compared for device in self._devices}
        if self._objective.kind is ObjectiveKind.WORST and self._baseline in self._times:
            base = self._times[self._baseline]
            compared = {device: one / base[device].compared for device, one in compared.items()}
        return self._objective.score(compared)

    def _drop_slower(self) -> None:
        scores = {name: self._score(name) for name in self.racing}
        best = min(scores.values())
        far = _DEVIATIONS * self._noise() * math.sqrt(2 / len(self._turns))
        self.racing = [name for name, score in scores.items() if math.log(score / best) <= far]

    def _noise(self) -> float:
        """The standard deviation of the logarithm of a contender's time as a multiple of the yardstick's."""
        squares, count = _KNOWN_TURNS * 2 * PROCESS_NOISE**2, float(_KNOWN_TURNS)
        for name in self.racing:
            if name == self.yardstick:
                continue
            logs = [self._log(turn, name) for turn in self._turns]
            squares += statistics.variance(logs) * (len(logs) - 1)
            count += len(logs) - 1
        return math.sqrt(squares / count)

    def _log(self, turn: Mapping[str, Mapping[str, ProcessTime]], name: str) -> float:
        return self._objective.mean_log({device: math.log(turn[device][name].compared) for device in self._devices})
