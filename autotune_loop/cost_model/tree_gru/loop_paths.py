"""The loops of several schedules as a network walks them: from the outermost inwards, equal ones once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halide_autotune.autotune_loop.lowered.loop_rows import LOOP_ROW_NAMES, LoopRows, Rows

Places = npt.NDArray[np.int32]


@dataclass(frozen=True)
class LoopPaths:
    """Loops with those around them.

    Schedules of one pipeline have most of their loops in common, and what a loop is to the network follows from itself
    and those around it: such loops of several schedules are one.

    Attributes:
        schedules: how many there are.
        rows: by depth, loop × `LOOP_ROW_NAMES`.
        parents: by depth, of each loop the place of the one around it among those of the depth before.
        owners, loops, counts: schedules, the loops that they have, which are numbered through all depths, and how
            often.
    """

    schedules: int
    rows: tuple[Rows, ...]
    parents: tuple[Places, ...]
    owners: Places
    loops: Places
    counts: Rows


def loop_paths(schedules: Sequence[LoopRows]) -> LoopPaths:
    """The loops of these schedules."""
    depths: list[dict[tuple[int, bytes], int]] = []
    held: Counter[tuple[int, int, int]] = Counter()
    for owner, schedule in enumerate(schedules):
        at: list[tuple[int, int]] = []
        for row, parent in zip(schedule.rows, schedule.parents, strict=True):
            depth, around = (0, 0) if parent < 0 else (at[parent][0] + 1, at[parent][1])
            if depth == len(depths):
                depths.append({})
            known = depths[depth]
            place = known.setdefault((around, row.tobytes()), len(known))
            at.append((depth, place))
            held[owner, depth, place] += 1
    firsts = np.cumsum([0, *map(len, depths)])
    return LoopPaths(
        len(schedules),
        tuple(_rows(known) for known in depths),
        tuple(np.array([around for around, _ in known], dtype=np.int32) for known in depths),
        np.array([owner for owner, _, _ in held], dtype=np.int32),
        np.array([firsts[depth] + place for _, depth, place in held], dtype=np.int32),
        np.array([*held.values()], dtype=np.float32),
    )


def _rows(known: Mapping[tuple[int, bytes], int]) -> Rows:
    return np.frombuffer(b"".join(row for _, row in known), dtype=np.float32).reshape(-1, len(LOOP_ROW_NAMES))
