"""The loop: rounds of sampling, building, timing and learning; building a batch overlaps timing the one before."""

from __future__ import annotations

import os
import time
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from autotune_loop.argset_state import ArgsetState
from autotune_loop.batch import BuiltBatch
from autotune_loop.batch_builder import BatchBuilder
from autotune_loop.batch_measurer import BatchMeasurer
from autotune_loop.candidate import Candidate
from autotune_loop.deadline import Deadline
from autotune_loop.engine import Engine
from autotune_loop.events import BatchDone, BestImproved, Listener, Notice, RunStarted
from autotune_loop.failure_log import FailureLog
from autotune_loop.learner import Learner
from autotune_loop.play_off import MIN_TURNS, play_off
from autotune_loop.prepare_references import prepare_references
from autotune_loop.recovery import recover
from autotune_loop.result import Outcome, TunedSchedule, TuneResult
from autotune_loop.run_context import BuildLimits, RunContext
from autotune_loop.run_database import NOT_DONE
from autotune_loop.run_setup import measure_settings, run_record, start_weights
from autotune_loop.run_store import RunStore
from autotune_loop.tune_request import Folders, TuneRequest
from devices.core_plan import plan_cores
from devices.core_turns import CoreTurns
from devices.measurement import Measurement
from targets.errors import GeneratorError, SdkError
from targets.stop_signal import StopSignal

_PLAY_OFF_CONTENDERS = 4
# However short the budget, so many schedules of a batch that is built are timed.
_MIN_TIMED = 4
_LINK_S = 3.0
_POLL_S = 0.2
# A full beam search is repeated in later rounds (with learnt weights) only where it costs less than this.
_REPEAT_FULL_SEARCH_BELOW_S = 10.0
# With a time budget, the default's full beam search may take this share of it.
_FULL_SEARCH_BUDGET_SHARE = 0.2
_FULL_SEARCH_LIMIT_S = 600.0
_MEMORY_SHARE = 0.8
_MEMORY_LIMIT_BYTES = 8 * 2**30


def tune(request: TuneRequest, folders: Folders, listen: Listener, stop: StopSignal) -> TuneResult:
    """Run the loop to its end: rounds done, budget spent, nothing new to find, or stopped.

    Setting `stop` ends the run cleanly with the best so far; so does a KeyboardInterrupt.

    Raises:
        GeneratorError: the generator cannot be tuned at all; the sentence shows the fix.
        RunFolderError: the run folder is in use, damaged, full, or of another run.
        ToolchainError, EmulatorError, DeviceError, WeightsError: what is missing or broken.
    """
    started = time.monotonic()
    deadline = Deadline.after(request.budget_s)
    weights = start_weights(request)
    store = RunStore(request.run_folder, request.function_name, run_record(request, weights), resume=request.resume)
    try:
        context, build_slots = _context(request, folders, store)
        listen(_run_started(request, store))
        turns = CoreTurns(folders.locks) if context.cores.take_turns else None
        learner = Learner(
            store,
            weights,
            request.parallelism,
            request.learning,
            request.sampling.seed,
            folders.environment,
            turns,
            listen,
        )
        try:
            with Engine(context, build_slots) as engine:
                run = _Run(request, store, context, build_slots, engine, learner, deadline, listen, stop)
                return run.run(started)
        finally:
            learner.close()
    finally:
        store.close()


def _run_started(request: TuneRequest, store: RunStore) -> RunStarted:
    return RunStarted(
        generator=request.reference.name or "",
        target=request.profile.name,
        device=request.device.name,
        clock=request.device.clock.value,
        parallelism=request.parallelism,
        run_folder=str(store.folder),
        batch_size=request.sampling.batch_size,
        rounds=request.rounds,
        argsets=len(request.argsets),
        budget_s=request.budget_s,
        resumed=request.resume,
    )


def _context(request: TuneRequest, folders: Folders, store: RunStore) -> tuple[RunContext, int]:
    usable = frozenset(os.sched_getaffinity(0))
    device = request.device
    cores = plan_cores(usable, min(device.threads, len(usable)) if device.uses_host_cores else 0)
    build_slots = request.build_jobs or len(cores.build)
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    full_s = request.full_search_limit_s
    if full_s is None:
        budget_s = request.budget_s
        full_s = _FULL_SEARCH_LIMIT_S if budget_s is None else budget_s * _FULL_SEARCH_BUDGET_SHARE
    share_bytes = int(memory_bytes * _MEMORY_SHARE / build_slots)
    limits = BuildLimits(
        search_s=request.search_limit_s,
        full_search_s=full_s,
        memory_bytes=request.memory_limit_bytes or min(_MEMORY_LIMIT_BYTES, share_bytes),
    )
    context = RunContext(
        reference=request.reference,
        function_name=request.function_name,
        argsets=request.argsets,
        profile=request.profile,
        parallelism=request.parallelism,
        device=device,
        inputs=request.inputs,
        cores=cores,
        limits=limits,
        cache_folder=folders.cache,
        work_folder=store.work,
        lock_folder=folders.locks,
        environment=folders.environment,
    )
    return context, build_slots


