"""From a round's number to an executable with a batch of new schedules: search, choose, generate code, link."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from distributed import Future

from autotune_loop import tasks
from autotune_loop.candidate import Candidate, Origin, SearchedSchedule, SearchFailure, SearchPoint
from autotune_loop.engine import Engine
from autotune_loop.events import BuildProgress, Listener, Notice, SampleFailed, SearchProgress
from autotune_loop.featurization import read_featurization
from autotune_loop.run_context import RunContext
from autotune_loop.run_store import RunStore
from autotune_loop.search_plan import full_beam_point, greedy_point, random_points
from autotune_loop.selection import choose_batch
from autotune_loop.tune_request import SamplingOptions
from targets.errors import GeneratorError, SdkError
from targets.executable import Executable
from targets.generator_run import GeneratorFailure, GeneratorFailureReason
from targets.stop_signal import StopSignal
from weights.weights_file import read_weights

# Small pipelines have few schedules: give up on new ones after this many searches for each one wanted.
_MAX_SEARCHES_PER_WANTED = 6

Predict = Callable[[Sequence[Path]], list[float | None]]


@dataclass(frozen=True)
class BuiltBatch:
    """A batch that is ready to be pushed.

    Attributes:
        candidates: those in the executable, the full beam search's first.
        executable: None when nothing could be built.
        exhausted: no new schedule was found at all.
        failed: candidates of the batch that were lost on the way.
        full_search_s: how long the full beam search took; None when there was none or it failed.
    """

    round_index: int
    argset_index: int
    candidates: tuple[Candidate, ...]
    executable: Executable | None
    exhausted: bool
    failed: int
    full_search_s: float | None
    stages_s: dict[str, float] = field(default_factory=dict)


class BatchBuilder:
    """Builds one batch at a time, in the calling thread, with the work submitted to the engine."""

    def __init__(
        self,
        engine: Engine,
        store: RunStore,
        context: RunContext,
        sampling: SamplingOptions,
        build_slots: int,
        predict: Predict,
        listen: Listener,
        stop: StopSignal,
    ) -> None:
        self._engine = engine
        self._store = store
        self._context = context
        self._sampling = sampling
        self._window = 2 * build_slots
        self._predict = predict
        self._listen = listen
        self._stop = stop

    def build(self, round_index: int, argset_index: int, weights_path: Path, *, full_search: bool) -> BuiltBatch:
        """Sample, choose, build and link one batch.

        Args:
            weights_path: the cost model of this batch's searches.
            full_search: the batch's first sample is a full beam search.

        Raises:
            GeneratorError: no schedule of this generator can ever be built; the sentence shows the fix.
        """
        work = _Batch(round_index, argset_index, self._context.argsets[argset_index])
        text = " ".join(f"{key}={value}" for key, value in work.argset.items())
        used = self._store.start_batch(round_index, argset_index, read_weights(weights_path), text)
        full = self._submit_full(work, used) if full_search else None
        started = time.monotonic()
        pool = self._search_pool(work, used, self._sampling.batch_size - int(full_search))
        work.stages_s["search"] = time.monotonic() - started
        chosen = self._choose(work, pool, self._sampling.batch_size - int(full_search))
        started = time.monotonic()
        futures = [(c, self._submit_build(c, work.argset)) for c in chosen]
        first = self._await_full(work, full, used) if full is not None else []
        built = first + self._await_builds(work, futures)
        work.stages_s["generate code"] = time.monotonic() - started
        started = time.monotonic()
        executable = self._link(work, built)
        work.stages_s["link"] = time.monotonic() - started
        return BuiltBatch(
            round_index=round_index,
            argset_index=argset_index,
            candidates=tuple(candidate for candidate, _ in built) if executable else (),
            executable=executable,
            exhausted=not chosen and not first and not self._stop.is_set(),
            failed=work.failed,
            full_search_s=first[0][0].search_s if first and first[0][0].point.origin is Origin.FULL_BEAM else None,
            stages_s=work.stages_s,
        )

    def _symbol(self, work: _Batch, sample_index: int) -> str:
        return f"{self._context.function_name}_r{work.round_index}_a{work.argset_index}_s{sample_index}"

    def _submit_search(self, work: _Batch, point: SearchPoint, label: str, symbol: str) -> Future[object]:
        folder = self._context.work_folder / "search" / f"{work.round_index}_{work.argset_index}_{label}"
        return self._engine.submit_build(tasks.search, point, work.argset, folder, symbol)

    def _submit_full(self, work: _Batch, used: Path) -> Future[object]:
        point = full_beam_point(self._sampling.seed, used)
        return self._submit_search(work, point, "full", self._symbol(work, 0))

    def _search_pool(self, work: _Batch, used: Path, wanted: int) -> list[SearchedSchedule]:
        """Distinct schedules never seen before in this run, in the order of their points."""
        pool_size = max(wanted, round(wanted * self._sampling.pool_factor))
        known = self._store.database.known_schedules(work.argset_index)
        pool: list[SearchedSchedule] = []
        duplicates = failed = 0
        points = random_points(self._sampling.seed, work.round_index, work.argset_index, used)
        for result in self._stream_searches(
            work, points, pool_size * _MAX_SEARCHES_PER_WANTED, lambda: len(pool) >= pool_size
        ):
            if isinstance(result, SearchFailure):
                failed += 1
                self._record_search_failure(work, result)
            elif result.schedule_sha256 in known or len(pool) >= pool_size:
                duplicates += int(result.schedule_sha256 in known)
                shutil.rmtree(result.folder, ignore_errors=True)
            else:
                known.add(result.schedule_sha256)
                pool.append(result)
            progress = SearchProgress(work.round_index, work.argset_index, len(pool), pool_size, duplicates, failed)
            self._listen(progress)
        if not pool and failed and not duplicates and not self._stop.is_set():
            raise GeneratorError(f"Not one of {failed} searches gave a schedule. {work.first_failure}")
        return pool

    def _stream_searches(
        self, work: _Batch, points: Iterator[SearchPoint], at_most: int, enough: Callable[[], bool]
    ) -> Iterator[SearchedSchedule | SearchFailure]:
        """Results in the order of the points, a window of searches under way at any time."""
        under_way: deque[Future[object]] = deque()
        submitted = 0
        while True:
            while len(under_way) < self._window and submitted < at_most and not enough() and not self._stop.is_set():
                under_way.append(self._submit_search(work, next(points), str(submitted), self._context.function_name))
                submitted += 1
            if not under_way:
                return
            result = under_way.popleft().result()
            assert isinstance(result, (SearchedSchedule, SearchFailure))
            yield result

    def _record_search_failure(self, work: _Batch, result: SearchFailure) -> None:
        failure = result.failure
        if failure.reason is GeneratorFailureReason.STOPPED:
            return
        if failure.reason.concerns_every_candidate:
            raise GeneratorError(failure.sentence)
        work.first_failure = work.first_failure or failure.sentence
        self._store.database.add_failure(
            "search",
            failure.reason.value,
            failure.sentence,
            failure.log,
            round_index=work.round_index,
            argset_index=work.argset_index,
            seed=result.point.seed,
        )
        self._listen(
            SampleFailed(work.round_index, work.argset_index, None, "search", failure.reason.value, failure.sentence)
        )

    def _choose(self, work: _Batch, pool: list[SearchedSchedule], count: int) -> list[Candidate]:
        if not pool or self._stop.is_set():
            return []
        started = time.monotonic()
        features = [read_featurization(s.featurization_path).schedule_features for s in pool]
        predicted_ms = self._predict([s.featurization_path for s in pool])
        indices = choose_batch(
            features,
            predicted_ms,
            count,
            self._sampling.random_share,
            self._sampling.diversity,
            self._sampling.seed + work.round_index,
        )
        first = self._sampling.batch_size - count
        candidates = [
            self._store.keep(
                pool[i],
                work.round_index,
                work.argset_index,
                first + position,
                self._symbol(work, first + position),
                predicted_ms[i],
            )
            for position, i in enumerate(indices)
        ]
        for i in set(range(len(pool))) - set(indices):
            shutil.rmtree(pool[i].folder, ignore_errors=True)
        work.stages_s["choose"] = time.monotonic() - started
        return candidates

    def _submit_build(self, candidate: Candidate, argset: Mapping[str, str]) -> Future[object]:
        folder = self._store.objects / candidate.symbol
        return self._engine.submit_build(tasks.build_object, candidate, argset, folder)

    def _await_full(self, work: _Batch, full: Future[object], used: Path) -> list[tuple[Candidate, tasks.BuiltObject]]:
        """The full beam search's candidate; a greedy one in its place where that failed in the first round."""
        result = full.result()
        if isinstance(result, SearchFailure) and not self._stop.is_set():
            self._record_search_failure(work, result)
            if work.round_index > 0:
                return []
            self._listen(
                Notice(
                    f"The full beam search failed: {result.failure.sentence} A greedy search takes its place.",
                    True,
                )
            )
            point = greedy_point(self._sampling.seed, used)
            result = self._submit_search(work, point, "greedy", self._symbol(work, 0)).result()
            if isinstance(result, SearchFailure):
                self._record_search_failure(work, result)
        if not isinstance(result, SearchedSchedule):
            return []
        known = self._store.database.known_schedules(work.argset_index)
        if work.round_index > 0 and result.schedule_sha256 in known:
            shutil.rmtree(result.folder, ignore_errors=True)
            return []
        predicted_ms = self._predict([result.featurization_path])[0]
        symbol = self._symbol(work, 0)
        candidate = self._store.keep(result, work.round_index, work.argset_index, 0, symbol, predicted_ms)
        assert candidate.prebuilt_object is not None
        built = tasks.BuiltObject(symbol, candidate.prebuilt_object, 0.0)
        self._store.database.add_build(symbol, 0.0, built.path.stat().st_size)
        return [(candidate, built)]

    def _await_builds(
        self, work: _Batch, futures: list[tuple[Candidate, Future[object]]]
    ) -> list[tuple[Candidate, tasks.BuiltObject]]:
        built: list[tuple[Candidate, tasks.BuiltObject]] = []
        for candidate, future in futures:
            result = future.result()
            if isinstance(result, GeneratorFailure):
                self._candidate_failed(work, candidate, "build", result.reason.value, result.sentence, result.log)
            else:
                assert isinstance(result, tasks.BuiltObject)
                self._store.database.add_build(candidate.symbol, result.duration_s, result.path.stat().st_size)
                built.append((candidate, result))
            self._listen(BuildProgress(work.round_index, work.argset_index, len(built), work.failed, len(futures)))
        return built

    def _candidate_failed(
        self, work: _Batch, candidate: Candidate, stage: str, reason: str, sentence: str, log: str
    ) -> None:
        work.failed += 1
        self._store.database.add_failure(
            stage,
            reason,
            sentence,
            log,
            round_index=work.round_index,
            argset_index=work.argset_index,
            symbol=candidate.symbol,
            seed=candidate.point.seed,
        )
        self._listen(SampleFailed(work.round_index, work.argset_index, candidate.sample_index, stage, reason, sentence))

    def _link(self, work: _Batch, built: list[tuple[Candidate, tasks.BuiltObject]]) -> Executable | None:
        if not built or self._stop.is_set():
            for candidate, _ in built:
                self._candidate_failed(work, candidate, "link", "stopped", "The run was stopped before linking.", "")
            return None
        output = self._context.work_folder / "executables" / f"batch_{work.round_index}_{work.argset_index}"
        output.parent.mkdir(parents=True, exist_ok=True)
        result = self._engine.submit_build(tasks.link, [b for _, b in built], output).result()
        if isinstance(result, SdkError):
            raise result
        assert isinstance(result, Executable)
        return result


@dataclass
class _Batch:
    """What is known of the batch under construction."""

    round_index: int
    argset_index: int
    argset: Mapping[str, str]
    failed: int = 0
    first_failure: str = ""
    stages_s: dict[str, float] = field(default_factory=dict)
