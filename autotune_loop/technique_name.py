"""The names of the ways of proposing schedules."""

from __future__ import annotations

from enum import StrEnum


class TechniqueName(StrEnum):
    """The ways of proposing schedules that are always there; plug-ins have names of their own."""

    # Halide's own search, steered by the cost model.
    SAMPLING = "sampling"
    # The generator's own schedule, and schedules after rules of the trade.
    SKETCHES = "sketches"
    # Children of the fastest so far.
    EVOLUTION = "evolution"
    # Many moves away from them, on a model.
    ANNEALING = "annealing"
    # Their numbers, one after the other and together.
    PATTERN = "pattern"
