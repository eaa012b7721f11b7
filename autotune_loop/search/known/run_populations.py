"""What a run knows of its tasks' schedules, gathered for the techniques that propose further ones."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from halide_autotune.autotune_loop.candidate import Candidate, Origin, SchedulePoint
from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.gaussian_process import fewer
from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule
from halide_autotune.autotune_loop.schedule.as_json import parse_json
from halide_autotune.autotune_loop.search.known.run_drafts import RunDrafts
from halide_autotune.autotune_loop.search.known.siblings import Siblings
from halide_autotune.autotune_loop.search.lowering import RunLowerings
from halide_autotune.autotune_loop.search.models.population import InUse, Population, Tried
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.published import INCUMBENT, OWN
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.pipeline.shape import PipelineShape

# So many are tried of what earlier runs found: a small part of the first batch, if they turn out to be of no use.
_MOST_KNOWN = 4
# So many of those that were timed count, and what they descend from: as many as any model learns from.
_MOST_TRIED = 512


@dataclass(frozen=True)
class TimedSchedule:
    """A schedule with its time, as it is known when a batch is asked for.

    Attributes:
        sample: its folder below samples/.
    """

    symbol: str
    sample: str
    time_ms: float


@dataclass
class RunPopulations:
    """Gathers what is known of any task: called in one thread.

    Attributes:
        lowerings: of the run.
        known: what earlier runs found for an argument set's pipeline, the most promising first.
    """

    store: RunStore
    context: RunContext
    drafts: RunDrafts
    lowerings: RunLowerings
    known: Callable[[int, PipelineShape], Sequence[KnownSchedule]]
    listen: Listener
    _siblings: Siblings = field(default_factory=Siblings)
    _known: dict[int, list[Draft]] = field(default_factory=dict)

    def of(self, task_index: int, round_index: int, timed: Sequence[TimedSchedule]) -> Population | None:
        """What is known of a task's schedules; None where its pipeline cannot be described.

        Args:
            round_index: of the batch that is to be proposed.
            timed: what has a time. Of many the fastest count, some of the others, and what these descend from: a
                resumed run has to read each.
        """
        names = self.drafts.names(task_index)
        if names is None:
            return None
        candidates = {one.symbol: one for one in self.store.database.candidates(task_index)}
        counted = _counted(timed, candidates)
        tried = self._tried(names, candidates, counted)
        if tried:
            self._siblings.tell(task_index, names, tried[0].draft)
        failed = self.failed([*candidates.values()], task_index, round_index, timed)
        failed_moves: Counter[str] = Counter()
        for symbol in failed:
            point = candidates[symbol].point
            failed_moves.update(set(point.moves) if isinstance(point, SchedulePoint) else ())
        return Population(
            names=names,
            tried=tried,
            failed_moves=failed_moves,
            cores=self.context.parallelism,
            in_use=self._in_use(names, task_index),
            known=self._known_drafts(names, task_index),
            siblings=self._siblings.of(task_index, names),
            busy=self._busy(names, timed),
            lowering=self.lowerings.of(task_index, self._samples(task_index, tried, counted)),
            failed=self.drafts.failed(names, [*candidates.values()], failed),
        )

    def failed(
        self, candidates: Sequence[Candidate], task_index: int, round_index: int, timed: Sequence[TimedSchedule]
    ) -> dict[str, str]:
        """The symbols of those that failed in rounds that are over, with the reasons.

        Later rounds are being timed now: how many have failed already differs between equal runs.
        """
        known = {one.symbol for one in timed}
        newest = max((one.round_index for one in candidates if one.symbol in known), default=-1)
        # One round is timed while the next one is built.
        newest = max(newest, round_index - 2)
        over = {one.symbol for one in candidates if one.round_index <= newest}
        reasons = self.store.database.failure_reasons(task_index)
        return {symbol: reason for symbol, reason in reasons.items() if symbol in over}

    def _tried(
        self, names: PipelineNames, candidates: Mapping[str, Candidate], timed: Sequence[TimedSchedule]
    ) -> list[Tried]:
        """Those that can be drafted, the fastest first."""
        tried = []
        for one in timed:
            draft = self.drafts.draft(one.symbol, self.store.samples / one.sample, names)
            if draft is None:
                continue
            point = candidates[one.symbol].point if one.symbol in candidates else None
            lineage = (point.parents, point.moves) if isinstance(point, SchedulePoint) else ((), ())
            tried.append(Tried(one.symbol, draft, one.time_ms, *lineage))
        return sorted(tried, key=lambda one: one.time_ms)

    def _samples(self, task_index: int, tried: Sequence[Tried], timed: Sequence[TimedSchedule]) -> dict[str, str]:
        """The hash of each schedule that was tried → its folder below samples/."""
        samples = {one.symbol: one.sample for one in timed}
        return {self.drafts.sha256_of(one.symbol, one.draft, task_index): samples[one.symbol] for one in tried}

    def _in_use(self, names: PipelineNames, task_index: int) -> InUse | None:
        for kept, origin in ((INCUMBENT, Origin.INCUMBENT), (OWN, Origin.OWN_SCHEDULE)):
            draft = self.drafts.draft(kept, self.store.samples / kept / str(task_index), names)
            if draft is not None:
                return InUse(origin, draft)
        return None

    def _known_drafts(self, names: PipelineNames, task_index: int) -> list[Draft]:
        """The best of earlier runs, each once; what cannot be applied to this pipeline any more is left out."""
        if task_index not in self._known:
            drafts: dict[str, Draft] = {}
            for one in self.known(task_index, names.shape):
                # Anybody may have written it.
                with contextlib.suppress(Exception):
                    draft = draft_of(parse_json(one.schedule), names)
                    drafts.setdefault(self.drafts.sha256(draft, task_index), draft)
            self._known[task_index] = [*drafts.values()][:_MOST_KNOWN]
            if self._known[task_index]:
                count = len(self._known[task_index])
                which = "the best schedule" if count == 1 else f"the {count} best schedules"
                self.listen(Notice(f"This run starts from {which} of earlier ones too; --no-history starts without."))
        return self._known[task_index]

    def _busy(self, names: PipelineNames, timed: Sequence[TimedSchedule]) -> dict[str, float]:
        """Where the time of the fastest schedule goes that was looked into: shares of the pipeline's Funcs."""
        known = self.store.database.func_shares()
        looked = [one for one in timed if known.get(one.symbol)]
        if not looked:
            return {}
        told = known[min(looked, key=lambda one: one.time_ms).symbol]
        # What is left is Halide's own work, such as waiting for tasks, and copies that only that schedule has.
        shares = {names.funcs[name]: share for name, share in told.items() if name in names.funcs}
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()} if total > 0 else {}


def _counted(timed: Sequence[TimedSchedule], candidates: Mapping[str, Candidate]) -> Sequence[TimedSchedule]:
    if len(timed) <= _MOST_TRIED:
        return timed
    places = fewer(np.log([one.time_ms for one in timed]), _MOST_TRIED)
    counted = {timed[place].symbol for place in places}
    waiting = [*counted]
    while waiting:
        one = candidates.get(waiting.pop())
        parents = one.point.parents if one is not None and isinstance(one.point, SchedulePoint) else ()
        new = {*parents} - counted
        counted |= new
        waiting += new
    return [one for one in timed if one.symbol in counted]
