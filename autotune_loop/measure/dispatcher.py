"""The devices of a run: hands schedules out, takes results back, and loses none to a device's trouble."""

from __future__ import annotations

import contextlib
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeGuard, TypeVar

from autotune_loop.events import DeviceChanged, Listener
from autotune_loop.execute import tasks
from autotune_loop.execute.engine import Engine
from autotune_loop.execute.timing import ReferenceRun, Timing
from autotune_loop.measure.calibration import Calibration
from autotune_loop.measure.device_state import Seat
from autotune_loop.measure.retry_state import KILLS_ALLOWED, Attempt, MeasureJob
from autotune_loop.store.run_database import RunDatabase
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.timing.measure import device_failure
from devices.timing.measure_settings import MeasureSettings
from devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from targets.build.executable import Executable
from targets.errors import DeviceError

_POLL_S = 0.2
# However unlucky a schedule is, it ends.
_MOST_TRIES = 12
_LOST_AGAIN = (TroubleKind.LOST, TroubleKind.SILENT, TroubleKind.GARBLED)
_MAY_PASS = (*_LOST_AGAIN, TroubleKind.UNREACHABLE, TroubleKind.DRIFTED, TroubleKind.UNLIKE)
# No fault of the device: it is not remembered.
_FAULTLESS = (TroubleKind.LEASED, TroubleKind.UNLIKE)
# A device that was lost with a schedule and is not back after so long is taken for killed by it.
_VERDICT_AFTER_S = 120.0

_T = TypeVar("_T", Timing, Timing | None)

SettingsNow = Callable[[MeasureJob], MeasureSettings]
Finish = Callable[[MeasureJob, Measurement | MeasureFailure, float], None]
# Told a device's name and why it is unhealthy, or None when it is well again.
ReportHealth = Callable[[str, DeviceTrouble | None], None]


@dataclass
class _Work:
    """The jobs of one call of `Crew.run`.

    Attributes:
        waiting: to be handed out.
        held: lost with a device, and not handed out before it is known what became of that.
        lost: those of which it is not known yet, wherever they are.
    """

    settings: SettingsNow
    finish: Finish
    waiting: deque[Attempt]
    held: list[Attempt] = field(default_factory=list)
    lost: list[Attempt] = field(default_factory=list)
    flying: int = 0


