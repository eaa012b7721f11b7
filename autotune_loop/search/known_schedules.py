"""What earlier runs found for a run's pipelines, as the run's folder keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.history.history import History
from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule
from halide_autotune.autotune_loop.history.pipeline_identity import PipelineIdentity, identity_of, size_text
from halide_autotune.autotune_loop.specification.prepared_run import PreparedRun
from halide_autotune.targets.errors import HistoryError, RunFolderError, os_error_as
from halide_autotune.targets.pipeline.shape import PipelineShape
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.checks import one_line
from halide_autotune.targets.values.records import Source, plain, record

_FILE = "history.json"
# Taken of a pipeline: of the first batch a small share, if they turn out to be of no use.
_MOST = 4


@dataclass(frozen=True)
class KnownPipeline:
    """A pipeline of a run.

    Attributes:
        identity, size: at the run's sizes.
        schedules: what earlier runs found for it; tried first.
    """

    identity: PipelineIdentity
    size: Annotated[str, one_line]
    schedules: tuple[KnownSchedule, ...] = ()


@dataclass(frozen=True)
class _Kept:
    """The file in a run's folder. Keys are the numbers of argument sets."""

    version: int
    pipelines: Mapping[str, KnownPipeline] = field(default_factory=dict)


def known_pipelines(folder: Path) -> dict[int, KnownPipeline]:
    """What a run knew of its pipelines when it began, by argument set; empty where none was described.

    Raises:
        RunFolderError: the file is damaged.
    """
    source = Source(folder / _FILE, RunFolderError, "Restore it from a copy, or delete it.")
    try:
        text = source.read(folder / _FILE, most_bytes=2**26)
    except FileNotFoundError:
        return {}
    kept = source.check(record(_Kept), source.json(text))
    return {int(index): pipeline for index, pipeline in kept.pipelines.items()}


class KnownSchedules:
    """Asks the history once for each pipeline of a run, and keeps the answer, so that a resumed run has the same."""

    def __init__(self, run: PreparedRun, listen: Listener) -> None:
        self._file, self._listen = run.folder / _FILE, listen
        self._history = None if run.history is None else History(run.history)
        self._place = (run.spec.profile.halide_target, run.device_names, run.clock.value)
        self._further_sizes = run.options.inputs.also_sizes
        self._pipelines = known_pipelines(run.folder)

    def of(self, task_index: int, shape: PipelineShape) -> tuple[KnownSchedule, ...]:
        """What to try first for an argument set's pipeline, the most promising first."""
        if task_index not in self._pipelines:
            identity = identity_of(shape, self._further_sizes)
            size = size_text(shape, self._further_sizes)
            self._pipelines[task_index] = KnownPipeline(identity, size, self._asked(identity))
            self._keep()
        return self._pipelines[task_index].schedules

    def _asked(self, pipeline: PipelineIdentity) -> tuple[KnownSchedule, ...]:
        if self._history is None:
            return ()
        try:
            found = tuple(self._history.best(pipeline, self._place, _MOST))
        except HistoryError as error:
            self._listen(Notice(f"{error} This run goes on without it.", warning=True))
            return ()
        if found:
            self._listen(Notice(_told(pipeline, found)))
        return found

    def _keep(self) -> None:
        kept = _Kept(1, {str(index): pipeline for index, pipeline in self._pipelines.items()})
        with os_error_as(RunFolderError, f"{self._file} cannot be written"):
            write_atomically(self._file, json.dumps(plain(kept), indent=1).encode())


def _told(pipeline: PipelineIdentity, found: Sequence[KnownSchedule]) -> str:
    which = "The best schedule" if len(found) == 1 else f"The {len(found)} best schedules"
    others = sum(one.identity != pipeline for one in found)
    sizes = "" if not others else " at other sizes" if others == len(found) else f", {others} of them at other sizes,"
    return f"{which} of earlier runs of this pipeline{sizes} will be tried; --no-history tries none."
