"""What sets one sketch of a pipeline apart from another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Fusion(Enum):
    """Where a Func is computed that others need."""

    ROOT = "root"
    ROWS = "rows"
    STRIPS = "strips"
    COLUMNS = "columns"


class Channels(Enum):
    """Where loops of few iterations go: unrolled in the vectors' loop, around each row, or around all tasks."""

    INSIDE = "inside"
    AROUND_ROWS = "around rows"
    OUTSIDE = "outside"


@dataclass(frozen=True)
class Style:
    """How a sketch is made.

    Attributes:
        fusion: at the root; per row of what is computed at the root, kept while the rows go on; per task of it; or per
            task that is a strip of columns from top to bottom, which what goes along the rows can be computed in.
        rows: how many rows a task has at most, with two tasks for every core; None for 32, or fewer of a small one
            of which no two tasks compute the same rows.
        columns: how wide a task's tiles are; None for all of the row.
        budget: the operations that may be repeated for one point before a Func gets storage.
        redundancy: how often a Func's points may be computed, at most, so that it need not be computed at the root.
        is_wide: vectors are filled with the narrowest type, else with the widest.
        block: which of the blocks that registers hold is summed at once, in the order of promise; None sums none.
        pairs: rows come in twos, where a Func differs from one to the next, as those of an enlarged picture do.
        per_vector: what several channels need is computed once for each vector, else that is left to the compiler.
        parts: how many parts for each core a long reduction is taken apart into; None leaves it whole.
        clones: a large Func whose readers have no loop in common is computed beside each of them.
    """

    fusion: Fusion
    rows: int | None = None
    columns: int | None = None
    budget: int = 40
    redundancy: float = 1.5
    channels: Channels = Channels.INSIDE
    is_wide: bool = False
    block: int | None = None
    pairs: bool = False
    clones: bool = False
    parts: int | None = None
    per_vector: bool = False