class Crew:
    """Belongs to one thread.

    Args:
        patience_s: how long the run waits when no device is left.
        ahead_s: device seconds of schedules that each device is handed ahead; more than 0 where answers take a while.
        at_once: schedules that each device times at once.

    Attributes:
        is_lost: no device was left for as long as that.
    """

    def __init__(
        self,
        engine: Engine,
        device_names: Sequence[str],
        database: RunDatabase,
        listen: Listener,
        patience_s: float,
        report_health: ReportHealth,
        ahead_s: float = 0.0,
        at_once: int = 1,
    ) -> None:
        self._engine = engine
        self._ahead_s = ahead_s
        self._seats = {name: Seat(name, at_once=at_once, ahead_s=ahead_s) for name in device_names}
        self._database = database
        self._calibration = Calibration(database)
        self._listen = listen
        self._patience_s = patience_s
        self._wanted_patience_s = min(patience_s, _VERDICT_AFTER_S)
        self._report_health = report_health
        self._answers: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.is_lost = False

    @property
    def in_service(self) -> list[str]:
        """Names of the devices that take schedules now."""
        return [seat.name for seat in self._seats.values() if seat.in_service]

    @property
    def taking_part(self) -> list[str]:
        """Names of the devices that have timed schedules of this run, or can now."""
        return [seat.name for seat in self._seats.values() if seat.in_service or seat.is_proved]

    def open(self, stopped: Callable[[], bool]) -> None:
        """Connect to every device at once and take the leases.

        Where none can be used, those that were reached and lost again are waited for, unless `stopped` says so.

        Raises:
            DeviceError: none of them can be used; the first one's trouble is told.
        """
        self._engine.arrivals()  # these are the seats' own
        futures = {name: self._engine.submit_measure(name, tasks.open_device, name) for name in self._seats}
        troubles = []
        for name, future in futures.items():
            answer = _opened(future)
            if isinstance(answer, DeviceError):
                troubles.append(answer)
                self._out_of_service(self._seats[name], answer)
            else:
                self._seats[name].boot = answer
        reached = any(isinstance(trouble, DeviceTrouble) and trouble.kind in _LOST_AGAIN for trouble in troubles)
        if not self.in_service and not (reached and self._wait_for_device(stopped)) and not stopped():
            raise troubles[0]

    def prepare(
        self, run: ReferenceRun, argset_index: int, settings: MeasureSettings, stopped: Callable[[], bool]
    ) -> Timing | None:
        """Run the reference on the first device that is in service; the others do so when they first need it.

        A device that fails is replaced by another one, or waited for.

        Returns:
            As `tasks.prepare_reference`: with trouble of a device only when no device is left, `stopped` says so, or
            it is twice trouble that waiting does not mend, such as a reference that takes devices down.
        """
        strikes = 0
        for _ in range(_MOST_TRIES):
            seat = self._seats[self.in_service[0]]
            boot = seat.boot
            future = self._engine.submit_measure(seat.name, tasks.prepare_reference, seat.name, run, settings)
            timing = _timing(seat, run.symbol, future)
            if timing is not None:
                timing = self._calibrated(argset_index, timing)
            if timing is None or not _is_device_failure(timing.result):
                return timing
            self._failed(seat, timing.result)
            if not self._wait_for_device(stopped):
                break
            restarted = timing.result.under_way and seat.in_service and seat.boot != boot
            strikes += int(restarted or timing.result.trouble not in _MAY_PASS)
            if strikes >= KILLS_ALLOWED:
                break
        return timing

    def _wait_for_device(self, stopped: Callable[[], bool]) -> bool:
        """Whether a device is in service, at once or within the crew's patience."""
        while not self.in_service:
            self._look_again()
            if stopped() or self._patience_is_over():
                return False
            with contextlib.suppress(queue.Empty):
                self._answers.get(timeout=_POLL_S)()
        return True

    def sense(self, moment: str) -> None:
        """Write down what the devices' sensors say, 'before' or 'after' a batch."""
        futures = {name: self._engine.submit_measure(name, tasks.sense, name) for name in self.in_service}
        for name, future in futures.items():
            with contextlib.suppress(DeviceTrouble):
                state = future.result()
                if state is not None:
                    self._database.add_device_state(name, moment, asdict(state))

    def forget(self, executable: Executable) -> None:
        """Delete an executable from the devices."""
        futures = [self._engine.submit_measure(name, tasks.forget, name, executable) for name in self.in_service]
        for future in futures:
            with contextlib.suppress(DeviceTrouble):
                future.result()

    def run(self, jobs: Iterable[MeasureJob], settings: SettingsNow, finish: Finish, enough: Callable[[], bool]) -> int:
        """Time every job; `finish` is called once for each, in this thread, when its result is final.

        A job that failed because of a device is handed out again: elsewhere if there is another device, and only once
        more if it took one down. One that wants a device of its own waits a while for that. Ends early, what is under
        way finished, when `enough` says so or no device is left.

        Returns:
            How many jobs got no result, because it ended early.
        """
        work = _Work(settings, finish, deque(Attempt(job) for job in jobs))
        while True:
            self._look_again()
            self._release_held(work)
            while not (stopping := enough()) and self._hand_out(work):
                pass
            if work.flying == 0 and (stopping or self._is_over(work)):
                return len(work.waiting) + len(work.held)
            self._hear(_POLL_S)

    def _hear(self, timeout_s: float) -> None:
        """Take the answers that are there, or wait for one."""
        with contextlib.suppress(queue.Empty):
            self._answers.get(timeout=timeout_s)()
            while True:
                self._answers.get_nowait()()

    def _is_over(self, work: _Work) -> bool:
        if not work.waiting and not work.held:
            return True
        return self._patience_is_over()

    def _patience_is_over(self) -> bool:
        self.is_lost = all(seat.is_given_up(self._patience_s) for seat in self._seats.values())
        return self.is_lost

    def _hand_out(self, work: _Work) -> bool:
        """Give one schedule to a device that is free for it; false when there is no such pair."""
        if not any(seat.in_service and seat.has_room for seat in self._seats.values()):
            return False  # without looking through all that wait
        for position, attempt in enumerate(work.waiting):
            wanted = attempt.job.device
            if wanted is not None and self.in_service and self._seats[wanted].is_given_up(self._wanted_patience_s):
                del work.waiting[position]
                self._finish_undone(work, attempt, self._seats[wanted].sentence)
                return True
            seat = self._free_seat(attempt)
            if seat is not None:
                del work.waiting[position]
                self._submit(work, attempt, seat)
                return True
        return False

    def _free_seat(self, attempt: Attempt) -> Seat | None:
        wanted = attempt.job.device
        allowed = [seat for seat in self._seats.values() if seat.in_service and wanted in (None, seat.name)]
        elsewhere = [seat for seat in allowed if seat.name != attempt.avoid] or allowed
        free = [seat for seat in elsewhere if seat.has_room]
        return min(free, key=lambda seat: seat.in_flight, default=None)

    def _submit(self, work: _Work, attempt: Attempt, seat: Seat) -> None:
        attempt.tries += 1
        seat.in_flight += 1
        work.flying += 1
        job = attempt.job
        wanted = (job.executable, job.symbol, work.settings(job), job.reference, job.tolerance)
        future = self._engine.submit_measure(seat.name, tasks.measure, seat.name, *wanted)

        def answered(done: Future[Timing]) -> None:
            self._answers.put(lambda: self._answered(work, attempt, seat, _timing(seat, job.symbol, done)))

        future.add_done_callback(answered)

    def _answered(self, work: _Work, attempt: Attempt, seat: Seat, timing: Timing) -> None:
        seat.in_flight -= 1
        work.flying -= 1
        timing = self._calibrated(attempt.job.argset_index, timing)
        result = timing.result
        if _is_device_failure(result):
            self._device_failed(work, attempt, seat, result)
            return
        seat.held(timing.held_s)
        if seat.is_unhealthy:
            self._listen(DeviceChanged(seat.name, "in service", ""))
        if seat.proved():
            self._report_health(seat.name, None)
        work.finish(attempt.job, result, timing.held_s)

    def _calibrated(self, argset_index: int, timing: Timing) -> Timing:
        """The timing on the run's scale; or the device's trouble, where it does not fit the others."""
        result = timing.result
        if not isinstance(result, Measurement):
            return timing
        try:
            factor = self._calibration.factor(argset_index, timing)
        except DeviceTrouble as trouble:
            return replace(timing, result=device_failure(result.kernel, result.device, trouble, under_way=False))
        return replace(timing, result=replace(result, factor=factor))

    def _device_failed(self, work: _Work, attempt: Attempt, seat: Seat, failure: MeasureFailure) -> None:
        """The schedule is not to blame, as far as is known: it is handed out again."""
        self._failed(seat, failure)
        attempt.avoid = seat.name
        if failure.under_way:
            attempt.lost_on[seat.name] = seat.boot
            work.lost.append(attempt)
        if attempt.tries >= _MOST_TRIES:
            self._finish_undone(work, attempt, failure.sentence)
        elif attempt.is_suspect or (attempt.lost_on and len(self._seats) == 1):
            work.held.append(attempt)
        else:
            work.waiting.appendleft(attempt)

    def _failed(self, seat: Seat, failure: MeasureFailure) -> None:
        self._database.add_incident(failure)
        if failure.trouble is not TroubleKind.DRIFTED and seat.in_service:
            self._out_of_service(seat, DeviceTrouble(failure.trouble or TroubleKind.BROKEN, failure.sentence))

    def _release_held(self, work: _Work) -> None:
        """Decide about schedules whose devices have been heard of since, or have been silent for too long."""
        for attempt in work.lost:
            for name in list(attempt.lost_on):
                seat = self._seats[name]
                if seat.in_service:
                    attempt.verdict(name, seat.boot)
                elif seat.out_s > _VERDICT_AFTER_S:
                    attempt.verdict(name, None)
        work.lost = [attempt for attempt in work.lost if attempt.lost_on]
        for attempt in [a for a in work.held if a.is_killer or not a.lost_on]:
            work.held.remove(attempt)
            if attempt.is_killer:
                self._blacklist(work, attempt)
            else:
                work.waiting.appendleft(attempt)

    def _blacklist(self, work: _Work, attempt: Attempt) -> None:
        sentence = f"The schedule has taken down a device {attempt.kills} times and is not tried again."
        failure = MeasureFailure(
            attempt.job.symbol, attempt.avoid or "", MeasureFailureReason.KILLS_DEVICE, sentence, ""
        )
        work.finish(attempt.job, failure, 0.0)

    def _finish_undone(self, work: _Work, attempt: Attempt, sentence: str) -> None:
        device = attempt.avoid or attempt.job.device or ""
        failure = MeasureFailure(attempt.job.symbol, device, MeasureFailureReason.DEVICE, sentence, "")
        work.finish(attempt.job, failure, 0.0)

    def _out_of_service(self, seat: Seat, trouble: DeviceError) -> None:
        was_unhealthy = seat.is_unhealthy
        if not isinstance(trouble, DeviceTrouble):
            trouble = DeviceTrouble(TroubleKind.BROKEN, trouble.message, next_step=trouble.next_step)
        seat.out_of_service(trouble.kind, str(trouble))
        if seat.is_unhealthy and not was_unhealthy and trouble.kind not in _FAULTLESS:
            self._report_health(seat.name, trouble)
        if not was_unhealthy:
            state = "unhealthy" if seat.is_unhealthy else "out of service"
            self._listen(DeviceChanged(seat.name, state, seat.sentence.removeprefix(f"{seat.name}: ")))

    def _look_again(self) -> None:
        """Start a look at every device whose turn it is; one that has just joined the farm takes its seat."""
        for name in self._engine.arrivals():
            if name not in self._seats:
                self._seats[name] = Seat(name, out_since_s=time.monotonic(), ahead_s=self._ahead_s)
            self._seats[name].next_check_s = 0.0
        for seat in self._seats.values():
            if seat.is_due:
                seat.checking = True
                future = self._engine.submit_measure(seat.name, tasks.open_device, seat.name)
                future.add_done_callback(self._looked(seat))

    def _looked(self, seat: Seat) -> Callable[[Future[Any]], None]:
        def looked(done: Future[Any]) -> None:
            self._answers.put(lambda: self._looked_at(seat, _opened(done)))

        return looked

    def _looked_at(self, seat: Seat, answer: str | DeviceError) -> None:
        seat.checking = False
        if isinstance(answer, DeviceError):
            self._out_of_service(seat, answer)
            return
        restarted = seat.boot not in ("", answer)
        seat.back_in_service(answer)
        if not seat.is_unhealthy:  # its word is not enough: it has failed again and again
            self._listen(DeviceChanged(seat.name, "in service", "It has been restarted." if restarted else ""))


def _timing(seat: Seat, symbol: str, done: Future[_T]) -> _T | Timing:
    """What timing gave; a device whose member of the farm is lost is one that failed, whatever the schedule."""
    try:
        return done.result()
    except DeviceTrouble as trouble:
        return Timing(device_failure(symbol, seat.name, trouble, under_way=False), 0.0)


def _opened(done: Future[str | DeviceError]) -> str | DeviceError:
    try:
        return done.result()
    except DeviceTrouble as trouble:
        return trouble


def _is_device_failure(result: Measurement | MeasureFailure) -> TypeGuard[MeasureFailure]:
    return isinstance(result, MeasureFailure) and result.reason is MeasureFailureReason.DEVICE
