"""The rounds of a run: a batch is built while the one before is timed. A play-off decides the winner."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial

from autotune_loop.candidate import BuiltBatch, Measured
from autotune_loop.cost_model.learner import Learner
from autotune_loop.deadline import Deadline
from autotune_loop.events import BatchDone, BestImproved, Listener, Notice
from autotune_loop.execute.executor import Executor
from autotune_loop.measure.batch_measurer import BatchMeasurer
from autotune_loop.measure.dispatcher import Dispatcher
from autotune_loop.play_off.reserve import PLAY_OFF_CONTENDERS, PlayOffReserve
from autotune_loop.play_off.run_play_off import RunPlayOff
from autotune_loop.run.nothing_timed import nothing_timed
from autotune_loop.run.recovery import account_for_unfinished, recover, settle_samples
from autotune_loop.run.references import prepare_references
from autotune_loop.run.result import DeviceUse, Outcome, RunTotals, TunedSchedule, TuneResult
from autotune_loop.run.setup import measure_settings
from autotune_loop.run.task_scheduler import next_task
from autotune_loop.run.task_state import LEARN_STAGE, TaskState
from autotune_loop.search.batch_builder import BatchBuilder
from autotune_loop.specification.objective import ObjectiveKind
from autotune_loop.specification.prepared_run import PreparedRun
from autotune_loop.specification.run_context import RunContext
from autotune_loop.store.run_database import RunDatabase
from autotune_loop.store.run_store import RunStore
from targets.errors import GeneratorError, SdkError
from targets.process.stop_signal import StopSignal

# If this many schedules fail before the first is timed, the run ends.
_HOPELESS_AFTER = 16
# At least this many schedules of a batch are timed, however short the budget.
_MIN_TIMED = 4
_POLL_S = 0.2
_ABANDON_POLL_S = 0.05
# A full beam search is repeated in later rounds, with the new weights, only if it takes less than this.
_REPEAT_FULL_SEARCH_BELOW_S = 10.0


@dataclass
class Rounds:
    """The rounds of one run; `run` is called once."""

    prepared: PreparedRun
    store: RunStore
    context: RunContext
    executor: Executor
    dispatcher: Dispatcher
    learner: Learner
    deadline: Deadline
    listen: Listener
    stop: StopSignal

    def __post_init__(self) -> None:
        self._builder_stop = StopSignal()
        self._states: list[TaskState] = []
        self._batches_done = 0
        self._newest_round = 0
        self._reserve = PlayOffReserve(self.prepared.clock)

    def run(self, started_s: float) -> TuneResult:
        """Do the rounds and the play-offs; `started_s` is the monotonic time at which the run began."""
        with self._interrupted_when_stopped():
            try:
                outcome = self._rounds()
            except KeyboardInterrupt:
                self.stop.set()
            try:
                tuned = [self._decide(state) for state in self._states]
            except KeyboardInterrupt:
                self.stop.set()
                tuned = [self._decide(state) for state in self._states]
            if self.stop.is_set():  # in the rounds or in a play-off
                outcome = Outcome.INTERRUPTED
            try:
                # Last: the winner matters more than the weights for the next run.
                settle_samples(self.store, self._states)
                self._learn()
            except KeyboardInterrupt:
                outcome = Outcome.INTERRUPTED
            return self._result(outcome, tuple(tuned), time.monotonic() - started_s)

    @contextlib.contextmanager
    def _interrupted_when_stopped(self) -> Iterator[None]:
        """Once the run is stopped, kill running tasks, and tasks that still start, until it has ended."""
        finished = threading.Event()

        def watch() -> None:
            while not finished.is_set():
                if self.stop.wait(_POLL_S):
                    self._builder_stop.set()
                    self.executor.interrupt()
                    finished.wait(_POLL_S)

        threading.Thread(target=watch, daemon=True, name="stop-watch").start()
        try:
            yield
        finally:
            finished.set()

    def _rounds(self) -> Outcome:
        settings = measure_settings(self.prepared)
        self.dispatcher.open(self.stop.is_set)
        self._states = prepare_references(
            self.executor, self.dispatcher, self.store, self.context, settings, self.listen, self.stop
        )
        if self.stop.is_set():
            return Outcome.INTERRUPTED
        self._newest_round = recover(self.store, self._states, self.learner, self.listen)
        for state in self._states:
            state.failures = None if self.prepared.resume else 0
            state.unlike_devices = self.prepared.options.play_off.objective.kind is not ObjectiveKind.MEAN
            if self.prepared.resume:
                state.publish_best(self.store, self.prepared.clock.value)
            elif state.timed:
                self._publish_best(state)
        measurer = BatchMeasurer(self.dispatcher, self.store, settings, self.listen, self._measured_enough)
        builder = BatchBuilder(
            self.executor,
            self.store,
            self.context,
            self.learner.predict,
            self.deadline,
            self.listen,
            self._builder_stop,
        )
        with ThreadPoolExecutor(1, thread_name_prefix="batch-builder") as producer:
            outcome = self._pipeline(builder, producer, measurer)
        hopeless = next((state for state in self._states if state.failures), None)
        if hopeless is not None and outcome in (Outcome.EXHAUSTED, Outcome.FINISHED, Outcome.BUDGET_SPENT):
            raise self._nothing_timed(hopeless)
        return outcome

    def _pipeline(self, builder: BatchBuilder, producer: ThreadPoolExecutor, measurer: BatchMeasurer) -> Outcome:
        """Measure batch n here while batch n + 1 is built in the producer's thread."""
        upcoming = self._start_build(builder, producer)
        try:
            while upcoming is not None:
                batch = self._await(upcoming)
                if batch is None:
                    return Outcome.BUDGET_SPENT
                self._states[batch.task_index].history.is_exhausted |= batch.exhausted
                upcoming = self._start_build(builder, producer)
                self._measure(batch, measurer)
                if self.stop.is_set():
                    return Outcome.INTERRUPTED
                if self.dispatcher.is_lost:
                    return Outcome.DEVICES_LOST
        finally:
            if upcoming is not None:
                self._abandon(upcoming)
        if all(state.history.is_exhausted for state in self._states):
            self.listen(Notice("The search finds no more new schedules."))
            return Outcome.EXHAUSTED
        return Outcome.BUDGET_SPENT if self.deadline.within(self._reserve_s()) else Outcome.FINISHED

    def _start_build(self, builder: BatchBuilder, producer: ThreadPoolExecutor) -> ThreadFuture[BuiltBatch] | None:
        histories = [state.history for state in self._states]
        task_index = next_task(histories, self.prepared.options.limits.rounds * len(histories))
        is_first = not any(history.started for history in histories)
        if task_index is None or (not is_first and self.deadline.within(self._reserve_s())):
            return None
        round_index = histories[task_index].started
        histories[task_index].started += 1
        full_search_s = self._states[task_index].full_search_s
        full = round_index == 0 or (full_search_s is not None and full_search_s < _REPEAT_FULL_SEARCH_BELOW_S)
        return producer.submit(self._learn_and_build, builder, round_index, task_index, full)

    def _learn_and_build(self, builder: BatchBuilder, round_index: int, task_index: int, full: bool) -> BuiltBatch:
        """Train, then build a batch with the new weights, in the producer's thread while the devices are busy."""
        learn_s = self._learn()
        waiting = max(1, sum(1 for state in self._states if not state.history.best_ms))
        batch = builder.build(
            round_index,
            task_index,
            self.store.updated_weights,
            lambda: self._states[task_index].yardstick,
            full_search=full,
            waiting=waiting,
        )
        return replace(batch, stages_s={LEARN_STAGE: learn_s, **batch.stages_s})

    def _learn(self) -> float:
        """Train on the schedules timed since the last training; return the seconds that it took."""
        if not self.learner.has_new_samples or self.stop.is_set():
            return 0.0
        started_s = time.monotonic()
        self.learner.train(self._newest_round)
        duration_s = time.monotonic() - started_s
        self._reserve.add_training(duration_s)
        return duration_s

    def _await(self, upcoming: ThreadFuture[BuiltBatch]) -> BuiltBatch | None:
        """Return the batch, or None if the run is stopped or the budget is spent first."""
        while True:
            try:
                return upcoming.result(_POLL_S)
            except TimeoutError:
                # The first batch is always finished: without a timed schedule there is no result.
                spent = self._batches_done > 0 and self.deadline.within(self._reserve_s())
                if spent or self.stop.is_set():
                    return None

    def _abandon(self, upcoming: ThreadFuture[BuiltBatch]) -> None:
        """Stop building a batch."""
        self._builder_stop.set()
        while not upcoming.done():
            # Repeated, because tasks that waited for a core start when those before them are killed.
            self.executor.interrupt()
            wait([upcoming], _ABANDON_POLL_S)

    def _measured_enough(self, measured: int) -> bool:
        """Whether to end a batch early: the run is stopped, or the play-off needs the time."""
        nothing_to_come = measured >= _MIN_TIMED or not self.dispatcher.in_service
        spent = nothing_to_come and self.deadline.within(self._reserve_s())
        return spent or self.stop.is_set()

    def _measure(self, batch: BuiltBatch, measurer: BatchMeasurer) -> None:
        state = self._states[batch.task_index]
        if batch.full_search_s is not None:
            state.full_search_s = batch.full_search_s
        started = time.monotonic()
        measured, failed = measurer.measure(
            batch, state.reference, state.best_ms, self._reserve.add_timing, partial(self._measured, state)
        )
        stages_s = {**batch.stages_s, "measure": time.monotonic() - started}
        self.store.database.add_batch(batch.round_index, batch.task_index, stages_s)
        state.add_batch(stages_s)
        state.advance_yardstick(self.store)
        state.prune(self.store, PLAY_OFF_CONTENDERS)
        self._batches_done += 1
        self._newest_round = batch.round_index
        self.listen(BatchDone(batch.round_index, batch.task_index, measured, batch.failed + failed, stages_s))
        if measured or state.failures is None:
            state.failures = None
            return
        state.failures += batch.failed + failed
        if state.failures >= _HOPELESS_AFTER and not (self.stop.is_set() or self.dispatcher.is_lost):
            raise self._nothing_timed(state)

    def _nothing_timed(self, state: TaskState) -> GeneratorError:
        return nothing_timed(
            state.task.generator_name,
            self.prepared.spec.profile,
            self.store.database.failure_counts(),
            self.store.database.last_failure(state.task_index),
        )

    def _publish_best(self, state: TaskState) -> None:
        clock, best = self.prepared.clock.value, state.timed[0]
        state.publish_best(self.store, clock)
        best_ms, default_ms = state.shown_ms(best.median_ms), state.default_ms
        default_ms = None if default_ms is None else state.shown_ms(default_ms)
        between = state.shown_range_ms(best)
        self.listen(BestImproved(state.task_index, best.sample, best_ms, default_ms, clock, between, best.processes))

    def _measured(self, state: TaskState, measured: Measured) -> None:
        self.learner.add_sample(self.store.training_sample(measured, state.reference.pipeline_id))
        if state.add(measured):
            self._publish_best(state)
        elif measured.candidate.is_default:  # what is published can be compared with it now
            state.publish_best(self.store, self.prepared.clock.value)

    def _reserve_s(self) -> float:
        """The time that the play-offs need."""
        with_incumbent = sum(1 for state in self._states if state.incumbent is not None)
        return self._reserve.needed_s(len(self._states), with_incumbent)

    def _decide(self, state: TaskState) -> TunedSchedule:
        """Hold the play-off of a task and publish the winner."""
        entries = state.entries(self.store, PLAY_OFF_CONTENDERS)
        clock, budget_s = self.prepared.clock.value, self.prepared.options.limits.budget_s
        task_s = None if budget_s is None else budget_s / len(self._states)
        if self.stop.is_set() or self.dispatcher.is_lost or entries is None:
            return state.unconfirmed(self.store, clock)
        play_off = RunPlayOff(
            executor=self.executor,
            dispatcher=self.dispatcher,
            store=self.store,
            settings=measure_settings(self.prepared),
            options=self.prepared.options,
            deadline=self._reserve.deadline(self.deadline, task_s, state.incumbent is not None),
            listen=self.listen,
            stop=self.stop,
        )
        try:
            result = play_off.hold(entries, state.reference, state.task_index)
        except SdkError as error:
            self.listen(Notice(f"The play-off failed, so the winner is unconfirmed: {error}", warning=True))
            return state.unconfirmed(self.store, clock)
        return state.decide(self.store, result, clock)

    def _result(self, outcome: Outcome, tuned: tuple[TunedSchedule, ...], duration_s: float) -> TuneResult:
        database = self.store.database
        account_for_unfinished(database)
        return TuneResult(
            outcome=outcome,
            generator=self.prepared.generator_names,
            target=self.prepared.spec.profile.name,
            device=self.prepared.device_names,
            clock=self.prepared.clock.value,
            tuned=tuned,
            run_folder=self.store.folder,
            weights=self.store.updated_weights,
            totals=RunTotals(
                rounds=database.next_round(),
                samples_timed=len(database.measured()),
                failures=database.failure_counts(),
                incidents=database.incident_counts(),
                not_done=database.not_done_count(),
                stages_s=database.stage_totals_s(),
                duration_s=duration_s,
            ),
            devices=_device_use(database),
        )


def _device_use(database: RunDatabase) -> tuple[DeviceUse, ...]:
    used, boards = database.device_use(), database.board_factors()
    rows = []
    for name in dict.fromkeys([*used, *boards]):
        board = boards.get(name)
        told = () if board is None else (board.factor, board.spread, board.fits)
        rows.append(DeviceUse(name, *used.get(name, (0, 0.0)), *told))
    return tuple(rows)
