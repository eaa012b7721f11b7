"""What races cost, and how far they are off."""

from __future__ import annotations

import math

from benchmarks.leader_races import Kind, race


def test_a_wider_race_takes_more_timings() -> None:
    kind = Kind(12, 1.2, 1.03)
    (narrow_behind, narrow), (wide_behind, wide) = race(kind, 0.0, 40), race(kind, 2.0, 40)
    assert 0 < narrow < wide <= 8 * 3
    assert min(narrow_behind, wide_behind) >= 0 and max(narrow_behind, wide_behind) < math.log(1.03)


def test_where_what_is_known_is_far_ahead_nothing_is_timed_again() -> None:
    assert race(Kind(12, 1.2, 0.5), 2.0, 5) == (0.0, 0.0)
