"""The play-offs at the end of a run: which schedule ships, and which one at a size that it is slow at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.measure.dispatcher import Dispatcher
from halide_autotune.autotune_loop.play_off.reserve import PlayOffRoom
from halide_autotune.autotune_loop.play_off.run_play_off import PlayOffEntries, RunPlayOff
from halide_autotune.autotune_loop.play_off.verdict import VerdictReason
from halide_autotune.autotune_loop.run.budget.ending import RunEnding
from halide_autotune.autotune_loop.run.budget.time_plan import TimePlan
from halide_autotune.autotune_loop.run.decision.size_play_offs import SizePlayOffs
from halide_autotune.autotune_loop.run.default_schedule import failed_on_a_device, restore_objects
from halide_autotune.autotune_loop.run.result import TunedSchedule
from halide_autotune.autotune_loop.run.setup import measure_settings
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.specification.prepared_run import PreparedRun
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.errors import KernelLinkError, SdkError


@dataclass
class PlayOffs:
    """Holds the play-offs of a run.

    Attributes:
        time_default: times the default of a task where a device kept it from that.
    """

    prepared: PreparedRun
    store: RunStore
    executor: Executor
    dispatcher: Dispatcher
    plan: TimePlan
    ending: RunEnding
    listen: Listener
    time_default: Callable[[TaskState], None]
    # By the task's place.
    _decided: dict[int, TunedSchedule] = field(default_factory=dict, init=False)
    # Whose code was damaged, and has been made again.
    _remade: set[str] = field(default_factory=set, init=False)

    def decide_all(self, states: Sequence[TaskState]) -> tuple[TunedSchedule, ...]:
        """Hold the play-off of each task. After an interrupt, call it again: what was decided before stays so."""
        for place, state in enumerate(states):
            if place not in self._decided:
                self._decided[place] = self.decide(state, len(states) - place)
        return tuple(self._decided[place] for place in range(len(states)))

    def decide(self, state: TaskState, to_come: int) -> TunedSchedule:
        """Hold the play-off of a task and publish the winner. Where all that challenged has failed, hold another one.

        Args:
            to_come: tasks to decide, this one included.
        """
        clock = self.prepared.clock.value
        # No time for one, or nothing to challenge with: all but the reference have failed.
        if self.ending.has_come() or self.dispatcher.is_lost or state.failures:
            return state.unconfirmed(self.store, clock)
        further = 1 if self.prepared.options.inputs.also_sizes else 0
        room = self.plan.play_off_room(to_come + further, state.incumbent is not None)
        if room is None:
            text = "The budget left no time for the play-off, so"
            self.listen(
                Notice(f"{text} {_winner(state)} Continue the run with --resume and a longer --budget.", warning=True)
            )
            return state.unconfirmed(self.store, clock)
        try:
            entries = self._entries(state, room.contenders)
            if entries is None:
                return state.unconfirmed(self.store, clock)
            tried = len(state.timed)
            # What has failed is not published, however the play-off ends.
            result = self._held_in(room, state.leave_out).hold(entries, state.reference, state.task_index)
            is_unchallenged = result.verdict.reason is VerdictReason.NO_CHALLENGER
            if is_unchallenged:
                state.leave_out(entries.challengers)
            has_others = is_unchallenged and len(state.timed) < tried and state.has_challengers()
        except KernelLinkError as error:
            if self._remake_code(error.kernels, state):
                return self.decide(state, to_come)
            return self._failed(state, error)
        except SdkError as error:
            if not self.ending.has_come():
                return self._failed(state, error)
            result, has_others = None, False
        if self.ending.is_over_budget():
            self.listen(Notice("The budget ended the play-off.", warning=True))
        if result is None:
            return state.unconfirmed(self.store, clock)
        if has_others:
            return self.decide(state, to_come)
        tuned = state.decide(self.store, result, clock)
        try:
            return self._at_sizes.decide(state, tuned)
        except KeyboardInterrupt:  # the winner over all sizes stays
            self.ending.stop()
            return tuned

    def _failed(self, state: TaskState, error: SdkError) -> TunedSchedule:
        self.listen(Notice(f"The play-off failed, so {_winner(state)} {error}", warning=True))
        return state.unconfirmed(self.store, self.prepared.clock.value)

    def _remake_code(self, unlinkable: Collection[str], state: TaskState) -> bool:
        """Delete code that cannot be linked, so that it is made again; what was made again already is left out.

        Returns:
            Whether another play-off can be held.
        """
        hopeless = self._remade.intersection(unlinkable)
        for symbol in unlinkable:
            self.store.object_path(symbol).unlink(missing_ok=True)
        self._remade.update(unlinkable)
        state.leave_out(hopeless)
        return bool(unlinkable) and state.has_challengers() and not any(one.symbol in hopeless for one in state.timed)

    @property
    def _at_sizes(self) -> SizePlayOffs:
        inputs = self.prepared.options.inputs
        return SizePlayOffs(inputs, self.store, self.executor, self.plan, self.ending, self.listen, self._held_in)

    def _held_in(
        self, room: PlayOffRoom, on_failed: Callable[[frozenset[str]], None] = lambda symbols: None
    ) -> RunPlayOff:
        return RunPlayOff(
            executor=self.executor,
            dispatcher=self.dispatcher,
            store=self.store,
            settings=measure_settings(self.prepared),
            options=self.prepared.options,
            room=room,
            listen=self.listen,
            stop=self.ending.signal,
            on_timed=self.plan.reserve.add_timing,
            on_failed=on_failed,
            clock=self.prepared.clock,
        )

    def _entries(self, state: TaskState, count: int) -> PlayOffEntries | None:
        """The contenders of a play-off, once the default has a time if it can get one; None if there are none."""
        if failed_on_a_device(self.store, state):
            self.time_default(state)
        if not state.has_baseline:
            return None
        restore_objects(self.executor, self.store, state.kept(count), self.listen)
        if self.ending.has_come():
            return None
        # Where the best has no code any more, those after it challenge.
        challengers = [one.symbol for one in state.kept(count) if not one.is_default]
        lost = {symbol for symbol in challengers if not self.store.has_object(symbol)}
        if lost and state.has_challengers(without=lost):
            state.leave_out(lost)
            return self._entries(state, count)
        return state.entries(self.store, count)


def _winner(state: TaskState) -> str:
    if state.confirmed is None:
        return "the winner is unconfirmed."
    return "the winner of the one before stays, whatever was timed since."
