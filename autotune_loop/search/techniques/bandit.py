"""How a batch is divided between techniques: by what each has brought lately, for the time that it took.

OpenTuner's bandit (Ansel et al. 2014, section 3.3.2): the area under the curve of a technique's successes in a sliding
window, the newest count most, plus a bonus for what is seldom used. Here a schedule's cost in seconds divides it,
because a run's budget is time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WINDOW = 200
_EXPLORATION = 0.05
# A success: among so many of the fastest when its batch was timed, which are at most such a share of all.
_LEADERS, _LEADING_SHARE = 5, 0.25


@dataclass(frozen=True)
class Outcome:
    """A schedule that was tried.

    Attributes:
        technique: whose it was.
        time_ms: None if it failed.
        cost_s: seconds of the run to find, to build and to time it.
        round_index: of its batch, which was chosen before anything of it was timed.
    """

    technique: str
    time_ms: float | None
    cost_s: float
    round_index: int


def divide(outcomes: Sequence[Outcome], techniques: Sequence[str], count: int) -> dict[str, int]:
    """How many schedules of a batch each technique proposes; all of them together `count`.

    Args:
        outcomes: of the run so far, in order.
    """
    successes = _successes(outcomes)
    recent = list(zip(outcomes, successes, strict=True))[-_WINDOW:]
    used = {name: [success for one, success in recent if one.technique == name] for name in techniques}
    areas = {name: _area(used[name]) for name in techniques}
    costs = _costs([one for one, _ in recent], techniques)
    shares = dict.fromkeys(techniques, 0)
    uses = {name: len(used[name]) for name in techniques}
    for _ in range(count):
        total = sum(uses.values()) + 1

        def score(name: str, total: int = total) -> float:
            if not uses[name]:
                return math.inf
            bonus = _EXPLORATION * math.sqrt(2 * math.log(total + 1) / (uses[name] + 1))
            # What a technique brings wears off within a batch: its next proposals are worth less.
            return (areas[name] / (1 + shares[name] / 4) + bonus) / costs[name]

        best = max(techniques, key=score)
        shares[best] += 1
        uses[best] += 1
    return shares


def _successes(outcomes: Sequence[Outcome]) -> list[bool]:
    """Which were among the fastest once their batch was timed: within it, the order says nothing."""
    times_ms: list[float] = []
    found = []
    for _, batch in itertools.groupby(outcomes, key=lambda one: one.round_index):
        together = [*batch]
        times_ms = sorted([*times_ms, *(one.time_ms for one in together if one.time_ms is not None)])
        leaders = times_ms[: max(1, min(_LEADERS, int(_LEADING_SHARE * len(times_ms))))]
        found += [one.time_ms is not None and one.time_ms <= leaders[-1] for one in together]
    return found


def _area(successes: Sequence[bool]) -> float:
    """Between 0 and 1; the newest weighs most."""
    count = len(successes)
    if not count:
        return 0.0
    return 2.0 / (count * (count + 1)) * sum(place * success for place, success in enumerate(successes, start=1))


def _costs(outcomes: Sequence[Outcome], techniques: Sequence[str]) -> Mapping[str, float]:
    """Mean seconds by technique, relative to the cheapest; 1 for one that was not used."""
    means = {}
    for name in techniques:
        costs_s = [one.cost_s for one in outcomes if one.technique == name]
        if costs_s:
            means[name] = max(1e-3, sum(costs_s) / len(costs_s))
    cheapest = min(means.values(), default=1.0)
    return {name: means.get(name, cheapest) / cheapest for name in techniques}
