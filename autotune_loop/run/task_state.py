"""What a run knows of one argument set: its reference, its default, its best."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from halide_autotune.autotune_loop.candidate import Measured, TrainingSample, Yardstick
from halide_autotune.autotune_loop.measure.batch_measurer import TaskReference
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.play_off.course import PlayOffResult
from halide_autotune.autotune_loop.play_off.incumbent import Incumbent
from halide_autotune.autotune_loop.play_off.reserve import PLAY_OFF_CONTENDERS
from halide_autotune.autotune_loop.play_off.run_play_off import PlayOffEntries
from halide_autotune.autotune_loop.play_off.verdict import Verdict, VerdictReason
from halide_autotune.autotune_loop.run.result import TunedSchedule
from halide_autotune.autotune_loop.run.task_scheduler import TaskHistory
from halide_autotune.autotune_loop.run.timed import Timed, fastest_at_sizes
from halide_autotune.autotune_loop.run_scale import DEVIATIONS, RunScale, process_error
from halide_autotune.autotune_loop.specification.tuning_task import PARAMETERS_SUFFIX, TuningTask
from halide_autotune.autotune_loop.store.published import (
    DEFAULT,
    DEFAULT_PARAMETERS,
    NOTHING,
    OWN,
    NoDefault,
    Published,
    ScheduleTime,
    SpeedUp,
)
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.build.executable import KernelObject
from halide_autotune.weights.network import Network

# The one stage of a batch that is about the batches before it.
LEARN_STAGE = "learn"
_NOT_YET = "Unconfirmed: the run has not held its play-off."
_NOT_HELD = "Unconfirmed: no play-off was held."


@dataclass
class TaskState:
    """Grows with every measurement.

    Attributes:
        reference: what outputs are compared with, and what samples are grouped by.
        timed: every timed candidate, fastest first; one that was timed once behind those that were proven.
        incumbent: what is to be beaten; None where none was given.
        unlike_devices: a schedule's time on one device says little of another; each sends its best into the play-off.
        history: what each of its batches has brought.
        autoscheduler: which one searches.
        failures: schedules that failed before the first was timed; None once one is.
        yardsticks: what candidates are timed beside: the current one last, the one before it, which a batch that is
            being built may have, first; empty if each is timed alone.
        no_default: why the default cannot be timed; None if it is timed, or may still be.
        confirmed: what a play-off of an earlier process has decided, which stays until another one decides; None
            without one.
    """

    task_index: int
    task: TuningTask
    reference: TaskReference
    timed: list[Timed] = field(default_factory=list)
    incumbent: Incumbent | None = None
    unlike_devices: bool = False
    history: TaskHistory = field(default_factory=TaskHistory)
    autoscheduler: str = Network.ADAMS2019.value
    failures: int | None = 0
    yardsticks: tuple[Yardstick, ...] = ()
    no_default: NoDefault | None = None
    confirmed: Published | None = None

    def __post_init__(self) -> None:
        self.history.calls = self.task.calls

    @property
    def yardstick(self) -> Yardstick | None:
        """What the candidates of the next batch are timed beside."""
        return self.yardsticks[-1] if self.yardsticks else None

    @property
    def scale(self) -> RunScale | None:
        """The run's scale; None if candidates are timed alone."""
        return self.yardsticks[0].scale if self.yardsticks else None

    def shown_ms(self, time_ms: float) -> float:
        """A time on the run's scale as users see it: corrected by what is known of the reference now."""
        return time_ms if self.scale is None else time_ms * self.scale.correction

    def shown_range_ms(self, timed: Timed) -> tuple[float, float] | None:
        """Between which times it will be found at another moment, with 95 % confidence; None without a yardstick."""
        if self.scale is None or self.yardstick is None:
            return None
        log_error = math.hypot(timed.log_error, self.yardstick.log_error)
        return self.scale.range_ms(self.shown_ms(timed.median_ms), log_error)

    @property
    def best_ms(self) -> float:
        """The best time so far; infinite before the first."""
        return self.timed[0].median_ms if self.timed else math.inf

    @property
    def default(self) -> Timed | None:
        """The schedule that a user gets without tuning, once it is timed."""
        return next((timed for timed in self.timed if timed.is_default), None)

    @property
    def default_time(self) -> ScheduleTime | None:
        """The default's time as users see it, once it is timed."""
        return None if self.default is None else self.shown(self.default)

    @property
    def has_baseline(self) -> bool:
        """Whether the default is timed, or cannot be: then a schedule may be published."""
        return self.default is not None or self.no_default is not None

    def add(self, measured: Measured) -> bool:
        """Record a candidate's time; true when it is the best so far."""
        candidate = measured.candidate
        return self.add_timed(
            Timed(
                candidate.symbol,
                candidate.sample,
                candidate.point.origin.value,
                measured.median_ms,
                measured.spread_ms,
                candidate.is_default,
                measured.device,
                measured.processes,
                measured.log_error,
                candidate.parameters,
                measured.by_size_ms,
                measured.is_timed_anew,
            )
        )

    def training_sample(self, store: RunStore, measured: Measured) -> TrainingSample:
        """What the cost model learns from a candidate with features."""
        return store.training_sample(measured, self.reference.pipeline_of(measured.candidate))

    def add_timed(self, timed: Timed) -> bool:
        """Record a time; true when it is the best so far."""
        best = not self.timed or timed.cautious_ms < self.timed[0].cautious_ms
        # Another list: the thread that builds reads it, and a list that is being sorted is empty.
        self.timed = sorted([*self.timed, timed], key=lambda t: t.cautious_ms)
        return best

    def add_batch(self, stages_s: Mapping[str, float]) -> None:
        """Record a batch that has ended, with its stages' times; learning concerns the batches before it."""
        self.history.add(self.best_ms, sum(seconds for stage, seconds in stages_s.items() if stage != LEARN_STAGE))

    def use_yardstick(self, yardstick: Yardstick) -> None:
        """Time candidates beside this schedule from now on."""
        self.yardsticks = (*self.yardsticks[-1:], yardstick)

    def advance_yardstick(self, store: RunStore) -> None:
        """Make the best schedule the yardstick if it is much faster, also when it was timed once more."""
        best, present = self.timed[0] if self.timed else None, self.yardstick
        if best is None or present is None or not (best.is_timed_anew and present.is_outdone_by(best.median_ms)):
            return
        kernel = KernelObject(best.symbol, store.object_path(best.symbol))
        if not kernel.object_path.is_file():
            return
        relative = best.median_ms / present.scale.anchor_ms
        log_error = math.hypot(present.log_error, process_error(best.processes))
        self.use_yardstick(Yardstick(kernel, present.scale, relative, log_error))
        store.database.add_yardstick(self.task_index, self.yardsticks[-1])

    def publish_best(self, store: RunStore, clock: str) -> Path | None:
        """Publish the best so far whose schedule file exists; nothing if there is none.

        Nothing is published before the default is timed, or cannot be: a header says how much is gained over it. What
        a play-off has confirmed stays.
        """
        if self.confirmed is not None:
            return store.published_path(self.task_index)
        return self._publish_unconfirmed(store, clock, _NOT_YET)[0]

    def _no_default(self, time: ScheduleTime | None) -> NoDefault | None:
        """Why the default has no time where it is published without one."""
        if time is not None:
            return None
        if self.default is not None:
            return self.no_default or NoDefault("it was not timed to the end of the play-off")
        return self.no_default or NoDefault("the run ended before it was timed")

    def _best(self) -> list[Timed]:
        """The best first; of unlike devices each one's best, then each one's second, and so on."""
        if not self.unlike_devices:
            return self.timed
        place: Counter[str] = Counter()
        ranked = []
        for timed in self.timed:
            ranked.append((place[timed.device], timed))
            place[timed.device] += 1
        return [timed for _, timed in sorted(ranked, key=lambda item: item[0])]

    def kept(self, count: int) -> list[Timed]:
        """Those whose objects are kept: the best, the default, and what an earlier play-off has confirmed."""
        kept = self._best()[: count - 1]
        # Asked for all the time while schedules are timed: few are compared with those above.
        return [*kept, *(one for one in self.timed if (one.is_default or self._is_confirmed(one)) and one not in kept)]

    @property
    def contenders(self) -> int:
        """How many a play-off would have now, the default among them, without an incumbent; as many as there may be
        before anything was timed."""
        if not self.timed:
            return PLAY_OFF_CONTENDERS
        return len(self._contenders(PLAY_OFF_CONTENDERS))

    def _contenders(self, count: int) -> list[Timed]:
        """The default, those that may be the best, and one to compare the default with in any case."""
        kept = self.kept(count)
        challenger = next((timed for timed in kept if not timed.is_default), None)
        return [
            timed
            for timed in kept
            if timed.is_default or timed is challenger or self._may_be_best(timed) or self._is_confirmed(timed)
        ]

    def _is_confirmed(self, timed: Timed) -> bool:
        return self.confirmed is not None and timed.symbol == self.confirmed.symbol

    def leave_out(self, failed: Collection[str]) -> None:
        """Leave out what has failed in a play-off, or cannot take part in one."""
        self.timed = [timed for timed in self.timed if timed.is_default or timed.symbol not in failed]

    def has_challengers(self, without: Collection[str] = ()) -> bool:
        """Whether a play-off can be held without these."""
        return any(not timed.is_default and timed.symbol not in without for timed in self.timed)

    def _may_be_best(self, timed: Timed) -> bool:
        """Whether it cannot be told from the best; of those without an error nobody knows."""
        best = self.timed[0]
        error = math.hypot(timed.log_error, best.log_error)
        if not error or timed.device != best.device:
            return True
        return math.log(timed.median_ms / best.median_ms) <= DEVIATIONS * error

    def prune(self, store: RunStore, count: int) -> None:
        """Delete the objects of all but the best, also at single sizes, and the default."""
        kept = {timed.symbol for timed in self.kept(count)} | {one.kernel.name for one in self.yardsticks}
        kept |= fastest_at_sizes(self.timed, count // 2)
        for timed in self.timed:
            if timed.symbol not in kept:
                shutil.rmtree(store.objects / timed.symbol, ignore_errors=True)

    def entries(self, store: RunStore, count: int) -> PlayOffEntries | None:
        """The default, those that may be the best and the incumbent whose objects exist; None if none does.

        What is in use does not challenge itself: as a candidate it is the same code.
        """
        kept = [timed for timed in self._contenders(count) if not (timed.is_in_use and self.incumbent is not None)]
        labels = {timed.symbol: "the default" if timed.is_default else timed.sample for timed in kept}
        if self.incumbent is not None:
            labels[self.incumbent.symbol] = self.incumbent.label
        kernels = store.kernels(labels)
        labels = {kernel.name: labels[kernel.name] for kernel in kernels}
        if not kernels:
            return None
        default = self.default.symbol if self.default is not None and self.default.symbol in labels else None
        incumbent = self.incumbent.symbol if self.incumbent is not None and self.incumbent.symbol in labels else None
        own = incumbent if self.incumbent is not None and self.incumbent.name == OWN else None
        return PlayOffEntries(kernels, labels, baseline=incumbent or default, also_timed=default, own=own)

    def decide(self, store: RunStore, result: PlayOffResult, clock: str) -> TunedSchedule:
        """Publish what the play-off says is to ship."""
        verdict = result.verdict
        if not verdict.is_decided:
            return self.unconfirmed(store, clock, verdict)
        published = self._decided(result)
        store.database.add_verdict(self.task_index, verdict.to_dict())
        if self.incumbent is not None and published.symbol == self.incumbent.symbol:
            header = self._publish_incumbent(store, self.incumbent, published, clock)
        else:
            folder = store.samples / next(timed.sample for timed in self.timed if timed.symbol == verdict.winner)
            path = store.result_path(folder)
            header = store.publish(self.task_index, path, published, clock)
        return self._tuned(header, published, verdict)

    def _publish_incumbent(
        self, store: RunStore, incumbent: Incumbent, published: Published, clock: str
    ) -> Path | None:
        """Its header; None for one that has none, which leaves nothing to ship."""
        if incumbent.folder is None:
            store.withdraw(self.task_index, published)
            return None
        return store.publish(self.task_index, store.schedule_path(incumbent.folder), published, clock)

    def _decided(self, result: PlayOffResult) -> Published:
        """The winner with its figures from the turns that count."""
        verdict = result.verdict
        won = result.times[verdict.winner]
        timed = next((timed for timed in self.timed if timed.symbol == verdict.winner), None)
        default = {} if self.default is None else result.times.get(self.default.symbol, {})
        lead, first = next(iter(won.items()))
        tuned_time, default_time = first.schedule_time, default[lead].schedule_time if lead in default else None
        incumbent = self.incumbent
        than = self._than if incumbent is None or verdict.baseline != incumbent.symbol else incumbent.name
        own = {} if incumbent is None or incumbent.name != OWN else result.times.get(incumbent.symbol, {})
        return Published(
            sample=self._name_of(verdict.winner),
            symbol=verdict.winner,
            confirmed=True,
            reason=verdict.reason.value,
            message=verdict.message,
            tuned=tuned_time,
            default=default_time,
            no_default=self._no_default(default_time),
            speed_up=verdict.speed_up(than) or self._ratio(default_time, tuned_time),
            by_device={
                device: (default[device].median_ms if device in default else None, times.median_ms)
                for device, times in won.items()
            },
            parameters={} if timed is None else timed.parameters,
            own=own[lead].schedule_time if lead in own else None,
        )

    def _name_of(self, symbol: str) -> str:
        if self.incumbent is not None and symbol == self.incumbent.symbol:
            return self.incumbent.name
        return next(timed.name for timed in self.timed if timed.symbol == symbol)

    def unconfirmed(self, store: RunStore, clock: str, verdict: Verdict | None = None) -> TunedSchedule:
        """Publish the best so far, as unconfirmed; an incumbent stays, because no play-off was won against it.

        What a play-off of an earlier process has confirmed stays as it is.
        """
        if self.confirmed is not None:
            return self._tuned(store.published_path(self.task_index), self.confirmed, None)
        message = _NOT_HELD if verdict is None else verdict.message
        if self.incumbent is not None:
            published = Published(
                sample=self.incumbent.name,
                symbol=self.incumbent.symbol,
                confirmed=False,
                reason=VerdictReason.UNCONFIRMED.value,
                message=message,
                default=self.default_time,
                no_default=self._no_default(self.default_time),
            )
            header = self._publish_incumbent(store, self.incumbent, published, clock)
        else:
            header, published = self._publish_unconfirmed(store, clock, message)
        if verdict is not None:
            # Nothing was decided, so the winner is whatever is published.
            verdict = replace(verdict, winner=published.symbol)
            store.database.add_verdict(self.task_index, verdict.to_dict())
        return self._tuned(header, published, verdict)

    def _publish_unconfirmed(self, store: RunStore, clock: str, message: str) -> tuple[Path | None, Published]:
        for timed in self.timed if self.has_baseline else ():
            schedule = store.result_path(store.samples / timed.sample)
            if not schedule.is_file():
                continue
            tuned, default = self.shown(timed), self.default_time
            published = Published(
                sample=timed.name,
                symbol=timed.symbol,
                confirmed=False,
                reason=VerdictReason.UNCONFIRMED.value,
                message=message,
                tuned=tuned,
                default=default,
                no_default=self._no_default(default),
                speed_up=self._ratio(default, tuned),
                parameters=timed.parameters,
            )
            return store.publish(self.task_index, schedule, published, clock), published
        default = self.default_time
        return None, replace(NOTHING, default=default, no_default=self._no_default(default))

    def shown(self, timed: Timed) -> ScheduleTime:
        """A schedule's time as users see it."""
        median_ms = self.shown_ms(timed.median_ms)
        return ScheduleTime(
            median_ms=median_ms,
            spread_ms=self.shown_ms(timed.spread_ms),
            processes=timed.processes,
            expected_ms=self.shown_range_ms(timed),
            by_size_ms=timed.by_size_around(median_ms),
        )

    def _tuned(self, path: Path | None, published: Published, verdict: Verdict | None) -> TunedSchedule:
        description = "none could be timed"
        if self.task.space is not None:
            description = f"{self.autoscheduler}, {set_text(self.task.space.defaults)}"
        elif self.default is not None:
            description = f"{self.autoscheduler}, {self.default.origin}, Halide's own weights"
        is_own = path is not None and path.suffix == ".toml"
        parameters_file = path
        if path is not None and not is_own:
            parameters_file = path.with_name(path.name.removesuffix("schedule.h") + PARAMETERS_SUFFIX)
        return TunedSchedule(
            parameters=dict(self.task.parameters),
            generator=self.task.generator_name,
            default_description=description,
            header=None if is_own else path,
            published=published,
            verdict=verdict,
            parameters_file=parameters_file if published.parameters else None,
        )

    @property
    def _than(self) -> str:
        """What a gain is over, if it is not the incumbent."""
        return DEFAULT if self.task.space is None else DEFAULT_PARAMETERS

    def _ratio(self, default: ScheduleTime | None, tuned: ScheduleTime | None) -> SpeedUp | None:
        """Of two times that were not taken in paired turns."""
        return None if default is None or tuned is None else SpeedUp(default.median_ms / tuned.median_ms, self._than)
