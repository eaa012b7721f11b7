"""What earlier runs found for a run's pipelines, as the run's folder keeps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule, conditions_text, place_of
from halide_autotune.autotune_loop.history.pipeline_identity import PipelineIdentity, identity_of, size_text
from halide_autotune.autotune_loop.search.known.histories import HistorySource, best_of
from halide_autotune.autotune_loop.store.run_record import RunRecord
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.errors import RunFolderError, os_error_as
from halide_autotune.targets.pipeline.shape import PipelineShape
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.checks import one_line
from halide_autotune.targets.values.records import Source, plain, record

_FILE, _VERSION = "history.json", 1
_LARGEST_FILE_BYTES = 2**26
# More than are tried: some are the same once they are drafted.
_MOST = 8


@dataclass(frozen=True)
class KnownPipeline:
    """The pipeline of an argument set.

    Attributes:
        identity, conditions: as the run times it.
        schedules: what earlier runs found for it, the most promising first.
    """

    task_index: int
    identity: PipelineIdentity
    conditions: Annotated[str, one_line]
    schedules: tuple[KnownSchedule, ...] = ()


@dataclass(frozen=True)
class _Kept:
    """The file in a run's folder."""

    version: int
    pipelines: tuple[KnownPipeline, ...] = ()


def known_pipelines(folder: Path) -> dict[int, KnownPipeline]:
    """What a run knew of its pipelines when it began, by argument set; empty where none was described.

    Raises:
        RunFolderError: the file is damaged, or of another version.
    """
    source = Source(folder / _FILE, RunFolderError, "Delete it: a run can go on without.")
    try:
        found = source.json(source.read(folder / _FILE, most_bytes=_LARGEST_FILE_BYTES))
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict) or found.get("version") != _VERSION:
        raise source.refuse("written by another version of the SDK.")
    return {each.task_index: each for each in source.check(record(_Kept), found).pipelines}


class KnownSchedules:
    """Asks the history once for each pipeline of a run, and keeps the answer, so that a resumed run has the same.

    Args:
        store: the run's.
        histories: that are asked; none tells only what the pipelines are.
    """

    def __init__(self, store: RunStore, histories: Sequence[HistorySource], listen: Listener) -> None:
        self._store, self._histories, self._listen = store, histories, listen
        try:
            self._pipelines = known_pipelines(store.folder)
        except RunFolderError as error:
            self._pipelines = {}
            listen(Notice(f"{error} This run goes on without it.", warning=True))

    def of(self, task_index: int, shape: PipelineShape) -> tuple[KnownSchedule, ...]:
        """What is known of an argument set's pipeline, the most promising first."""
        if task_index not in self._pipelines:
            record = self._store.record
            identity = identity_of(shape, _conditions(record))
            further = len(record.spec.options.inputs.also_sizes)
            conditions = conditions_text(size_text(shape), further, record.spec.parallelism)
            self._pipelines[task_index] = KnownPipeline(task_index, identity, conditions, self._asked(identity))
            self._keep()
        return self._pipelines[task_index].schedules if self._histories else ()

    def _asked(self, pipeline: PipelineIdentity) -> tuple[KnownSchedule, ...]:
        made_with, profile = self._store.record.made_with, self._store.record.spec.profile
        place = place_of(profile.halide_target, made_with.devices, made_with.clock)
        return best_of(self._histories, pipeline, place, _MOST, self._listen)

    def _keep(self) -> None:
        file, kept = self._store.folder / _FILE, _Kept(_VERSION, tuple(self._pipelines.values()))
        with os_error_as(RunFolderError, f"{file} cannot be written"):
            write_atomically(file, json.dumps(plain(kept), indent=1).encode())


def _conditions(record: RunRecord) -> list[str]:
    """What makes other times of the same pipeline on the same device."""
    spec = record.spec
    return [*spec.options.inputs.also_sizes, f"{spec.parallelism} threads", record.made_with.clock_model]
