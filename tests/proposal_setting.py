"""Proposals of a run whose executor says what its script says, and schedules that it has timed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from halide_autotune.autotune_loop.candidate import (
    Candidate,
    Origin,
    SchedulePoint,
    SearchedSchedule,
    SearchPoint,
    kernel_symbol,
)
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.events import Event
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.search.known.run_populations import TimedSchedule
from halide_autotune.autotune_loop.search.pool import BatchInProgress
from halide_autotune.autotune_loop.search.schedule_proposals import ScheduleProposals
from halide_autotune.autotune_loop.store.run_store import RunStore
from tests.drafted_pipelines import recorded, starting_drafts

NAME = "separable_filter"
WORK = BatchInProgress(1, 0)


@dataclass
class Setting:
    """Proposals of a run whose executor says what its script says."""

    proposals: ScheduleProposals
    store: RunStore
    asked: list[Task[Any]]
    heard: list[Event]

    def propose(
        self,
        work: BatchInProgress,
        technique: str,
        timed: Sequence[TimedSchedule],
        known: Collection[str],
        count: int,
        first: int,
    ) -> list[Candidate]:
        """What a technique proposes for a batch; nothing where Halide's search is the only one."""
        population = self.proposals.population(work, timed)
        if population is None:
            return []
        return self.proposals.propose(work, technique, population, known, count, first)

    def edits(
        self, work: BatchInProgress, timed: Sequence[TimedSchedule]
    ) -> Callable[[SearchedSchedule], Draft | None] | None:
        """What edits a batch's samples of Halide's search, if anything."""
        return self.proposals.editor(work, self.proposals.population(work, timed))


Make = Callable[..., Setting]


def sampled(run: Setting, count: int = 3) -> list[TimedSchedule]:
    """Schedules of Halide's that were timed in the first round."""
    found = []
    for index, draft in enumerate(starting_drafts(NAME)[:count]):
        symbol = kernel_symbol(NAME, 0, 0, index)
        point = SearchPoint(Origin.RANDOM, index, 1, 5, run.store.default_weights)
        candidate = Candidate(0, 0, index, symbol, point, f"features {index}", 0.5)
        run.store.database.add_candidate(candidate)
        folder = run.store.samples / candidate.sample
        folder.mkdir(parents=True)
        run.store.schedule_path(folder).write_text(print_header(schedule_of(draft, recorded(NAME), NAME), NAME))
        found.append(TimedSchedule(symbol, candidate.sample, 1.0 + index))
    return found


def known(run: Setting) -> set[str]:
    return run.store.database.known_schedules(0)


def points(candidates: list[Candidate]) -> list[SchedulePoint]:
    assert all(isinstance(one.point, SchedulePoint) for one in candidates)
    return [one.point for one in candidates if isinstance(one.point, SchedulePoint)]
