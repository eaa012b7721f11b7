"""Times a run's schedules on its devices; a schedule that fails because of a device is timed again."""

from __future__ import annotations

import contextlib
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TypeVar

from halide_autotune.autotune_loop.events import DeviceChanged, Listener, Notice
from halide_autotune.autotune_loop.execute.device_session import ReferenceRun, Timing
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks import measure_tasks as tasks
from halide_autotune.autotune_loop.measure.calibration import Calibration
from halide_autotune.autotune_loop.measure.device_answers import answer_of, is_device_failure, timing_of
from halide_autotune.autotune_loop.measure.device_state import DeviceQueue, DeviceState
from halide_autotune.autotune_loop.measure.machine_watch import MachineWatch
from halide_autotune.autotune_loop.measure.retry_state import KILLS_ALLOWED, MeasureJob, RetryState
from halide_autotune.autotune_loop.specification.prepared_run import ReportHealth
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.probe import DeviceSense
from halide_autotune.devices.timing.machine_signs import Surroundings
from halide_autotune.devices.timing.measure import device_failure
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.values.texts import brief_duration

_POLL_S = 0.2
# After this many tries a schedule is given up.
_MOST_TRIES = 12
_LOST_AGAIN = (TroubleKind.LOST, TroubleKind.TIMEOUT, TroubleKind.PROTOCOL_ERROR)
_MAY_PASS = (*_LOST_AGAIN, TroubleKind.UNREACHABLE, TroubleKind.FULL, TroubleKind.DRIFTED, TroubleKind.OUTLIER)
# What is worth waiting for at the start of a run.
_WAITED_FOR = (*_LOST_AGAIN, TroubleKind.LEASED, TroubleKind.FULL)
# The device is not at fault, so these do not count against its health.
_FAULTLESS = (TroubleKind.LEASED, TroubleKind.OUTLIER)
# If a device is lost while it times a schedule and is not back after this time, the schedule is blamed.
_VERDICT_AFTER_S = 120.0

_R = TypeVar("_R")

SettingsNow = Callable[[MeasureJob], MeasureSettings]
# Records a result, and returns what is to be done with it once it is on disk.
Finish = Callable[[MeasureJob, Measurement | MeasureFailure, float], Callable[[], None] | None]


@dataclass
class _Work:
    """The jobs of one call of `Dispatcher.run`.

    Attributes:
        waiting: to be handed out.
        held: lost with a device, and not handed out until that device is back or given up.
        lost: those whose lost devices are not back yet; they may also wait, be held or be on another device.
    """

    settings: SettingsNow
    finish: Finish
    waiting: deque[RetryState]
    held: list[RetryState] = field(default_factory=list)
    lost: list[RetryState] = field(default_factory=list)
    flying: int = 0


