"""Where the time of the fastest schedule goes, by Halide's profiler now and then: moves prefer those Funcs."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Link
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import TimeFuncs
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import BuildSchedule
from halide_autotune.autotune_loop.search.known.run_populations import TimedSchedule
from halide_autotune.autotune_loop.search.schedule_proposals import ScheduleProposals
from halide_autotune.autotune_loop.search.waiting import result_unless
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.func_times import PROFILE_FEATURE
from halide_autotune.devices.timing.measure_settings import MeasureSettings, Tolerance
from halide_autotune.targets.build.executable import KernelObject
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.generator.run import GeneratorFailure

R = TypeVar("R")

# The fastest is looked at again once it is faster by so much: its time goes elsewhere then.
_NEWS = 0.95
# Looking takes at most this share of the time since it could first be done.
_SHARE = 0.04
# While the first batch is timed, the fastest is mostly the reference, and is soon left behind.
_FEW_TIMED = 4
_WITHOUT_MOVES = {TechniqueName.SAMPLING, TechniqueName.SKETCHES}


@dataclass
class BusyFuncs:
    """Looks into the fastest schedules of a run: called in one thread.

    Attributes:
        is_over: whether there is no time for it any more.
    """

    executor: Executor
    store: RunStore
    context: RunContext
    proposals: ScheduleProposals
    is_over: Callable[[], bool]
    _began_s: float | None = field(default=None, init=False)
    _spent_s: float = field(default=0.0, init=False)

    @contextlib.contextmanager
    def looking(self, task_index: int, timed: Sequence[TimedSchedule], device: str | None) -> Iterator[None]:
        """Meanwhile record what each Func of the fastest schedule takes, if that is not known and worth its time.

        What is done meanwhile does not wait for it; the next batch's moves know it.

        Args:
            timed: the task's schedules so far.
            device: one that can be asked; None for none, as one whose clock the profiler does not know.
        """
        fastest = self._worth_looking(task_index, timed)
        if fastest is None or device is None:
            yield
            return
        with ThreadPoolExecutor(1, "busy-funcs") as beside:
            look = beside.submit(self._look, task_index, fastest, device)
            yield
            look.result()

    def _worth_looking(self, task_index: int, timed: Sequence[TimedSchedule]) -> TimedSchedule | None:
        if len(timed) < _FEW_TIMED or {*self.proposals.techniques(task_index)} <= _WITHOUT_MOVES:
            return None
        now_s = time.monotonic()
        self._began_s = now_s if self._began_s is None else self._began_s
        fastest = min(timed, key=lambda one: one.time_ms)
        is_dear = self._spent_s > _SHARE * (now_s - self._began_s)
        return None if is_dear or self._is_known(fastest, timed) else fastest

    def _look(self, task_index: int, fastest: TimedSchedule, device: str) -> None:
        began_s = time.monotonic()
        shares = self._shares(task_index, fastest, device)
        if shares or not self.is_over():
            # None, too: a schedule that cannot be looked at is not tried again.
            self.store.database.add_func_shares(fastest.symbol, shares)
        self._spent_s += time.monotonic() - began_s

    def _is_known(self, fastest: TimedSchedule, timed: Sequence[TimedSchedule]) -> bool:
        known = self.store.database.func_shares()
        seen_ms = [one.time_ms for one in timed if one.symbol in known]
        return bool(seen_ms) and fastest.time_ms > _NEWS * min(seen_ms)

    def _shares(self, task_index: int, schedule: TimedSchedule, device: str) -> dict[str, float]:
        """The share of each Func, by its name in Halide; none where the schedule cannot be built or asked."""
        folder = self.context.workspace.work_folder / "profiled" / str(task_index)
        try:
            text = self.proposals.schedule_json(schedule.sample)
            limit_s = self.context.limits.search_s
            build = BuildSchedule(folder, task_index, schedule.symbol, text, limit_s, (PROFILE_FEATURE,))
            built = self._result(self.executor.submit(build))
            if built is None or isinstance(built, GeneratorFailure):
                return {}
            kernels = (KernelObject(schedule.symbol, built.object_path),)
            executable = self._result(self.executor.submit(Link(folder, f"profiled_{task_index}", kernels)))
            if executable is None:
                return {}
            ask = TimeFuncs(device, executable, schedule.symbol, MeasureSettings(), Tolerance())
            times = self._result(self.executor.submit(ask))
            return {} if times is None else {func.name: func.time_s / times.call_s for func in times.funcs}
        except SdkError:
            return {}  # the device is lost, or the schedule cannot be read: the run goes on with estimates
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _result(self, future: Future[R]) -> R | None:
        return result_unless(future, self.is_over)


def can_be_asked(clock: Clock, context: RunContext) -> bool:
    """Whether the profiler knows a run's clock, and sees what computes."""
    return clock is Clock.WALL and context.profile.machine.gpu is None
