"""A run's play-off: its best schedules, the default and the incumbent are timed again on every device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from halide_autotune.autotune_loop.events import Listener, Notice, PlayOff
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Link
from halide_autotune.autotune_loop.measure.batch_measurer import TaskReference
from halide_autotune.autotune_loop.measure.dispatcher import Dispatcher
from halide_autotune.autotune_loop.measure.output_tolerance import of_hand_written
from halide_autotune.autotune_loop.measure.retry_state import MeasureJob
from halide_autotune.autotune_loop.play_off.course import PlayOffCourse, PlayOffResult, Turn
from halide_autotune.autotune_loop.play_off.reserve import PlayOffRoom
from halide_autotune.autotune_loop.play_off.times import ProcessTime, turn_settings
from halide_autotune.autotune_loop.play_off.verdict import least_gain_by, sentence
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.targets.build.executable import Executable, KernelObject
from halide_autotune.targets.process.stop_signal import StopSignal


@dataclass(frozen=True)
class AtSize:
    """One of a run's sizes, at which alone a play-off compares.

    Attributes:
        size: as times have it.
        number: its place among the run's sizes.
        least_gain: as for `PlayOffCourse`.
    """

    size: str
    number: int
    least_gain: float


@dataclass(frozen=True)
class PlayOffEntries:
    """The contenders.

    Attributes:
        kernels: at least one.
        labels: symbol → what messages call it.
        baseline: the symbol of the one that stays unless it is beaten; None if there is none.
        also_timed: the symbol of a further one that is timed to the end, and takes the baseline's place if that fails.
        own: the symbol of the generator's own schedule; None if it does not take part.
        at: the size that counts; None for all of them.
    """

    kernels: Sequence[KernelObject]
    labels: Mapping[str, str]
    baseline: str | None
    also_timed: str | None
    own: str | None = None
    at: AtSize | None = None

    @property
    def challengers(self) -> frozenset[str]:
        """The symbols of all but the baseline."""
        return frozenset(self.labels) - {self.baseline}


@dataclass
class RunPlayOff:
    """Holds the play-offs of a run.

    Attributes:
        on_timed: called with the seconds that each timing held its device.
        on_failed: called with the symbols of those that failed in a turn, and so are out.
        clock: of the devices.
    """

    executor: Executor
    dispatcher: Dispatcher
    store: RunStore
    settings: MeasureSettings
    options: RunOptions
    room: PlayOffRoom
    listen: Listener
    stop: StopSignal
    on_timed: Callable[[float], None]
    on_failed: Callable[[frozenset[str]], None]
    clock: Clock

    def hold(self, entries: PlayOffEntries, reference: TaskReference, task_index: int) -> PlayOffResult:
        """Time the contenders in turns on every device and decide; a contender that fails in any turn is out.

        Raises:
            SdkError: they cannot be linked.
        """
        name = f"play_off_{task_index}" if entries.at is None else f"play_off_{task_index}_at_{entries.at.number}"
        link = Link(self.store.work / "executables", name, tuple(entries.kernels))
        executable = self.executor.submit(link).result()
        everywhere = self.dispatcher.taking_part
        devices = list(everywhere)

        at = "" if entries.at is None else entries.at.size
        result = PlayOffCourse(
            contenders=entries.labels,
            baseline=entries.baseline,
            also_timed=entries.also_timed,
            objective=self.options.play_off.objective,
            most_turns=self.options.play_off.turns,
            seed=self.options.search.seed,
            time_turn=partial(self._turn, executable, entries, devices, reference, task_index),
            time_left_s=lambda: self.room.deadline.left_s,
            first_look_left_s=lambda: self.room.first_look_by.left_s,
            devices=everywhere,
            least_gain=least_gain_by(self.clock) if entries.at is None else entries.at.least_gain,
            tell=lambda count, turn, turns: self.listen(PlayOff(task_index, count, turn, turns, at)),
        ).run()
        self.dispatcher.forget(executable)
        return result

    def _turn(
        self,
        executable: Executable,
        entries: PlayOffEntries,
        devices: list[str],
        reference: TaskReference,
        task_index: int,
        order: Sequence[str],
        yardstick: str | None,
    ) -> Turn:
        """Do one turn; a device that fails for good is removed from `devices`."""
        times: dict[str, dict[str, ProcessTime]] = {device: {} for device in devices}
        failed: dict[str, str] = {}
        purpose, size = ("play-off", "") if entries.at is None else ("size play-off", entries.at.size)

        def finish(job: MeasureJob, result: Measurement | MeasureFailure, held_s: float) -> Callable[[], None] | None:
            if isinstance(result, Measurement):
                self.store.database.add_measurement(result, purpose, held_s)
                return partial(count, job, result, held_s)
            if result.reason is MeasureFailureReason.DEVICE:
                times.pop(job.device or "", None)
            elif not self.stop.is_set():
                failed[job.symbol] = result.message
            return None

        def count(job: MeasureJob, result: Measurement, held_s: float) -> None:
            self.on_timed(held_s)
            times.get(result.device, {})[job.symbol] = ProcessTime.of(result, yardstick, size)

        def enough() -> bool:
            return self.stop.is_set() or (not self.dispatcher.in_service and self.room.first_look_by.within(0.0))

        tolerances = dict.fromkeys(order, reference.tolerance)
        if entries.own is not None:
            tolerances[entries.own] = of_hand_written(reference.tolerance)
        jobs = [
            MeasureJob(executable, symbol, task_index, reference.run, tolerances[symbol], device)
            for device in devices
            for symbol in order
        ]
        undone = self.dispatcher.run(
            jobs, lambda job: turn_settings(self.settings, job.symbol, yardstick), finish, enough
        )
        devices[:] = list(times)
        out = {yardstick: failed[yardstick]} if yardstick in failed else failed  # the others may have failed by it
        for symbol, why in out.items():
            self.listen(Notice(sentence(f"{entries.labels[symbol]} is out of the play-off: {why}"), warning=True))
        self.on_failed(frozenset(out))
        return Turn(times, frozenset(out), stopped=bool(undone) or self.stop.is_set() or not devices)