@dataclass
class Dispatcher:
    """Hands schedules to devices and takes their results; used by one thread.

    Attributes:
        patience_s: how long the run waits if it has no device.
        ahead_s: device seconds of schedules that each device may get ahead; above 0 if answers take a while.
        at_once: schedules that each device times at once.
        quiet_patience_s: how long the run waits, all in all, for each device that is too disturbed to time on.
        is_lost: whether there was no device for that time.
    """

    executor: Executor
    device_names: Sequence[str]
    database: RunDatabase
    listen: Listener
    patience_s: float
    report_health: ReportHealth
    ahead_s: float = 0.0
    at_once: int = 1
    quiet_patience_s: float = 0.0
    is_lost: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._states = {name: DeviceState(name, DeviceQueue(self.at_once, self.ahead_s)) for name in self.device_names}
        self._calibration = Calibration(self.database)
        self._told: set[str] = set()
        self._machines: dict[str, MachineWatch] = {}
        self._answers: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._recorded: list[Callable[[], None]] = []

    @property
    def in_service(self) -> list[str]:
        """Names of the devices that take schedules now."""
        return [state.name for state in self._states.values() if state.in_service]

    @property
    def taking_part(self) -> list[str]:
        """Names of the devices that have timed schedules of this run, or can now."""
        return [state.name for state in self._states.values() if state.in_service or state.is_proved]

    def open(self, stopped: Callable[[], bool]) -> None:
        """Connect to all devices at the same time, and lease them.

        If none can be used, waits for those that are leased or full, or were reached and lost again, until `stopped`.

        Raises:
            DeviceError: no device can be used; this is the first one's trouble.
        """
        self.executor.arrivals()  # these are known: they have a state
        futures = {name: self.executor.submit(tasks.OpenDevice(name)) for name in self._states}
        troubles = []
        for name, future in futures.items():
            answer = answer_of(name, future)
            if isinstance(answer, DeviceError):
                troubles.append(answer)
                self._out_of_service(self._states[name], answer)
            else:
                self._states[name].boot = answer
        if self.in_service:
            return
        if any(isinstance(trouble, DeviceTrouble) and trouble.kind in _WAITED_FOR for trouble in troubles):
            self.listen(Notice(f"The run waits for a device, {brief_duration(self.patience_s)} at most."))
            if self._wait_for_device(stopped):
                return
        if not stopped():
            raise troubles[0]

    def prepare(
        self, run: ReferenceRun, task_index: int, settings: MeasureSettings, stopped: Callable[[], bool]
    ) -> Timing | None:
        """Run the reference on the first device in service; the others run it when they first need it.

        If a device fails, another one takes over, or the run waits for one.

        Returns:
            As `PrepareReference`. A device's trouble is returned only if no device is left, the run is stopped, or
            waiting did not help twice, for example because the reference takes devices down.
        """
        strikes = 0
        # The last one may have been lost since the reference of another argument set was prepared.
        self._wait_for_device(stopped)
        for _ in range(_MOST_TRIES):
            state = self._states[(self.in_service or [*self._states])[0]]
            boot = state.boot
            future = self.executor.submit(tasks.PrepareReference(state.name, run, settings))
            timing = timing_of(state.name, run.symbol, future)
            if timing is not None:
                timing = self._calibrated(task_index, timing)
            if timing is None or not is_device_failure(timing.result):
                return timing
            self._failed(state, timing.result)
            if not self._wait_for_device(stopped):
                break
            restarted = timing.result.under_way and state.in_service and state.boot != boot
            strikes += int(restarted or timing.result.trouble not in _MAY_PASS)
            if strikes >= KILLS_ALLOWED:
                break
        return timing

    def _wait_for_device(self, stopped: Callable[[], bool]) -> bool:
        """Wait for a device within the run's patience; whether one is in service."""
        while not self.in_service:
            self._look_again()
            if stopped() or self._patience_is_over():
                return False
            self._hear()
        return True

    def sense(self, moment: str) -> None:
        """Record the readings of the devices' sensors, 'before' or 'after' a batch."""
        futures = {name: self.executor.submit(tasks.Sense(name)) for name in self.in_service}
        for name, future in futures.items():
            sensed = answer_of(name, future)
            if isinstance(sensed, DeviceSense):
                self.database.add_device_state(name, moment, asdict(sensed))

    def forget(self, executable: Executable) -> None:
        """Delete an executable from the devices."""
        forget = (executable.path.name, executable.sha256)
        futures = {name: self.executor.submit(tasks.Forget(name, *forget)) for name in self.in_service}
        for name, future in futures.items():
            answer_of(name, future)

    def run(
        self,
        jobs: Iterable[MeasureJob],
        settings: SettingsNow,
        finish: Finish,
        enough: Callable[[], bool],
        overdue: Callable[[], bool] = lambda: False,
    ) -> int:
        """Time every job; `finish` is called once for each, in this thread, when its result is final, and what that
        returns once the result is on disk: results that come together are waited for together.

        A job that fails because of a device is handed out again, to another device if there is one, and only once more
        if it took a device down. A job for a certain device waits a while for it. Ends early, after the jobs under way,
        if `enough` returns True or no device is left. Jobs under way are stopped, with everything else that is, once
        `overdue` returns True.

        Returns:
            How many jobs got no result because of an early end.
        """
        work = _Work(settings, finish, deque(RetryState(job) for job in jobs))
        while True:
            self._look_again()
            self._release_held(work)
            self._look_around(work)
            while not (stopping := enough()) and self._hand_out(work):
                pass
            self._count()
            left = len(work.waiting) + len(work.held)
            if work.flying == 0 and (stopping or not left or self._patience_is_over()):
                return left
            if work.flying and stopping and overdue():
                self.executor.interrupt()
            self._hear()

    def _hear(self) -> None:
        """Process the answers that have arrived, or wait for one; those that came together are one commit."""
        with contextlib.suppress(queue.Empty):
            answers = [self._answers.get(timeout=_POLL_S)]
            with self.database.one_commit():
                while answers:
                    answers.pop()()
                    with contextlib.suppress(queue.Empty):
                        answers.append(self._answers.get_nowait())
        self._count()

    def _finish(self, work: _Work, job: MeasureJob, result: Measurement | MeasureFailure, held_s: float) -> None:
        if (counts := work.finish(job, result, held_s)) is not None:
            self._recorded.append(counts)

    def _count(self) -> None:
        """Do what waits until results are on disk."""
        recorded, self._recorded = self._recorded, []
        for counts in recorded:
            counts()

    def _when_done(self, future: Future[_R], handle: Callable[[Future[_R]], None]) -> None:
        """Have an answer handled in the dispatcher's thread."""
        future.add_done_callback(lambda done: self._answers.put(partial(handle, done)))

    def _patience_is_over(self) -> bool:
        self.is_lost = all(state.is_given_up(self.patience_s) for state in self._states.values())
        return self.is_lost

    def _hand_out(self, work: _Work) -> bool:
        """Give one schedule to a free device that may time it; False if there is no such pair."""
        if not any(self._has_room(state) for state in self._states.values()):
            return False  # no need to look through all that wait
        wanted_patience_s = min(self.patience_s, _VERDICT_AFTER_S)
        for position, retry in enumerate(work.waiting):
            wanted = retry.job.device
            if wanted is not None and self.in_service and self._states[wanted].is_given_up(wanted_patience_s):
                del work.waiting[position]
                self._give_up(work, retry, MeasureFailureReason.DEVICE, self._states[wanted].message)
                return True
            state = self._free_device(retry)
            if state is not None:
                del work.waiting[position]
                self._submit(work, retry, state)
                return True
        return False

    def _free_device(self, retry: RetryState) -> DeviceState | None:
        wanted = retry.job.device
        allowed = [state for state in self._states.values() if state.in_service and wanted in (None, state.name)]
        elsewhere = [state for state in allowed if state.name != retry.avoid] or allowed
        free = [state for state in elsewhere if self._has_room(state)]
        return min(free, key=lambda state: state.queue.in_flight, default=None)

    def _machine(self, name: str) -> MachineWatch:
        return self._machines.setdefault(name, MachineWatch(name, self.quiet_patience_s))

    def _has_room(self, state: DeviceState) -> bool:
        return state.in_service and state.queue.has_room and not self._machine(state.name).is_waiting

    def _look_around(self, work: _Work) -> None:
        """Ask who computes on the devices that are disturbed, as long as there is something to time."""
        for state in self._states.values() if work.waiting else ():
            machine = self._machine(state.name)
            if state.in_service and machine.begins_look(time.monotonic()):
                task = tasks.LookAround(state.name, work.waiting[0].job.executable)
                self._when_done(self.executor.submit(task), partial(self._looked_around, machine))

    def _looked_around(self, machine: MachineWatch, done: Future[Surroundings | None]) -> None:
        answer = answer_of(machine.device, done)
        found = answer if isinstance(answer, Surroundings) else None
        if found is not None:
            self.database.add_device_state(machine.device, "look", asdict(found))
        for news in machine.looked(found, time.monotonic()):
            self.listen(Notice(news.text, news.is_warning))

    def _submit(self, work: _Work, retry: RetryState, state: DeviceState) -> None:
        retry.tries += 1
        state.queue.in_flight += 1
        work.flying += 1
        job = retry.job
        settings = self._calibration.on_board(job.task_index, state.name, work.settings(job))
        task = tasks.Measure(state.name, job.executable, job.symbol, settings, job.reference, job.tolerance)
        self._when_done(self.executor.submit(task), partial(self._answered, work, retry, state))

    def _answered(self, work: _Work, retry: RetryState, state: DeviceState, done: Future[Timing]) -> None:
        state.queue.in_flight -= 1
        work.flying -= 1
        timing = self._calibrated(retry.job.task_index, timing_of(state.name, retry.job.symbol, done))
        result = timing.result
        if is_device_failure(result):
            self._device_failed(work, retry, state, result)
            return
        state.queue.held(timing.held_s)
        if state.is_unhealthy:
            self.listen(DeviceChanged(state.name, "in service", ""))
        if state.proved():
            self.report_health(state.name, None)
        self._machine(state.name).add(result)
        if timing.alone and timing.alone not in self._told:
            self._told.add(timing.alone)
            self.listen(Notice(timing.alone, warning=True))
        self._finish(work, retry.job, result, timing.held_s)

    def _calibrated(self, task_index: int, timing: Timing) -> Timing:
        """The timing on the run's scale, or the device's trouble if it cannot be compared with the others."""
        result = timing.result
        if not isinstance(result, Measurement):
            return timing
        try:
            factor = self._calibration.factor(task_index, timing)
        except DeviceTrouble as trouble:
            return replace(timing, result=device_failure(result.kernel, result.device, trouble, under_way=False))
        return replace(timing, result=replace(result, factor=factor))

    def _device_failed(self, work: _Work, retry: RetryState, state: DeviceState, failure: MeasureFailure) -> None:
        """Hand the schedule out again: as far as is known, it is not to blame."""
        self._failed(state, failure)
        retry.avoid = state.name
        if failure.under_way:
            retry.lost_on[state.name] = state.boot
            work.lost.append(retry)
        if retry.tries >= _MOST_TRIES:
            self._give_up(work, retry, MeasureFailureReason.DEVICE, failure.message)
        elif retry.is_suspect or (retry.lost_on and len(self._states) == 1):
            work.held.append(retry)
        else:
            work.waiting.appendleft(retry)

    def _failed(self, state: DeviceState, failure: MeasureFailure) -> None:
        self.database.add_incident(failure)
        if failure.trouble is not TroubleKind.DRIFTED and state.in_service:
            self._out_of_service(state, DeviceTrouble(failure.trouble or TroubleKind.BROKEN, failure.message))

    def _release_held(self, work: _Work) -> None:
        """Decide about schedules whose lost devices are back, or have been silent for too long."""
        for retry in work.lost:
            for name in list(retry.lost_on):
                state = self._states[name]
                if state.in_service:
                    retry.verdict(name, state.boot)
                elif state.out_s > _VERDICT_AFTER_S:
                    retry.verdict(name, None)
        work.lost = [retry for retry in work.lost if retry.lost_on]
        for retry in [a for a in work.held if a.is_killer or not a.lost_on]:
            work.held.remove(retry)
            if retry.is_killer:
                message = f"The schedule took down a device {retry.kills} times, so it is not timed again."
                self._give_up(work, retry, MeasureFailureReason.KILLS_DEVICE, message)
            else:
                work.waiting.appendleft(retry)

    def _give_up(self, work: _Work, retry: RetryState, reason: MeasureFailureReason, message: str) -> None:
        device = retry.avoid or retry.job.device or ""
        self._finish(work, retry.job, MeasureFailure(retry.job.symbol, device, reason, message, ""), 0.0)

    def _out_of_service(self, state: DeviceState, trouble: DeviceError) -> None:
        was_unhealthy = state.is_unhealthy
        # It is asked again and again, and somebody has it all the time.
        is_told = isinstance(trouble, DeviceTrouble) and trouble.kind is TroubleKind.LEASED and state.is_awaited
        if not isinstance(trouble, DeviceTrouble):
            trouble = DeviceTrouble(TroubleKind.BROKEN, trouble.message, next_step=trouble.next_step)
        state.out_of_service(trouble.kind, str(trouble))
        if state.is_unhealthy and not was_unhealthy and trouble.kind not in _FAULTLESS:
            self.report_health(state.name, trouble)
        if not (was_unhealthy or is_told):
            news = "unhealthy" if state.is_unhealthy else "out of service"
            self.listen(DeviceChanged(state.name, news, state.message.removeprefix(f"{state.name}: ")))

    def _look_again(self) -> None:
        """Check every device that is due; a device that has just joined the farm is new."""
        for name in self.executor.arrivals():
            if name not in self._states:
                self._states[name] = DeviceState(name, DeviceQueue(1, self.ahead_s), out_since_s=time.monotonic())
            self._states[name].next_check_s = 0.0
        for state in self._states.values():
            if state.is_due:
                state.checking = True
                self._when_done(self.executor.submit(tasks.OpenDevice(state.name)), partial(self._looked_at, state))

    def _looked_at(self, state: DeviceState, done: Future[str | DeviceError]) -> None:
        answer = answer_of(state.name, done)
        state.checking = False
        if isinstance(answer, DeviceError):
            self._out_of_service(state, answer)
            return
        restarted = state.boot not in ("", answer)
        state.back_in_service(answer)
        if not state.is_unhealthy:  # an unhealthy one must first time a schedule
            self.listen(DeviceChanged(state.name, "in service", "It was restarted." if restarted else ""))
