"""Who found what: the winner's ancestors with what each move gained, and what each technique has brought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halide_autotune.autotune_loop.candidate import Measured, SchedulePoint, found_by

# A schedule that is faster by less is no new best: a timing alone is not so precise.
_NEW_BEST = 0.98


@dataclass(frozen=True)
class Ancestor:
    """A schedule on the way to another.

    Attributes:
        moves: by which it was made of the one before; empty for the first.
        other_parent: the sample that a crossover took a part from; empty without one.
        gain: the time of the one before over its own.
    """

    sample: str
    found_by: str
    moves: tuple[str, ...]
    median_ms: float
    other_parent: str = ""
    gain: float | None = None


@dataclass(frozen=True)
class TechniqueRow:
    """What a technique has brought.

    Attributes:
        timed: schedules.
        best_ms: its fastest.
        new_bests: how often it found the fastest so far.
    """

    technique: str
    timed: int
    best_ms: float
    new_bests: int


def ancestors(samples: Sequence[Measured], symbol: str) -> tuple[Ancestor, ...]:
    """The line of first parents of a schedule, the oldest first; empty if the schedule was not sampled.

    Args:
        samples: of one argument set.
    """
    by_symbol = {sample.candidate.symbol: sample for sample in samples}
    line: list[Measured] = []
    now = by_symbol.get(symbol)
    while now is not None and now not in line:
        line.append(now)
        parents = _point(now).parents
        now = by_symbol.get(parents[0]) if parents else None
    found = []
    for before, one in zip([None, *reversed(line)], reversed(line), strict=False):
        others = [by_symbol[name].candidate.sample for name in _point(one).parents[1:] if name in by_symbol]
        found.append(
            Ancestor(
                sample=one.candidate.sample,
                found_by=found_by(one.candidate.point),
                moves=_point(one).moves,
                median_ms=one.median_ms,
                other_parent="".join(others[:1]),
                gain=None if before is None else before.median_ms / one.median_ms,
            )
        )
    return tuple(found)


def techniques(samples: Sequence[Measured]) -> tuple[TechniqueRow, ...]:
    """What found schedules, the one with the fastest first.

    Args:
        samples: of one argument set, in the order of timing.
    """
    best_ms: dict[str, float] = {}
    timed: dict[str, int] = {}
    new_bests: dict[str, int] = {}
    fastest_ms = float("inf")
    for sample in samples:
        name = found_by(sample.candidate.point)
        timed[name] = timed.get(name, 0) + 1
        best_ms[name] = min(sample.median_ms, best_ms.get(name, sample.median_ms))
        new_bests[name] = new_bests.get(name, 0) + (sample.median_ms < _NEW_BEST * fastest_ms)
        fastest_ms = min(fastest_ms, sample.median_ms)
    rows = [TechniqueRow(name, timed[name], best_ms[name], new_bests[name]) for name in timed]
    return tuple(sorted(rows, key=lambda row: row.best_ms))


def _point(sample: Measured) -> SchedulePoint:
    point = sample.candidate.point
    return point if isinstance(point, SchedulePoint) else SchedulePoint(point.origin)
