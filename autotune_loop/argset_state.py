"""What a run knows of one argument set: its reference, its default, its best."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune_loop.batch_measurer import ArgsetReference
from autotune_loop.candidate import Candidate, Origin
from autotune_loop.play_off import PlayOffTime
from autotune_loop.result import TunedSchedule
from autotune_loop.run_store import RunStore
from targets.executable import KernelObject


@dataclass(frozen=True)
class Timed:
    """A candidate with its time as a sample."""

    symbol: str
    folder: Path
    origin: str
    median_ms: float
    spread_ms: float
    is_default: bool

    @property
    def sample(self) -> str:
        """As the layout names it: batch_<round>_<argset>/<sample>."""
        return f"{self.folder.parent.name}/{self.folder.name}"


@dataclass
class ArgsetState:
    """Grows with every measurement.

    Attributes:
        reference: what outputs are compared with, and what samples are grouped by.
        timed: every timed candidate, fastest first.
        full_search_s: how long the last full beam search took.
        exhausted: the search finds nothing new.
    """

    argset_index: int
    argset: Mapping[str, str]
    function_name: str
    reference: ArgsetReference
    timed: list[Timed] = field(default_factory=list)
    full_search_s: float | None = None
    exhausted: bool = False

    @property
    def default(self) -> Timed | None:
        """The schedule that a user gets without tuning, once it is timed."""
        return next((timed for timed in self.timed if timed.is_default), None)

    @property
    def default_ms(self) -> float | None:
        """The default schedule's time as a sample."""
        return None if self.default is None else self.default.median_ms

    def add(self, candidate: Candidate, median_ms: float, spread_ms: float) -> bool:
        """Record a time; true when it is the best so far."""
        is_default = candidate.round_index == 0 and candidate.point.origin is not Origin.RANDOM
        origin = candidate.point.origin.value
        return self.add_timed(Timed(candidate.symbol, candidate.folder, origin, median_ms, spread_ms, is_default))

    def add_timed(self, timed: Timed) -> bool:
        """Record a time; true when it is the best so far."""
        best = not self.timed or timed.median_ms < self.timed[0].median_ms
        self.timed.append(timed)
        self.timed.sort(key=lambda t: t.median_ms)
        return best

    def publish_best(self, store: RunStore, clock: str) -> None:
        """Write the header of the best so far whose schedule is there, with its time; nothing before the first."""
        for timed in self.timed:
            schedule = store.schedule_path(timed.folder)
            if schedule.is_file():
                benchmark = f"{timed.median_ms:.6g} ms ({clock} time, median) for {timed.sample}\n"
                store.write_best(self.argset_index, schedule, benchmark)
                return

    def _kept(self, count: int) -> list[Timed]:
        kept = self.timed[: count - 1]
        if self.default is not None and self.default not in kept:
            kept = [*kept, self.default]
        return kept

    def prune(self, store: RunStore, count: int) -> None:
        """Delete the objects of all but the best and the default."""
        kept = {timed.symbol for timed in self._kept(count)}
        for timed in self.timed:
            if timed.symbol not in kept:
                shutil.rmtree(store.objects / timed.symbol, ignore_errors=True)

    def contenders(self, store: RunStore, count: int) -> list[KernelObject]:
        """The default and the best others, those whose objects are still there."""
        found = [KernelObject(t.symbol, store.object_path(t.symbol)) for t in self._kept(count)]
        return [contender for contender in found if contender.object_path.is_file()]

    def last_failure(self, store: RunStore) -> str:
        """The sentence of the newest failure."""
        return store.database.last_failure(self.argset_index)

    def decide(self, store: RunStore, times: Sequence[PlayOffTime], clock: str) -> TunedSchedule:
        """Publish the play-off's winner; the default stays when nothing beat it."""
        if not times:
            return self.unconfirmed(store)
        by_symbol = {timed.symbol: timed for timed in self.timed}
        winner = times[0]
        default = self.default
        default_time = next((t for t in times if default is not None and t.symbol == default.symbol), None)
        timed = by_symbol[winner.symbol]
        benchmark = f"{winner.median_ms:.6g} ms ({clock} time, play-off median) for {timed.sample}\n"
        header = store.write_best(self.argset_index, store.schedule_path(timed.folder), benchmark)
        return TunedSchedule(
            argset=dict(self.argset),
            header=header,
            sample="default" if default_time is winner else timed.sample,
            default_description=self._default_description(),
            default_ms=None if default_time is None else default_time.median_ms,
            tuned_ms=winner.median_ms,
            default_spread_ms=None if default_time is None else default_time.spread_ms,
            tuned_spread_ms=winner.spread_ms,
            confirmed=True,
            by_device={
                device: (None if default_time is None else default_time.by_device[device], tuned_ms)
                for device, tuned_ms in winner.by_device.items()
            },
        )

    def unconfirmed(self, store: RunStore) -> TunedSchedule:
        """The best so far as it was timed once."""
        best = self.timed[0] if self.timed else None
        default = self.default
        return TunedSchedule(
            argset=dict(self.argset),
            header=None if best is None else store.best_schedule(self.argset_index),
            sample="" if best is None else "default" if best.is_default else best.sample,
            default_description=self._default_description(),
            default_ms=self.default_ms,
            tuned_ms=None if best is None else best.median_ms,
            default_spread_ms=None if default is None else default.spread_ms,
            tuned_spread_ms=None if best is None else best.spread_ms,
            confirmed=False,
        )

    def _default_description(self) -> str:
        if self.default is None:
            return "none could be timed"
        return f"Adams2019, {self.default.origin}, weights the run started from"
