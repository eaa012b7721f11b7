"""How many schedules a batch has: few enough that there is time for many generations, each after the other."""

from __future__ import annotations

# A run's budget has time for at least so many batches, unless they are as small as they may be.
_GENERATIONS = 20
_SMALL_BATCH, _SMALLEST_BATCH = 8, 4
# The first one's schedules are what all others come from.
_SMALL_FIRST_BATCH, _SMALLEST_FIRST_BATCH = 16, 6
# Where schedules take so long that a small batch would take more of the budget than this, it is smaller.
_LARGEST_SHARE, _LARGEST_FIRST_SHARE = 0.08, 0.2


def batch_size(affordable: float, most: int, *, is_first: bool) -> int:
    """The size of a batch.

    Args:
        affordable: schedules that a task's whole budget has time for.
        most: schedules that a batch may have.
    """
    small, smallest, share = _SMALL_BATCH, _SMALLEST_BATCH, _LARGEST_SHARE
    if is_first:
        small, smallest, share = _SMALL_FIRST_BATCH, _SMALLEST_FIRST_BATCH, _LARGEST_FIRST_SHARE
    least = max(smallest, min(small, int(share * affordable)))
    return min(most, max(least, int(affordable / _GENERATIONS)))