@dataclass
class _Run:
    """The moving parts of one run, while it runs."""

    request: TuneRequest
    store: RunStore
    context: RunContext
    build_slots: int
    engine: Engine
    learner: Learner
    deadline: Deadline
    listen: Listener
    stop: StopSignal
    builder_stop: StopSignal = field(default_factory=StopSignal)
    states: list[ArgsetState] = field(default_factory=list)
    batches_done: int = 0
    device_held_s: float = 0.0

    def run(self, started: float) -> TuneResult:
        try:
            outcome = self._rounds()
        except KeyboardInterrupt:
            self.stop.set()
            outcome = Outcome.INTERRUPTED
        if self.stop.is_set():
            outcome = Outcome.INTERRUPTED
            self.engine.interrupt()
        try:
            tuned = tuple(self._decide(state) for state in self.states)
        except KeyboardInterrupt:
            self.stop.set()
            self.engine.interrupt()
            outcome = Outcome.INTERRUPTED
            tuned = tuple(self._decide(state) for state in self.states)
        return self._result(outcome, tuned, time.monotonic() - started)

    def _rounds(self) -> Outcome:
        self.states = prepare_references(self.engine, self.store, self.context, self.listen, self.stop)
        if self.stop.is_set():
            return Outcome.INTERRUPTED
        first_round = recover(self.store, self.states, self.learner, self.listen)
        settings = measure_settings(self.request)
        measurer = BatchMeasurer(self.engine, self.store, settings, self.listen, self._measured_enough)
        builder = BatchBuilder(
            self.engine,
            self.store,
            self.context,
            self.request.sampling,
            self.build_slots,
            self.learner.predict,
            self.listen,
            self.builder_stop,
        )
        plan = [(r, a) for r in range(first_round, self.request.rounds) for a in range(len(self.states))]
        with ThreadPoolExecutor(1, thread_name_prefix="batch-builder") as producer:
            try:
                return self._pipeline(plan, builder, measurer, producer)
            finally:
                self.builder_stop.set()
                self.engine.interrupt()

    def _pipeline(
        self,
        plan: list[tuple[int, int]],
        builder: BatchBuilder,
        measurer: BatchMeasurer,
        producer: ThreadPoolExecutor,
    ) -> Outcome:
        """Measure batch n here while batch n + 1 is built in the producer's thread."""
        steps = iter(plan)
        upcoming = self._start_build(next(steps, None), builder, producer)
        while upcoming is not None:
            batch = self._await(upcoming)
            if batch is None:
                return Outcome.BUDGET_SPENT
            upcoming = None if batch.exhausted else self._start_build(next(steps, None), builder, producer)
            self._measure_and_learn(batch, measurer)
            if batch.exhausted:
                self.listen(Notice("Every schedule that the search still finds has been tried: the run ends here."))
                return Outcome.EXHAUSTED
            if self.stop.is_set():
                return Outcome.INTERRUPTED
            if self.deadline.within(self._reserve_s()):
                if upcoming is not None:
                    self._abandon(upcoming)
                return Outcome.BUDGET_SPENT
        return Outcome.FINISHED

    def _start_build(
        self, step: tuple[int, int] | None, builder: BatchBuilder, producer: ThreadPoolExecutor
    ) -> ThreadFuture[BuiltBatch] | None:
        if step is None or self.deadline.within(self._reserve_s()):
            return None
        round_index, argset_index = step
        state = self.states[argset_index]
        full_search_s = state.full_search_s
        full = round_index == 0 or (full_search_s is not None and full_search_s < _REPEAT_FULL_SEARCH_BELOW_S)
        return producer.submit(builder.build, round_index, argset_index, self.store.updated_weights, full_search=full)

    def _await(self, upcoming: ThreadFuture[BuiltBatch]) -> BuiltBatch | None:
        """The batch, or None when the run was stopped or the budget ran out first."""
        while True:
            try:
                return upcoming.result(_POLL_S)
            except TimeoutError:
                # The first batch is always finished: a run without any time would say nothing.
                spent = self.batches_done > 0 and self.deadline.within(self._reserve_s())
                if spent or self.stop.is_set():
                    self._abandon(upcoming)
                    return None

    def _abandon(self, upcoming: ThreadFuture[BuiltBatch]) -> None:
        """Give up a batch under construction; what it had begun is recorded as such."""
        self.builder_stop.set()
        self.engine.interrupt()
        batch = upcoming.result()
        failures = FailureLog(self.store.database, self.listen)
        for candidate in batch.candidates:
            failures.candidate_failed(candidate, "measure", NOT_DONE, "The run ended before its turn.")

    def _measured_enough(self, measured: int) -> bool:
        """Whether a batch is to be ended early: the run is stopped, or its time is needed for the play-off."""
        spent = measured >= _MIN_TIMED and self.deadline.within(self._reserve_s())
        return spent or self.stop.is_set()

    def _measure_and_learn(self, batch: BuiltBatch, measurer: BatchMeasurer) -> None:
        state = self.states[batch.argset_index]
        if batch.full_search_s is not None:
            state.full_search_s = batch.full_search_s
        started = time.monotonic()

        def on_measured(candidate: Candidate, measurement: Measurement) -> None:
            self._measured(state, candidate, measurement)

        measured, failed = measurer.measure(batch, state.reference, on_measured)
        stages_s = {**batch.stages_s, "measure": time.monotonic() - started}
        started = time.monotonic()
        if measured and not self.stop.is_set():
            self.learner.train(batch.round_index)
        stages_s["learn"] = time.monotonic() - started
        self.store.database.add_batch(batch.round_index, batch.argset_index, stages_s)
        state.prune(self.store, _PLAY_OFF_CONTENDERS)
        self.batches_done += 1
        self.listen(BatchDone(batch.round_index, batch.argset_index, measured, batch.failed + failed, stages_s))
        if batch.round_index == 0 and not measured and not self.stop.is_set():
            counts = ", ".join(f"{n} × {kind}" for kind, n in self.store.database.failure_counts().items())
            raise GeneratorError(
                f"No schedule of the first batch could be timed ({counts}).",
                next_step=f"The last one: {state.last_failure(self.store)}",
            )

    def _measured(self, state: ArgsetState, candidate: Candidate, measurement: Measurement) -> None:
        median_ms = measurement.median_s * 1e3
        # The slowest of the best few decides how long a turn of the play-off takes: the longest run is a safe guess.
        self.device_held_s = max(self.device_held_s, sum(measurement.repetitions_s))
        self.learner.add_sample(candidate.featurization_path, median_ms, state.reference.pipeline_id)
        if not state.add(candidate, median_ms, measurement.spread_s * 1e3):
            return
        sample = f"batch_{candidate.round_index}_{candidate.argset_index}/{candidate.sample_index}"
        benchmark = f"{median_ms:.6g} ms ({measurement.clock.value} time, median) for {sample}\n"
        self.store.write_best(candidate.argset_index, self.store.schedule_path(candidate.folder), benchmark)
        self.listen(BestImproved(candidate.argset_index, sample, median_ms, state.default_ms, measurement.clock.value))

    def _reserve_s(self) -> float:
        """Time that the play-offs at the end will need."""
        per_turn_s = _PLAY_OFF_CONTENDERS * self.device_held_s
        return len(self.states) * (_LINK_S + MIN_TURNS * per_turn_s)

    def _decide(self, state: ArgsetState) -> TunedSchedule:
        """Time the best again beside the default and publish the winner."""
        contenders = state.contenders(self.store, _PLAY_OFF_CONTENDERS)
        if self.stop.is_set() or not contenders:
            return state.unconfirmed(self.store)
        try:
            times = play_off(
                self.engine,
                self.store,
                measure_settings(self.request),
                contenders,
                state.reference,
                state.argset_index,
                self.deadline,
                self.listen,
                self.stop,
            )
        except SdkError as error:
            self.listen(Notice(f"The winner could not be timed again: {error}", warning=True))
            times = []
        return state.decide(self.store, times, self.request.device.clock.value)

    def _result(self, outcome: Outcome, tuned: tuple[TunedSchedule, ...], duration_s: float) -> TuneResult:
        database = self.store.database
        return TuneResult(
            outcome=outcome,
            generator=self.request.reference.name or "",
            target=self.request.profile.name,
            device=self.request.device.name,
            clock=self.request.device.clock.value,
            tuned=tuned,
            run_folder=self.store.folder,
            weights=self.store.updated_weights,
            rounds=database.next_round(),
            samples_timed=len(database.measured()),
            failures=database.failure_counts(),
            not_done=database.not_done_count(),
            stages_s=database.stage_totals_s(),
            duration_s=duration_s,
        )
