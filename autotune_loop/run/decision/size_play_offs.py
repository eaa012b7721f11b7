"""Play-offs at single sizes: a size gets a schedule of its own where the one for all sizes is much slower than that."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.play_off.course import PlayOffResult
from halide_autotune.autotune_loop.play_off.reserve import PlayOffRoom
from halide_autotune.autotune_loop.play_off.run_play_off import AtSize, PlayOffEntries, RunPlayOff
from halide_autotune.autotune_loop.play_off.verdict import VerdictReason
from halide_autotune.autotune_loop.run.budget.ending import RunEnding
from halide_autotune.autotune_loop.run.budget.time_plan import TimePlan
from halide_autotune.autotune_loop.run.default_schedule import restore_objects
from halide_autotune.autotune_loop.run.result import TunedSchedule
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.run.timed import Timed, fastest_at
from halide_autotune.autotune_loop.run_scale import DEVIATIONS
from halide_autotune.autotune_loop.specification.deciding_argument import DecidingArgument, deciding_argument
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.store.size_schedules import GENERAL, SizeSchedule
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.process.content_cache import file_sha256

# How many times as fast as the schedule for all sizes a size's own must be there: more code to build and to ship is
# not worth less.
LEAST_SPEED_UP = 1.10
# Of a size; the choice among them takes turns, and more are seldom close.
_CHALLENGERS = 3

HeldIn = Callable[[PlayOffRoom], RunPlayOff]


@dataclass
class SizePlayOffs:
    """Holds a play-off at each size where the rounds have timed a schedule that may be fast enough.

    Attributes:
        inputs: what kernels are called with; of one size nothing is to be decided.
        held_in: a play-off that has this room.
    """

    inputs: KernelInputs
    store: RunStore
    executor: Executor
    plan: TimePlan
    ending: RunEnding
    listen: Listener
    held_in: HeldIn

    def decide(self, state: TaskState, tuned: TunedSchedule) -> TunedSchedule:
        """The winner with what is used at each size, which is recorded and published beside it."""
        winner = next((timed for timed in state.timed if timed.symbol == tuned.published.symbol), None)
        # The schedule of a generator, and a header in use, are kept as they are; parameters are not a schedule alone.
        if not self.inputs.also_sizes or winner is None or tuned.header is None or state.task.space is not None:
            return tuned
        argument = deciding_argument(self.inputs)
        if argument is None:
            text = (
                "No buffer has a different size at every size of this run, so a call cannot choose a schedule by size"
            )
            self.listen(Notice(f"{text}: one schedule is for all of them."))
            return tuned
        schedules, files = [], {}
        for number, size in enumerate(argument.extents):
            used, text = self._decided(state, winner, argument, size, number)
            schedules.append(used)
            if used.is_own:
                files[used.header] = text
        self.store.publish_for_sizes(state.task_index, file_sha256(tuned.header), schedules, files)
        return replace(tuned, size_schedules=tuple(schedules))

    def _decided(
        self, state: TaskState, winner: Timed, argument: DecidingArgument, size: str, number: int
    ) -> tuple[SizeSchedule, str]:
        """What is used at a size, and the text of its header if it has its own."""
        extents = argument.extents[size]
        general = SizeSchedule(size, argument.name, extents, winner.name, winner.symbol, "", "", "")
        challengers = may_be_faster_at(size, winner, state.timed)
        if not challengers:
            gain = f"{100 * (LEAST_SPEED_UP - 1):.0f} %"
            return replace(general, message=f"No other schedule seemed over {gain} faster there."), ""
        room = self.plan.play_off_room(1, False)
        if self.ending.has_come() or room is None:
            name = challengers[0].name
            text = f"The budget left no time for a play-off at {size}, where {name} may be faster."
            self.listen(Notice(f"{text} Resume the run with a larger budget."))
            why = f"Unconfirmed: the budget left no time for a play-off, and {name} may be faster."
            return replace(general, message=why, is_unconfirmed=True), ""
        try:
            challengers = challengers[: room.contenders - 1]
            result = self._held(state, winner, challengers, size, number, room)
        except SdkError as error:
            self.listen(Notice(f"The play-off at {size} failed: {error}", warning=True))
            return replace(general, message=f"Unconfirmed: the play-off failed: {error}", is_unconfirmed=True), ""
        verdict = result.verdict
        won = next((timed for timed in challengers if timed.symbol == verdict.winner), None)
        path = None if won is None else self.store.schedule_path(self.store.samples / won.sample)
        if verdict.reason is not VerdictReason.FASTER or won is None or path is None or not path.is_file():
            return replace(general, message=verdict.message, is_unconfirmed=not verdict.is_decided), ""
        name, text = self.store.size_header(state.task_index, extents, path)
        own = replace(
            general,
            sample=won.name,
            symbol=won.symbol,
            header=name,
            header_sha256=hashlib.sha256(text.encode()).hexdigest(),
            message=verdict.message,
            tuned=next(iter(result.times[won.symbol].values())).schedule_time,
            speed_up=verdict.speed_up(GENERAL),
        )
        return own, text

    def _held(
        self,
        state: TaskState,
        winner: Timed,
        challengers: Sequence[Timed],
        size: str,
        number: int,
        room: PlayOffRoom,
    ) -> PlayOffResult:
        """The play-off at a size.

        Raises:
            SdkError: it cannot be held.
        """
        restore_objects(self.executor, self.store, [winner, *challengers], self.listen)
        labels = {winner.symbol: GENERAL, **{timed.symbol: timed.name for timed in challengers}}
        kernels = self.store.kernels(labels)
        entries = PlayOffEntries(
            kernels,
            {kernel.name: labels[kernel.name] for kernel in kernels},
            baseline=winner.symbol,
            also_timed=None,
            at=AtSize(size, number, 1 - 1 / LEAST_SPEED_UP),
        )
        return self.held_in(room).hold(entries, state.reference, state.task_index)


def may_be_faster_at(size: str, winner: Timed, timed: Sequence[Timed]) -> list[Timed]:
    """Those that may be fast enough at a size, by the times of the rounds; the most promising first.

    A time at a size is the part that it has in the schedule's time over all sizes, because that is the mean of several
    timings, or of ratios to the yardstick.
    """
    if size not in winner.by_size_ms:
        return []
    winner_ms = winner.by_size_around(winner.median_ms)[size]

    def may_be(one: Timed) -> bool:
        # The error is known of the time over the sizes; at one of them it is larger.
        error = math.hypot(one.log_error, winner.log_error) * math.sqrt(len(one.by_size_ms))
        log_gain = math.log(winner_ms / one.by_size_around(one.median_ms)[size])
        return log_gain + DEVIATIONS * error >= math.log(LEAST_SPEED_UP)

    return [one for one in fastest_at(size, timed) if one is not winner and may_be(one)][:_CHALLENGERS]
