"""The devices of a run: hands schedules out, takes results back, and loses none to a device's trouble."""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeGuard

from distributed import Future

from autotune_loop import tasks
from autotune_loop.attempt import KILLS_ALLOWED, Attempt, MeasureJob
from autotune_loop.calibration import Calibration
from autotune_loop.engine import Engine
from autotune_loop.events import DeviceChanged, Listener
from autotune_loop.run_database import RunDatabase
from autotune_loop.seat import Seat
from autotune_loop.timing import ReferenceRun, Timing
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.measure_settings import MeasureSettings
from devices.measurement import MeasureFailure, MeasureFailureReason, Measurement
from targets.errors import DeviceError
from targets.executable import Executable

# One schedule runs, one waits: the device is never idle, and the give-up time stays fresh.
_WINDOW = 2
_POLL_S = 0.2
# However unlucky a schedule is, it ends.
_MOST_TRIES = 12
_LOST_AGAIN = (TroubleKind.LOST, TroubleKind.SILENT, TroubleKind.GARBLED)
_MAY_PASS = (*_LOST_AGAIN, TroubleKind.UNREACHABLE, TroubleKind.DRIFTED)
# A device that was lost with a schedule and is not back after so long is taken for killed by it.
_VERDICT_AFTER_S = 120.0

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
    """

    settings: SettingsNow
    finish: Finish
    waiting: deque[Attempt]
    held: list[Attempt] = field(default_factory=list)
    flying: int = 0


class Crew:
    """Belongs to one thread.

    Args:
        patience_s: how long the run waits when no device is left.

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
    ) -> None:
        self._engine = engine
        self._seats = {name: Seat(name) for name in device_names}
        self._database = database
        self._calibration = Calibration(database)
        self._listen = listen
        self._patience_s = patience_s
        self._report_health = report_health
        self._answers: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.is_lost = False

    @property
    def in_service(self) -> list[str]:
        """Names of the devices that take schedules now."""
        return [seat.name for seat in self._seats.values() if seat.in_service]

    def open(self, stopped: Callable[[], bool]) -> None:
        """Connect to every device at once and take the leases.

        Where none can be used, those that were reached and lost again are waited for, unless `stopped` says so.

        Raises:
            DeviceError: none of them can be used; the first one's trouble is told.
        """
        futures = {name: self._engine.submit_measure(name, tasks.open_device, name) for name in self._seats}
        troubles = []
        for name, future in futures.items():
            answer = future.result()
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
            timing: Timing | None = self._engine.submit_measure(
                seat.name, tasks.prepare_reference, seat.name, run, settings
            ).result()
            if timing is None or not _is_device_failure(timing.result):
                if timing is not None:
                    self._calibration.factor(argset_index, timing)
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
            if stopped() or self._patience_is_over():
                return False
            self._look_again()
            with contextlib.suppress(queue.Empty):
                self._answers.get(timeout=_POLL_S)()
        return True

    def sense(self, moment: str) -> None:
        """Write down what the devices' sensors say, 'before' or 'after' a batch."""
        futures = {name: self._engine.submit_measure(name, tasks.sense, name) for name in self.in_service}
        for name, future in futures.items():
            state = future.result()
            if state is not None:
                self._database.add_device_state(name, moment, asdict(state))

    def forget(self, executable: Executable) -> None:
        """Delete an executable from the devices."""
        futures = [self._engine.submit_measure(name, tasks.forget, name, executable) for name in self.in_service]
        for future in futures:
            future.result()

    def run(self, jobs: Iterable[MeasureJob], settings: SettingsNow, finish: Finish, enough: Callable[[], bool]) -> int:
        """Time every job; `finish` is called once for each, in this thread, when its result is final.

        A job that failed because of a device is handed out again: elsewhere if there is another device, and only once
        more if it took one down. Ends early, what is under way finished, when `enough` says so or no device is left.

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
            try:
                self._answers.get(timeout=_POLL_S)()
            except queue.Empty:
                continue

    def _is_over(self, work: _Work) -> bool:
        if not work.waiting and not work.held:
            return True
        return self._patience_is_over()

    def _patience_is_over(self) -> bool:
        self.is_lost = all(seat.is_given_up(self._patience_s) for seat in self._seats.values())
        return self.is_lost

    def _hand_out(self, work: _Work) -> bool:
        """Give one schedule to a device that is free for it; false when there is no such pair."""
        for position, attempt in enumerate(work.waiting):
            wanted = attempt.job.device
            if wanted is not None and self.in_service and not self._seats[wanted].in_service:
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
        free = [seat for seat in elsewhere if seat.in_flight < _WINDOW]
        return min(free, key=lambda seat: seat.in_flight, default=None)

    def _submit(self, work: _Work, attempt: Attempt, seat: Seat) -> None:
        attempt.tries += 1
        seat.in_flight += 1
        work.flying += 1
        job = attempt.job
        wanted = (job.executable, job.symbol, work.settings(job), job.reference, job.tolerance)
        future = self._engine.submit_measure(seat.name, tasks.measure, seat.name, *wanted)

        def answered(done: Future[Timing]) -> None:
            self._answers.put(lambda: self._answered(work, attempt, seat, done.result()))

        future.add_done_callback(answered)

    def _answered(self, work: _Work, attempt: Attempt, seat: Seat, timing: Timing) -> None:
        seat.in_flight -= 1
        work.flying -= 1
        result = timing.result
        if _is_device_failure(result):
            self._device_failed(work, attempt, seat, result)
            return
        if seat.is_unhealthy:
            self._listen(DeviceChanged(seat.name, "in service", ""))
        if seat.proved():
            self._report_health(seat.name, None)
        if isinstance(result, Measurement):
            result = replace(result, factor=self._calibration.factor(attempt.job.argset_index, timing))
        work.finish(attempt.job, result, timing.held_s)

    def _device_failed(self, work: _Work, attempt: Attempt, seat: Seat, failure: MeasureFailure) -> None:
        """The schedule is not to blame, as far as is known: it is handed out again."""
        self._failed(seat, failure)
        attempt.avoid = seat.name
        if failure.under_way:
            attempt.lost_on[seat.name] = seat.boot
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
        for attempt in [*work.held, *work.waiting]:
            for name in list(attempt.lost_on):
                seat = self._seats[name]
                if seat.in_service:
                    attempt.verdict(name, seat.boot)
                elif seat.out_s > _VERDICT_AFTER_S:
                    attempt.verdict(name, None)
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
        # Somebody else's lease is no fault of the device.
        if seat.is_unhealthy and not was_unhealthy and trouble.kind is not TroubleKind.LEASED:
            self._report_health(seat.name, trouble)
        if not was_unhealthy:
            state = "unhealthy" if seat.is_unhealthy else "out of service"
            self._listen(DeviceChanged(seat.name, state, seat.sentence.removeprefix(f"{seat.name}: ")))

    def _look_again(self) -> None:
        """Start a look at every device whose turn it is."""
        for seat in self._seats.values():
            if seat.is_due:
                seat.checking = True
                future = self._engine.submit_measure(seat.name, tasks.open_device, seat.name)
                future.add_done_callback(self._looked(seat))

    def _looked(self, seat: Seat) -> Callable[[Future[Any]], None]:
        def looked(done: Future[Any]) -> None:
            self._answers.put(lambda: self._looked_at(seat, done.result()))

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


def _is_device_failure(result: Measurement | MeasureFailure) -> TypeGuard[MeasureFailure]:
    return isinstance(result, MeasureFailure) and result.reason is MeasureFailureReason.DEVICE
