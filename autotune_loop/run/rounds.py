"""The rounds of a run: a batch is built while the one before is timed. A play-off decides the winner."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from threadpoolctl import threadpool_limits

from halide_autotune.autotune_loop.candidate import BuiltBatch, Measured
from halide_autotune.autotune_loop.cost_model.learner import Learner
from halide_autotune.autotune_loop.events import BatchDone, BestImproved, Listener, Notice
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.measure.batch_measurer import BatchMeasurer
from halide_autotune.autotune_loop.measure.dispatcher import Dispatcher
from halide_autotune.autotune_loop.play_off.reserve import PLAY_OFF_CONTENDERS
from halide_autotune.autotune_loop.run.batch_builders import BatchBuilders, BatchRequest
from halide_autotune.autotune_loop.run.budget.ending import RunEnding
from halide_autotune.autotune_loop.run.budget.run_budget import RunBudget
from halide_autotune.autotune_loop.run.budget.time_plan import TimePlan
from halide_autotune.autotune_loop.run.decision.play_offs import PlayOffs
from halide_autotune.autotune_loop.run.default_schedule import is_left_over, keep_failure
from halide_autotune.autotune_loop.run.learning import RunLearning
from halide_autotune.autotune_loop.run.nothing_timed import nothing_timed
from halide_autotune.autotune_loop.run.recovery import account_for_unfinished, left_over, recover, settle_samples
from halide_autotune.autotune_loop.run.references import prepare_references
from halide_autotune.autotune_loop.run.result import Outcome, TunedSchedule, TuneResult, device_use, run_totals
from halide_autotune.autotune_loop.run.setup import measure_settings
from halide_autotune.autotune_loop.run.task_scheduler import next_task
from halide_autotune.autotune_loop.run.task_state import LEARN_STAGE, TaskState
from halide_autotune.autotune_loop.search.batch_builder import BatchBuilder
from halide_autotune.autotune_loop.search.busy_funcs import BusyFuncs, can_be_asked
from halide_autotune.autotune_loop.search.known.histories import histories_of
from halide_autotune.autotune_loop.search.known.known_nests import prior_of_run
from halide_autotune.autotune_loop.search.known.known_schedules import KnownSchedules
from halide_autotune.autotune_loop.search.parameter_sets.parameter_batches import ParameterBatches
from halide_autotune.autotune_loop.search.schedule_proposals import ScheduleProposals
from halide_autotune.autotune_loop.specification.objective import ObjectiveKind
from halide_autotune.autotune_loop.specification.prepared_run import PreparedRun
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.targets.errors import GeneratorError, SdkError
from halide_autotune.targets.process.stop_signal import StopSignal

# If this many schedules fail before the first is timed, the task is given up; where vectors are doubtful, that is three
# batches, because only the third one knows which failed in the first.
_HOPELESS_AFTER, _HOPELESS_AFTER_VECTORS = 16, 48
_POLL_S = 0.2
_ABANDON_POLL_S = 0.05
# A full beam search is repeated in later rounds, with the new weights, only if it takes less than this.
_REPEAT_FULL_SEARCH_BELOW_S = 3.0
Upcoming: TypeAlias = "Future[BuiltBatch]"


@dataclass
class Rounds:
    """The rounds of one run; `run` is called once."""

    prepared: PreparedRun
    store: RunStore
    context: RunContext
    executor: Executor
    dispatcher: Dispatcher
    learner: Learner
    budget: RunBudget
    listen: Listener
    stop: StopSignal

    def __post_init__(self) -> None:
        self._builder_stop = StopSignal()
        self._ending = RunEnding(self.stop, self.budget.end, self._kill)
        self._states: list[TaskState] = []
        # The tasks of which no schedule could be timed or built, and the one of which a batch is being built.
        self._given_up: set[int] = set()
        self._built_task = 0
        at_once = sum(device.at_once for device in self.prepared.devices)
        batch_size = self.prepared.options.search.batch_size
        histories = histories_of(self.prepared.history, self.prepared.farm)
        known = KnownSchedules(self.store, histories, self.listen)
        prior = prior_of_run(self.store, self.prepared.nest_prior, histories, self.listen)
        self._proposals = ScheduleProposals(
            *(self.executor, self.store, self.context, self.listen, known.of, self._builder_stop),
            *(prior, self.learner.train_tree_gru),
        )
        self._plan = TimePlan(self.budget, self.prepared.clock, at_once, batch_size)
        what_it_learns_by = (self.learner, self._plan, self.budget, self._ending, self.stop, self.listen)
        self._learning = RunLearning(*what_it_learns_by, is_wanted=not self.prepared.only_records)
        shared = (self.executor, self.store, self.context)
        self._busy_funcs = BusyFuncs(*shared, self._proposals, self._builder_stop.is_set)
        place = (self.prepared, self.store, self.executor, self.dispatcher)
        self._play_offs = PlayOffs(*place, self._plan, self._ending, self.listen, self._time_default)

    def run(self, started_s: float) -> TuneResult:
        """Do the rounds and the play-offs; `started_s` is the monotonic time at which the run began.

        Raises:
            BudgetError: the budget was over before a schedule was timed.
        """
        # Beside builds and kernels, several threads of BLAS wait for each other most of the time, and the models that
        # choose a batch take five times as long.
        with self._ending.watched(), threadpool_limits(limits=1, user_api="blas"):
            try:
                outcome = self._rounds_to_their_end()
            except KeyboardInterrupt:
                self.stop.set()
            self._check_that_something_was_timed()
            try:
                tuned = self._decisions()
            except KeyboardInterrupt:
                self.stop.set()
                tuned = self._decisions()
            if self._ending.has_come():  # in the rounds or in a play-off
                outcome = Outcome.INTERRUPTED if self.stop.is_set() else Outcome.BUDGET_SPENT
            try:
                if self._states:
                    settle_samples(self.store, self._states)
                self._learning.learn_last()
            except KeyboardInterrupt:
                outcome = Outcome.INTERRUPTED
            return self._result(outcome, tuned, time.monotonic() - started_s)

    def _kill(self) -> None:
        self._builder_stop.set()
        self.executor.interrupt()
        self.learner.interrupt()

    def _rounds_to_their_end(self) -> Outcome:
        try:
            outcome = self._rounds()
        except SdkError:
            if not self._ending.has_come():  # else what was killed has failed
                raise
            outcome = Outcome.BUDGET_SPENT
        if self._ending.has_come() and not self.stop.is_set():
            self.listen(Notice(f"The budget is over: {self.budget.step} was cut short.", warning=True))
            return Outcome.BUDGET_SPENT
        return outcome

    def _check_that_something_was_timed(self) -> None:
        is_cut = self._ending.has_come() and not self.stop.is_set()
        timed = len(self.store.database.measured()) if is_cut else 0
        if is_cut and not (self._states and timed):
            raise self.budget.too_short(self.prepared.generator_names, self.store.folder, timed)

    def _rounds(self) -> Outcome:
        settings = measure_settings(self.prepared)
        stop = self._ending.signal
        self.budget.begin("opening the device")
        self.dispatcher.open(stop.is_set)
        self.budget.begin("preparing the reference")
        self._proposals.begin()
        on_held = self._plan.reserve.add_reference
        self._states = prepare_references(
            self.executor, self.dispatcher, self.store, self.context, settings, self.listen, stop, on_held
        )
        if self._ending.has_come():
            return Outcome.INTERRUPTED
        self._learning.start()  # not before: the references were timed, and all other times are multiples of theirs
        self._learning.newest_round = recover(self.store, self._states, self._learning.add_sample, self.listen)
        self._plan.play_offs = 0 if self.prepared.only_records else len(self._states)
        if self.prepared.options.inputs.also_sizes:
            self._plan.play_offs += 1  # single sizes may need one, whose contenders are others
        else:
            self._plan.contenders = lambda: max(state.contenders for state in self._states)
        self._plan.with_incumbent = sum(1 for state in self._states if state.incumbent is not None)
        for state in self._states:
            if not (state.task.searches or state.task.space):
                self._proposals.leave_out_search(state.task_index)
            state.unlike_devices = self.prepared.options.play_off.objective.kind is not ObjectiveKind.MEAN
            if self.prepared.resume:
                self._finish_default(state)
                self._finish_rounds(state)
                state.publish_best(self.store, self.prepared.clock.value)
            elif state.timed:
                self._publish_best(state)
        with ThreadPoolExecutor(1, thread_name_prefix="batch-builder") as producer:
            outcome = self._pipeline(producer, self._batch_measurer())
        if outcome in (Outcome.EXHAUSTED, Outcome.FINISHED, Outcome.BUDGET_SPENT):
            for state in self._states:
                if state.failures and state.task_index not in self._given_up:
                    self._give_up(state)
        return outcome

    def _batch_builders(self, stop: StopSignal) -> BatchBuilders:
        place, until = (self.executor, self.store, self.context), (self._plan.batch_deadline, self._plan.affordable)
        return BatchBuilders(
            BatchBuilder(*place, self._proposals, self._learning.predict, *until, self.listen, stop),
            ParameterBatches(*place, *until, self.listen, stop),
            self._busy_funcs,
        )

    def _batch_measurer(self, enough: Callable[[int], bool] | None = None) -> BatchMeasurer:
        settings, until = measure_settings(self.prepared), (enough or self._measured_enough, self._plan.is_overdue)
        settles_leaders = not self.prepared.only_records
        return BatchMeasurer(self.dispatcher, self.store, settings, self.listen, *until, settles_leaders)

    def _time_default(self, state: TaskState) -> None:
        """Build and time the default as the first batch would have, which has left no time of it."""
        self.listen(Notice("The default schedule has no time yet, so it is timed before anything is published."))
        self.budget.begin("timing the default")
        batch = self._batch_builders(self._ending.signal).build_default(state)
        measured = partial(self._measured, state)
        # By now it may be time for the play-offs, which need it.
        measurer = self._batch_measurer(enough=lambda timed: self._ending.has_come())
        measurer.measure(batch, state.reference, state.best_ms, self._add_timing(batch), measured)
        if not (self._ending.has_come() or self.dispatcher.is_lost):
            keep_failure(self.store, state, tried_again=True)

    def _finish_default(self, state: TaskState) -> None:
        if self.prepared.only_records:
            return
        if is_left_over(self.store, state):
            self._time_default(state)
        else:
            keep_failure(self.store, state)

    def _finish_rounds(self, state: TaskState) -> None:
        """Time what an earlier process has chosen and had no time for."""
        left = left_over(self.store.database, state.task_index)
        if not left or self._ending.has_come():
            return
        self.listen(Notice(f"Schedules that were chosen before the run stopped, and are timed first: {len(left)}."))
        self.budget.begin("finishing the last rounds")
        batch = self._batch_builders(self._ending.signal).build_left_over(state, left)
        self._plan.begin_batch(len(batch.candidates))
        self._measure(batch, self._batch_measurer())

    def _pipeline(self, producer: ThreadPoolExecutor, measurer: BatchMeasurer) -> Outcome:
        """Measure batch n here while batch n + 1 is built in the producer's thread."""
        upcoming = self._start_build(producer)
        try:
            while upcoming is not None:
                try:
                    batch = self._await(upcoming)
                except GeneratorError as error:
                    upcoming = self._without_what_was_built(producer, error)
                    continue
                if batch is None:
                    return Outcome.BUDGET_SPENT
                self._states[batch.task_index].history.is_exhausted |= batch.exhausted
                self._plan.begin_batch(len(batch.candidates))
                upcoming = self._start_build(producer)
                self._measure(batch, measurer)
                if self._ending.has_come():
                    return Outcome.INTERRUPTED
                if self.dispatcher.is_lost:
                    return Outcome.DEVICES_LOST
                if upcoming is None:
                    # There was no time for another one, but this one may have taken less than was planned.
                    upcoming = self._start_build(producer)
        finally:
            if upcoming is not None:
                self._abandon(upcoming)
        if all(state.history.is_exhausted for state in self._states):
            is_search = any(state.task.searches or state.task.space is None for state in self._states)
            text = "The search finds no more new schedules." if is_search else "All parameter sets are timed."
            self.listen(Notice(text))
            return Outcome.EXHAUSTED
        return Outcome.FINISHED if self._next_task() is None else Outcome.BUDGET_SPENT

    def _next_task(self) -> int | None:
        histories = [state.history for state in self._states]
        return next_task(histories, self.prepared.options.limits.rounds * len(histories))

    def _start_build(self, producer: ThreadPoolExecutor) -> Upcoming | None:
        histories = [state.history for state in self._states]
        task_index = self._next_task()
        is_first = not any(history.started for history in histories)
        if task_index is None or not (is_first or self._plan.has_time_for_a_batch()):
            return None
        round_index = histories[task_index].started
        histories[task_index].started += 1
        self._built_task, state = task_index, self._states[task_index]
        full_s = histories[task_index].full_search_s
        is_quick = full_s is not None and full_s < _REPEAT_FULL_SEARCH_BELOW_S
        only_records = self.prepared.only_records
        full = state.task.searches and (round_index == 0 or is_quick) and not only_records
        # What is only recorded has whole batches, of as many tasks as there is time for.
        waiting = 1 if only_records else max(1, sum(1 for each in self._states if not each.history.best_ms))
        builders = self._batch_builders(self._builder_stop)
        asked = self.dispatcher.in_service if can_be_asked(self.prepared.clock, self.context) else []
        request = builders.request(state, round_index, waiting, full_search=full, device=next(iter(asked), None))
        return producer.submit(self._learn_and_build, builders, state, request)

    def _learn_and_build(self, builders: BatchBuilders, state: TaskState, request: BatchRequest) -> BuiltBatch:
        """Train, then build a batch with the new weights, in the producer's thread while the devices are busy."""
        learn_s = self._learning.learn()
        batch = builders.build(state, request, self.store.updated_weights, lambda: state.yardstick)
        return replace(batch, stages_s={LEARN_STAGE: learn_s, **batch.stages_s})

    def _await(self, upcoming: Upcoming) -> BuiltBatch | None:
        """Return the batch, or None if the run is to end or the budget is spent first."""
        self.budget.begin("building the next schedules" if self._plan.batches_done else "building the first schedules")
        while True:
            # The first batch is waited for beyond the budget: without a timed schedule there is no result.
            if (self._plan.batches_done and self._plan.is_time_for_play_offs) or self._ending.has_come():
                return None
            if wait([upcoming], _POLL_S).done:
                return upcoming.result()

    def _abandon(self, upcoming: Upcoming) -> None:
        """Stop building a batch."""
        self._builder_stop.set()
        while not upcoming.done():
            # Repeated, because tasks that waited for a core start when those before them are killed.
            self.executor.interrupt()
            wait([upcoming], _ABANDON_POLL_S)

    def _measured_enough(self, measured: int) -> bool:
        """Whether to end a batch early: the run is to end, or the play-off needs the time."""
        in_service = bool(self.dispatcher.in_service)
        return self._ending.has_come() or self._plan.is_enough(measured, in_service=in_service)

    def _measure(self, batch: BuiltBatch, measurer: BatchMeasurer) -> None:
        state = self._states[batch.task_index]
        if batch.full_search_s is not None:
            state.history.full_search_s = batch.full_search_s
        self.budget.begin("timing schedules")
        self._plan.reserve.add_link(batch.stages_s.get("link", 0.0))
        started = time.monotonic()
        measured, failed = measurer.measure(
            batch, state.reference, state.best_ms, self._add_timing(batch), partial(self._measured, state)
        )
        stages_s = {**batch.stages_s, "measure": time.monotonic() - started}
        self.store.database.add_batch(batch.round_index, batch.task_index, stages_s)
        state.add_batch(stages_s)
        state.advance_yardstick(self.store)
        state.prune(self.store, PLAY_OFF_CONTENDERS)
        self._plan.end_batch()
        left = len(batch.candidates) - measured - failed
        if left > 0 and self._plan.is_time_for_play_offs and not self.stop.is_set():
            self.listen(Notice(f"The budget left no time for {left} of the batch's {len(batch.candidates)} schedules."))
        self._learning.newest_round = batch.round_index
        if not (state.has_baseline or self.prepared.only_records):
            keep_failure(self.store, state)
            state.publish_best(self.store, self.prepared.clock.value)
        self.listen(BatchDone(batch.round_index, batch.task_index, measured, batch.failed + failed, stages_s))
        if measured or state.failures is None:
            state.failures = None
            return
        state.failures += batch.failed + failed
        is_doubtful = self.prepared.spec.profile.has_doubtful_vectors
        hopeless_after = _HOPELESS_AFTER_VECTORS if is_doubtful else _HOPELESS_AFTER
        if state.failures >= hopeless_after and not (self._ending.has_come() or self.dispatcher.is_lost):
            self._give_up(state)

    def _give_up(self, state: TaskState, error: GeneratorError | None = None) -> None:
        """Build no more batches of a task of which no schedule could be timed, or built.

        Raises:
            GeneratorError: the run has no other task.
        """
        self._given_up.add(state.task_index)
        state.history.is_exhausted = True
        if error is None:
            database, index = self.store.database, state.task_index
            counted = (database.failure_counts(index), database.last_failure(index))
            error = nothing_timed(state.task.generator_name, self.prepared.spec.profile, *counted)
        if len(self._given_up) == len(self._states):
            raise error
        self.listen(Notice(f"{error} The run's other tasks go on.", warning=True))

    def _without_what_was_built(self, producer: ThreadPoolExecutor, error: GeneratorError) -> Upcoming | None:
        """Begin a batch of another task, where one cannot be built and nothing else has ended the run."""
        if self._ending.has_come():
            raise error
        state = self._states[self._built_task]
        state.failures = None if state.failures is None else state.failures + 1
        self._give_up(state, error)
        return self._start_build(producer)

    def _add_timing(self, batch: BuiltBatch) -> Callable[[Measurement, float], None]:
        return partial(self._plan.add_timing, defaults={one.symbol for one in batch.candidates if one.is_default})

    def _publish_best(self, state: TaskState) -> None:
        clock, best = self.prepared.clock.value, state.timed[0]
        state.publish_best(self.store, clock)
        shown, default = state.shown(best), state.default_time
        times = (shown.median_ms, None if default is None else default.median_ms, clock, shown.expected_ms)
        self.listen(BestImproved(state.task_index, best.sample, *times, shown.processes, best.parameters))

    def _measured(self, state: TaskState, measured: Measured) -> None:
        state.failures = None
        if measured.candidate.has_features:
            self._learning.add_sample(state.training_sample(self.store, measured))
        if state.add(measured):
            self._publish_best(state)
        elif measured.candidate.is_default:  # nothing was published before it had a time
            state.publish_best(self.store, self.prepared.clock.value)

    def _decisions(self) -> tuple[TunedSchedule, ...]:
        """Hold the play-off of each task and publish the winner."""
        if self.prepared.only_records:
            return ()
        self.budget.begin("the play-off")
        return self._play_offs.decide_all(self._states)

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
            totals=run_totals(database, duration_s),
            devices=device_use(database),
        )
