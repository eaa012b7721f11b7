"""What a run knows of one pipeline's schedules: what models learn from, and techniques propose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from halide_autotune.autotune_loop.candidate import Origin
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule


@dataclass(frozen=True)
class Tried:
    """A schedule whose time is known.

    Attributes:
        symbol: of its kernel.
        time_ms: on the run's scale.
        parents, moves: how it was made; see `SchedulePoint`.
    """

    symbol: str
    draft: Draft
    time_ms: float
    parents: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed:
    """A schedule that failed for what may be a fault of vectors: it crashed, had a wrong output, or gave no code.

    Attributes:
        symbol: of its kernel.
        has_children: another one was made of it.
    """

    symbol: str
    draft: Draft
    has_children: bool = False


@dataclass(frozen=True)
class InUse:
    """The schedule that is used today.

    Attributes:
        origin: OWN_SCHEDULE or INCUMBENT.
    """

    origin: Origin
    draft: Draft


class Lowering(Protocol):
    """Lowers schedules, which tells much of their time and takes a part of what building them takes."""

    def affordable(self, wanted: int) -> int:
        """How many schedules it is worth lowering to choose so many from them."""

    def lowered(self, drafts: Sequence[Draft]) -> list[LoweredSchedule | None] | None:
        """What each one is lowered to, None where Halide refuses it; None if nothing can be lowered."""


@dataclass(frozen=True)
class Population:
    """What a run knows of one pipeline's schedules.

    Attributes:
        tried: the fastest first.
        failed_moves: moves → how many schedules that they made failed.
        cores: that parallel loops run on.
        in_use: the incumbent's header, else the generator's own schedule, where that can be read.
        known: the best that earlier runs found for an equal pipeline, the most promising first.
        siblings: the fastest so far of this run's other pipelines that differ in nothing but sizes.
        busy: Func → its share of the time of a schedule among the fastest; empty where nobody has looked.
        lowering: None where schedules are not to be lowered for a choice.
        failed: those of which it is known, in the order in which they were made.
    """

    names: PipelineNames
    tried: Sequence[Tried]
    failed_moves: Mapping[str, int]
    cores: int
    in_use: InUse | None = None
    known: Sequence[Draft] = ()
    siblings: Sequence[Draft] = ()
    busy: Mapping[str, float] = field(default_factory=dict)
    lowering: Lowering | None = None
    failed: Sequence[Failed] = ()
