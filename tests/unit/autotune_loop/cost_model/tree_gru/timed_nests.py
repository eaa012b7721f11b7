"""Loop nests with times that follow from them."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.lowered.loop_rows import LoopRows, loop_rows
from halide_autotune.targets.lowering.loop_nest import VERSION, Computation, Loop, LoopNest


def timed_nest(seed: int) -> tuple[LoopRows, float]:
    """A nest of two loops at the top, each with one inside, and the logarithm of its time.

    A branch inside a loop makes what is in it cost ten times as much: that is seen with the loops around alone.
    """
    chance = Random(seed)

    def loop(extent: float, *inside: Loop, kind: Any = "serial", operations: float = 0.0) -> Loop:
        computations = (Computation("f", {"float_add": operations}, ()),)
        return Loop("f.x", "f", kind, extent, 0, computations, (), inside)

    tops, time = [], 1.0
    for _ in range(2):
        extent, operations = chance.choice([1.0, 8.0, 64.0]), chance.choice([4.0, 16.0, 64.0])
        inside = loop(extent, operations=operations)
        is_dear = chance.random() < 0.5
        tops.append(loop(8, loop(1, inside, kind="branch") if is_dear else inside))
        time += 8 * extent * operations * (10.0 if is_dear else 1.0)
    return loop_rows(LoopNest(VERSION, 32, loop(1, *tops, kind="root")), 2), float(np.log(time))
