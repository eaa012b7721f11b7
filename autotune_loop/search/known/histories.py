"""The histories that a run starts from and adds to: the user's own, and that of the farm it runs on."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, zip_longest
from pathlib import Path
from typing import Protocol

from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.farm.use import FarmUse
from halide_autotune.autotune_loop.history.exchange import Nests
from halide_autotune.autotune_loop.history.farm_history import FarmHistory
from halide_autotune.autotune_loop.history.history import History, NestLimits
from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule
from halide_autotune.autotune_loop.history.pipeline_identity import PipelineIdentity
from halide_autotune.targets.errors import HistoryError


class HistorySource(Protocol):
    """A history, wherever it is kept; see `History` for what each method promises."""

    def add(self, schedules: Iterable[KnownSchedule], nests: Nests = ...) -> int:
        """Add schedules, with their loop nests."""

    def best(self, pipeline: PipelineIdentity, place: tuple[str, str, str], count: int) -> list[KnownSchedule]:
        """The fastest of a pipeline, the most promising first."""

    def nests(self, halide_target: str, threads: str, limits: NestLimits) -> list[list[tuple[bytes, float]]]:
        """Loop nests with their times, by pipeline."""


def histories_of(own: Path | None, farm: FarmUse | None) -> tuple[HistorySource, ...]:
    """The histories of a run.

    Args:
        own: the file of the user's; None asks and tells nobody.
        farm: that the run is on; None where it is on none.
    """
    if own is None:
        return ()
    return (History(own),) if farm is None else (History(own), FarmHistory(farm.address))


def best_of(
    histories: Iterable[HistorySource],
    pipeline: PipelineIdentity,
    place: tuple[str, str, str],
    count: int,
    listen: Listener,
) -> tuple[KnownSchedule, ...]:
    """Up to `count` of what all know of a pipeline, in turns; one that cannot be asked is told, and left out."""
    found = []
    for history in histories:
        try:
            found.append(history.best(pipeline, place, count))
        except HistoryError as error:
            _left_out(error, listen)
    distinct = {one.sha256: one for one in reversed([*filter(None, chain.from_iterable(zip_longest(*found)))])}
    return tuple(reversed(distinct.values()))[:count]


def nests_of(
    histories: Iterable[HistorySource], halide_target: str, threads: str, limits: NestLimits, listen: Listener
) -> list[list[tuple[bytes, float]]]:
    """The loop nests that all of them know, the first's before the next's; as `best_of` otherwise."""
    found: list[list[tuple[bytes, float]]] = []
    for history in histories:
        try:
            found += history.nests(halide_target, threads, limits)
        except HistoryError as error:
            _left_out(error, listen)
    # A farm's has what the user's own has of it, too.
    distinct = {frozenset(nest for nest, _ in group): group for group in reversed(found)}
    return [*reversed(distinct.values())][: limits.most_pipelines]


def _left_out(error: HistoryError, listen: Listener) -> None:
    listen(Notice(f"{error} This run goes on without it.", warning=True))
