"""The Funcs of a schedule as they lie inside each other's loops, with their shares: a picture of its loop nest."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from halide_autotune.autotune_loop.explain.explained import ExplainedFunc, ExplainedSchedule
from halide_autotune.autotune_loop.explain.words import place_words

# What takes less has no room in a picture.
_SMALLEST_SHARE = 0.002
# From these shares on a Func is drawn hotter.
_HEATS = (0.05, 0.15, 0.3, 0.5)


@dataclass(frozen=True)
class Nested:
    """One Func, with what is computed inside its loops.

    Attributes:
        place: where it is computed, in words.
        own_share: of the whole, without what is inside: of the time, or without times of what is loaded.
    """

    name: str
    place: str
    own_share: float
    inside: tuple[Nested, ...] = ()

    @property
    def heat(self) -> int:
        """0 to 4, by its own share."""
        return bisect.bisect(_HEATS, self.own_share)

    @property
    def share(self) -> float:
        """With all that is inside."""
        return self.own_share + sum(one.share for one in self.inside)


def nest(schedule: ExplainedSchedule) -> tuple[Nested, ...]:
    """The Funcs that are stored at the root, the largest share first; each has what is inside it."""
    counted = [func for func in schedule.funcs if func.counts is not None]
    whole = schedule.call_s or sum(func.loaded_bytes for func in counted)
    names = {func.name for func in counted}

    def amount(func: ExplainedFunc) -> float:
        return (func.time_s or 0.0) if schedule.call_s else float(func.loaded_bytes)

    def inside(outer: str, seen: frozenset[str]) -> tuple[Nested, ...]:
        found = []
        for func in counted:
            assert func.counts is not None, "it is counted"
            within = func.counts.within if func.counts.within in names else ""
            # Names come from a device: whatever it says, no Func is inside itself.
            if within == outer and func.name not in seen:
                own = amount(func) / whole if whole else 0.0
                found.append(Nested(func.name, place_words(func.counts), own, inside(func.name, seen | {func.name})))
        return tuple(sorted((one for one in found if one.share >= _SMALLEST_SHARE), key=lambda one: -one.share))

    return inside("", frozenset())
