"""From a round's number to an executable with a batch of new schedules: search, choose, generate code, link."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.candidate import (
    Built,
    BuiltBatch,
    Candidate,
    Origin,
    SchedulePoint,
    SearchedSchedule,
    SearchFailure,
    SearchPoint,
    Yardstick,
    sample_name,
    technique_of,
)
from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import Listener, Notice, SampleFailed
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuildObject, Search
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.search.code_builds import (
    BUILD_SHARES,
    LEAST,
    SHARES_BEFORE_CHILDREN,
    Build,
    CodeBuilds,
    timed,
)
from halide_autotune.autotune_loop.search.known.run_populations import TimedSchedule
from halide_autotune.autotune_loop.search.lost_objects import rebuild
from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.plan import full_beam_point, greedy_point
from halide_autotune.autotune_loop.search.pool import AllSearchesFailed, BatchInProgress, PoolSearch
from halide_autotune.autotune_loop.search.schedule_proposals import ScheduleProposals
from halide_autotune.autotune_loop.search.selection import choose_batch
from halide_autotune.autotune_loop.search.waiting import result_unless
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.failure_log import FailureLog
from halide_autotune.autotune_loop.store.featurization import read_featurization
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.weights.weights_file import read_weights

# Shares of the time left after which searching needs only a few schedules, and after which it needs only one.
_SEARCH_SHARES = (0.25, 0.5)
# The same where other techniques, which give schedules in milliseconds, propose schedules for the batch, too: then none
# is enough in the end, because where most searches come to a dead end the first schedule may take very long.
_SHARES_BESIDE_OTHERS = (0.04, 0.08)
# The default is what the others are compared with.
_DEFAULT_GRACE_S = 3.0
# A full beam search takes so many times as long as one of the pool's at least; in trials 100 to 155 times.
_FULL_PER_SEARCH = 60.0
_GREEDY = "A greedy search gives the default, because the full beam search"
_NO_TIME = "The budget ended before the search for the default schedule did."

Predict = Callable[[Sequence[Path]], list[float | None]]


@dataclass
class BatchBuilder:
    """Builds one batch at a time: called in one thread, it submits the work to the executor.

    Attributes:
        affordable: how many schedules can still be timed.
    """

    executor: Executor
    store: RunStore
    context: RunContext
    proposals: ScheduleProposals
    predict: Predict
    deadline: Deadline
    affordable: Callable[[], int]
    listen: Listener
    stop: StopSignal

    def __post_init__(self) -> None:
        self._sampling = self.context.spec.options.search
        self._failures = FailureLog(self.store.database, self.listen)
        self._builds = CodeBuilds(self.executor, self.store, self.context, self.deadline, self.listen, self.stop)
        self._pool_search = PoolSearch(self.executor, self.context, self._failures, self.listen, self.stop)

    def build(
        self,
        round_index: int,
        task_index: int,
        weights_path: Path,
        yardstick_now: Callable[[], Yardstick | None],
        *,
        full_search: bool,
        waiting: int = 1,
        values: Mapping[str, str] | None = None,
        tried: Sequence[TimedSchedule] = (),
    ) -> BuiltBatch:
        """Sample, choose, build and link one batch.

        Args:
            weights_path: the cost model of this batch's searches.
            yardstick_now: gives what its candidates are to be timed beside, when they are linked.
            full_search: whether the batch's first sample is a full beam search.
            waiting: number of tasks without a batch so far, which share the time left; at least 1.
            values: of the tuned parameters; none where none are tuned.
            tried: what is timed so far, which techniques start from.

        Raises:
            GeneratorError: no schedule of this generator can be built; the message shows the fix.
        """
        work = BatchInProgress(round_index, task_index, values=values or {})
        text = set_text({**self.context.tasks[task_index].parameters, **work.values})
        used = self.store.start_batch(round_index, task_index, read_weights(weights_path), text)
        # The first round's full search gives the default schedule, so it uses Halide's own weights.
        guide = self.store.default_weights if round_index == 0 else used
        count = self._count(work, waiting) - int(full_search)
        left = self.proposals.left.take(task_index, count)
        count -= len(left)
        shares = self.proposals.divide(work, tried, count)
        sampled = shares.pop(TechniqueName.SAMPLING, 0)
        population = self.proposals.population(work, tried) if count > 0 else None
        work.edit = self.proposals.editor(work, population) if sampled > 0 else None
        # What the pool's searches take says whether the default's has the time that it needs.
        is_after_pool = full_search and round_index == 0 and sampled > 0
        full = self._submit_default(work, guide, []) if full_search and not is_after_pool else None
        known, place = self.store.database.known_schedules(task_index), int(full_search)
        search_pool = partial(self._pool, work, used, known=known, waiting=waiting, full=full)
        pool, trouble = search_pool(sampled, is_alone=not any(shares.values()))
        if is_after_pool:
            full = self._submit_default(work, guide, pool)
        chosen = self._choose(work, pool, sampled, place)
        if population is not None:
            taken = {*known, *(one.schedule_sha256 for one in chosen)}
            chosen += self._proposed(work, shares, population, taken, count - len(chosen), place + len(chosen))
        rest = count - len(chosen)
        if rest > 0 and len(pool) >= sampled and self.proposals.samples_the_rest(task_index):
            known.update(one.schedule_sha256 for one in chosen)
            work.edit = self.proposals.editor(work, population)
            pool, trouble = search_pool(rest, is_alone=not chosen)
            chosen += self._choose(work, pool, rest, place + len(chosen))
        with timed(work, "generate code"):
            built = self._build(work, [*left, *mix(chosen)], waiting, full)
            first = self._await_full(work, full, guide, bool(built)) if full is not None else []
        # Where there is to be a default, the others are compared with it.
        has_any = bool(first) if full_search else bool(built)
        if trouble is not None and round_index == 0 and not (has_any or self.stop.is_set()):
            raise trouble
        was_full = bool(first) and first[0].candidate.point.origin is Origin.FULL_BEAM
        with timed(work, "link"):
            return self._builds.batch_of(
                work,
                first + built,
                yardstick_now(),
                exhausted=not (left or chosen or first or self.stop.is_set()),
                full_search_s=first[0].candidate.search_s if was_full else None,
            )

    def _count(self, work: BatchInProgress, waiting: int) -> int:
        """How many schedules the batch has."""
        left_s = None if work.round_index == 0 else self.deadline.left_s / waiting
        most = self.proposals.batch_size(work.task_index, self._sampling.batch_size, left_s)
        return max(LEAST, min(most, self.affordable()))

    def _pool(
        self,
        work: BatchInProgress,
        used: Path,
        count: int,
        *,
        known: set[str],
        waiting: int,
        full: Future[Any] | None,
        is_alone: bool,
    ) -> tuple[list[SearchedSchedule], AllSearchesFailed | None]:
        """The pool; none, and why, where every search failed: the other starts of a batch may still succeed."""
        if count < 1:
            return [], None
        size = max(count, round(count * self._sampling.pool_factor))
        shares, least = (_SEARCH_SHARES, 1) if is_alone else (_SHARES_BESIDE_OTHERS, 0)
        fewest = self._builds.fewest(size, shares, waiting, full, least)
        try:
            with timed(work, "search"):
                return self._pool_search.search(work, used, size, known, fewest), None
        except AllSearchesFailed as error:
            if work.round_index > 0:
                self.listen(Notice(f"{error.message} The run goes on with the schedules that it has.", warning=True))
            return [], error

    def build_default(self, task_index: int, yardstick: Yardstick | None) -> BuiltBatch:
        """Build the default alone, where the first batch has left no time of it.

        Raises:
            GeneratorError: no schedule of this generator can be built; the message shows the fix.
        """
        work = BatchInProgress(0, task_index)
        return self._builds.batch_of(work, self._default(work), yardstick)

    def build_left_over(self, candidates: Sequence[Candidate], yardstick: Yardstick | None) -> BuiltBatch:
        """Build what an earlier process has chosen and not timed, by whatever technique: at least one.

        What takes too long is left to the next batch.
        """
        batch, left, submitted = self._builds.build_left_over(candidates, yardstick)
        self.proposals.left.add(left, submitted)
        return batch

    def _default(self, work: BatchInProgress) -> list[Built]:
        """The default, as the first batch has found it or would have."""
        candidate = self.store.database.candidate(self._builds.symbol(work, 0))
        if candidate is None:
            guide = self.store.default_weights
            return self._await_full(work, self._submit_default(work, guide, []), guide, False)
        built = rebuild(self.executor, self.store, candidate)
        if isinstance(built, GeneratorFailure):
            self._builds.failed(work, candidate, built)
            return []
        return [built]

    def _submit_default(
        self, work: BatchInProgress, guide: Path, pool: Sequence[SearchedSchedule]
    ) -> Future[SearchedSchedule | SearchFailure]:
        """The full beam search; a greedy one where, by what the pool's took, that would not end in the budget's time.

        A limit that was asked for is tried.
        """
        limits = self.context.limits
        if pool and "full_search_s" in limits.implied:
            usual_s = statistics.median(searched.duration_s for searched in pool)
            if _FULL_PER_SEARCH * usual_s > limits.full_search_s:
                self.listen(Notice(f"{_GREEDY} would not end in time.{limits.advice('full_search_s')}", warning=True))
                return self._submit_full(work, greedy_point(self._sampling.seed, guide))
        return self._submit_full(work, full_beam_point(self._sampling.seed, guide))

    def _submit_full(self, work: BatchInProgress, point: SearchPoint) -> Future[SearchedSchedule | SearchFailure]:
        label = f"{work.round_index}_{work.task_index}_beam{point.beam_size}"
        folder = self.context.workspace.work_folder / "search" / label
        symbol = self._builds.symbol(work, 0)
        point = replace(point, values=work.values)
        describes = self.proposals.wants_nest(work.task_index, sample_name(*work.place, 0))
        return self.executor.submit(Search(folder, work.task_index, point, symbol, describes=describes))

    def _choose(self, work: BatchInProgress, pool: list[SearchedSchedule], count: int, first: int) -> list[Candidate]:
        if not pool or self.stop.is_set():
            return []
        with timed(work, "choose"):
            return self._chosen(work, pool, count, first)

    def _chosen(self, work: BatchInProgress, pool: list[SearchedSchedule], count: int, first: int) -> list[Candidate]:
        network = self.context.network
        features = [read_featurization(s.featurization_path, network).schedule_features for s in pool]
        predicted_ms = self.predict([s.featurization_path for s in pool])
        sampling = self._sampling
        seed = sampling.seed + work.round_index
        indices = choose_batch(features, predicted_ms, count, sampling.random_share, sampling.diversity, seed)
        candidates: list[Candidate] = []
        for i in indices:
            draft, place = None if work.edit is None else work.edit(pool[i]), first + len(candidates)
            if draft is None:
                candidates.append(self._keep(work, pool[i], place, predicted_ms[i]))
            else:
                candidates += self.proposals.keep_edited(work, draft, pool[i], place)
        for searched in pool:
            shutil.rmtree(searched.folder, ignore_errors=True)
        return candidates

    def _proposed(
        self,
        work: BatchInProgress,
        shares: Mapping[str, int],
        population: Population,
        taken: Collection[str],
        count: int,
        first: int,
    ) -> list[Candidate]:
        """So many candidates of the techniques, none twice.

        Args:
            taken: hashes of what was chosen before.
            first: the first one's place in the batch.
        """
        proposed: list[Candidate] = []
        # What the others have no schedules for goes to the last one: evolution, if it is there, always has some.
        with timed(work, "choose"):
            for technique, share in shares.items():
                wanted = count - len(proposed) if technique == [*shares][-1] else share
                known = {*taken, *(one.schedule_sha256 for one in proposed)}
                proposed += self.proposals.propose(work, technique, population, known, wanted, first + len(proposed))
        return proposed

    def _keep(
        self, work: BatchInProgress, searched: SearchedSchedule, sample_index: int, predicted_ms: float | None
    ) -> Candidate:
        symbol = self._builds.symbol(work, sample_index)
        return self.store.keep(searched, *work.place, sample_index, symbol, predicted_ms)

    def _build(
        self,
        work: BatchInProgress,
        chosen: Sequence[Candidate],
        waiting: int,
        full: Future[SearchedSchedule | SearchFailure] | None,
    ) -> list[Built]:
        """Build candidates until those that are enough are built; the others are the next batch's."""
        submitted: dict[str, Build] = {}

        def submit(candidate: Candidate) -> Build:
            build = self.proposals.left.take_build(candidate.symbol) or self._submit_build(candidate)
            submitted[candidate.symbol] = build
            return build

        has_children = TechniqueName.EVOLUTION in self.proposals.techniques(work.task_index)
        shares = SHARES_BEFORE_CHILDREN if has_children else BUILD_SHARES
        built, left = self._builds.build_all(work, chosen, submit, waiting, full, shares)
        self.proposals.left.add(left, submitted)
        return built

    def _submit_build(self, candidate: Candidate) -> Build:
        if isinstance(candidate.point, SchedulePoint):
            return self.proposals.submit(candidate)
        folder = self.store.objects / candidate.symbol
        assert isinstance(candidate.point, SearchPoint), "the pool has sampled it"
        same = (candidate.task_index, candidate.point, candidate.symbol, candidate.schedule_sha256)
        describes = self.proposals.wants_nest(candidate.task_index, candidate.sample)
        return self.executor.submit(BuildObject(folder, *same, describes))

    def _await_full(
        self, work: BatchInProgress, full: Future[SearchedSchedule | SearchFailure], guide: Path, others: bool
    ) -> list[Built]:
        """The full beam search's candidate; if it fails in the first round, a greedy one instead.

        Where there are others, it is not waited for much beyond the deadline.
        """
        late = Deadline(self.deadline.at_s + _DEFAULT_GRACE_S)

        def is_late() -> bool:
            return others and late.within(0.0)

        result = result_unless(full, is_late)
        is_needed = work.round_index == 0 and not self.stop.is_set()
        if is_needed and isinstance(result, SearchFailure) and result.point.origin is Origin.FULL_BEAM:
            self._full_failed(work, result)
            self.listen(Notice(f"{_GREEDY} failed.", warning=True))
            result = result_unless(self._submit_full(work, greedy_point(self._sampling.seed, guide)), is_late)
        if result is None:
            if work.round_index == 0:
                self.listen(Notice(_NO_TIME, warning=True))
                failed = SampleFailed(*work.place, None, "search", "over budget", _NO_TIME)
                self.store.database.add_failure(failed, symbol=self._builds.symbol(work, 0))
            return []
        if isinstance(result, SearchFailure):
            if not self.stop.is_set():
                self._full_failed(work, result, self._builds.symbol(work, 0) if work.round_index == 0 else None)
            return []
        known = self.store.database.known_schedules(work.task_index)
        if work.round_index > 0 and result.schedule_sha256 in known:
            shutil.rmtree(result.folder, ignore_errors=True)
            return []
        predicted_ms = self.predict([result.featurization_path])[0]
        candidate = self._keep(work, result, 0, predicted_ms)
        assert result.built is not None
        built = self.store.keep_build(candidate, result.built)
        shutil.rmtree(result.folder, ignore_errors=True)
        return [built]

    def _full_failed(self, work: BatchInProgress, result: SearchFailure, symbol: str | None = None) -> None:
        if result.failure.reason.concerns_every_candidate:
            raise GeneratorError(result.failure.message)
        self._failures.search_failed(*work.place, result, symbol)


def mix(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Candidates of several techniques in turns, so that a batch that is cut short has some of each."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in chosen:
        groups.setdefault(technique_of(candidate.point), []).append(candidate)
    mixed = []
    for place in range(max(map(len, groups.values()), default=0)):
        mixed += [group[place] for group in groups.values() if place < len(group)]
    return mixed
