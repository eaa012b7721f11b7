"""A run's pipelines, and its schedules as drafts: each is described, read and hashed once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TypeAlias

from halide_autotune.autotune_loop.candidate import Candidate, SchedulePoint, SearchedSchedule
from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.repair import repair
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import DescribePipeline
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.parse import parse_shipped_schedule
from halide_autotune.autotune_loop.search.hvx_floats import has_float_vectors
from halide_autotune.autotune_loop.search.models.model import OF_NESTS
from halide_autotune.autotune_loop.search.models.population import Failed, Tried
from halide_autotune.autotune_loop.search.models.vector_faults import Causes, VectorFaults, causes_of
from halide_autotune.autotune_loop.search.waiting import NotWantedError
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.timing.measurement import MeasureFailureReason
from halide_autotune.targets.errors import GeneratorError, SdkError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.pipeline.shape import PipelineShape
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.schedule.header import read_schedule

Description: TypeAlias = "Future[PipelineShape | GeneratorFailure | SdkError]"
# What vectors of a target may make of a schedule, if Halide's code for it is wrong.
_FAULTS_OF_VECTORS = {
    GeneratorFailureReason.CRASHED.value,
    GeneratorFailureReason.FAILED.value,
    MeasureFailureReason.CRASHED.value,
    MeasureFailureReason.WRONG_OUTPUT.value,
}


@dataclass
class RunDrafts:
    """Used in one thread. A resumed run may have thousands of schedules to read, which ends once nobody waits for it.

    Attributes:
        stop: set once no batch is wanted any more; then `draft`, and what makes a draft JSON, raise `NotWantedError`.
    """

    executor: Executor
    store: RunStore
    context: RunContext
    listen: Listener
    stop: StopSignal
    _descriptions: dict[int, Description] = field(default_factory=dict)
    _names: dict[int, PipelineNames | None] = field(default_factory=dict)
    _drafts: dict[str, Draft | None] = field(default_factory=dict)
    _hashes: dict[str, str] = field(default_factory=dict)
    _causes: dict[str, Causes] = field(default_factory=dict)

    def begin(self, task_index: int) -> None:
        """Have a task's pipeline described, which `names` waits for."""
        if task_index not in self._descriptions:
            folder = self.context.workspace.work_folder / "shape" / str(task_index)
            is_lowered = self.context.spec.options.search.model in OF_NESTS
            described = self.executor.submit(DescribePipeline(folder, task_index, is_lowered))
            self._descriptions[task_index] = described

    def names(self, task_index: int) -> PipelineNames | None:
        """The names of a task's pipeline; None, which is told once, where it cannot be described."""
        if task_index not in self._names:
            self.begin(task_index)
            shape = self._descriptions[task_index].result()
            if isinstance(shape, PipelineShape):
                shape = replace(shape, has_float_vectors=has_float_vectors(self.context))
            self._names[task_index] = PipelineNames(shape) if isinstance(shape, PipelineShape) else None
            if not isinstance(shape, PipelineShape):
                told = "Only Halide's own search proposes schedules, because the pipeline cannot be described:"
                self.listen(Notice(f"{told} {shape.message}", warning=True))
        return self._names[task_index]

    def draft(self, symbol: str, folder: Path, names: PipelineNames) -> Draft | None:
        """The draft of a schedule whose header is in a folder; None without one, or if it cannot be drafted."""
        key = f"{symbol}@{folder.name}"
        if key not in self._drafts:
            self._check_that_it_is_wanted()
            path = self.store.schedule_path(folder)
            if not path.is_file():
                return None
            self._drafts[key] = _drafted(path, names)
        return self._drafts[key]

    def failed(self, names: PipelineNames, candidates: Sequence[Candidate], reasons: Mapping[str, str]) -> list[Failed]:
        """What failed for a reason that may be its vectors, as far as it can be drafted.

        Args:
            reasons: of the candidates that failed, by symbol.
        """
        points = [one.point for one in candidates if isinstance(one.point, SchedulePoint)]
        parents = {parent for point in points for parent in point.parents}
        found = []
        for one in candidates:
            if reasons.get(one.symbol) in _FAULTS_OF_VECTORS:
                draft = self.draft(one.symbol, self.store.samples / one.sample, names)
                if draft is not None:
                    found.append(Failed(one.symbol, draft, one.symbol in parents))
        return found

    def causes_of(self, one: Tried | Failed, names: PipelineNames) -> Causes:
        """What may make the vectors of a schedule that was tried fail, looked for once."""
        if one.symbol not in self._causes:
            self._causes[one.symbol] = causes_of(one.draft, names)
        return self._causes[one.symbol]

    def edited(self, searched: SearchedSchedule, faults: VectorFaults, source: Random) -> Draft | None:
        """A sample with loops in the place of vectors that are, or seem to be, wrong; None if it has none."""
        names = faults.names
        draft = None if searched.schedule_path is None else _drafted(searched.schedule_path, names)
        if draft is None:
            return None
        right = repair(draft, names) if DraftStructure(draft, names).has_wrong_vectors else draft
        mended = faults.mended(right, source)
        return None if mended is draft else mended

    def schedule(self, draft: Draft, task_index: int) -> Schedule:
        """What a draft of a task that was described says."""
        names = self.names(task_index)
        assert names is not None, "only what was described is drafted"
        return schedule_of(draft, names, self.context.sample_file_name)

    def json(self, draft: Draft, task_index: int) -> str:
        """The same as data."""
        self._check_that_it_is_wanted()
        return print_json(self.schedule(draft, task_index))

    def sha256(self, draft: Draft, task_index: int) -> str:
        """The hash by which a draft is known."""
        return hashlib.sha256(self.json(draft, task_index).encode()).hexdigest()

    def sha256_of(self, symbol: str, draft: Draft, task_index: int) -> str:
        """The hash of a schedule that was tried, made once: every technique asks for it in every batch."""
        if symbol not in self._hashes:
            self._hashes[symbol] = self.sha256(draft, task_index)
        return self._hashes[symbol]

    def _check_that_it_is_wanted(self) -> None:
        if self.stop.is_set():
            raise NotWantedError


def _drafted(path: Path, names: PipelineNames) -> Draft | None:
    """The draft of a header; None if it cannot be drafted."""
    try:
        return draft_of(parse_shipped_schedule(read_schedule(path)), names)
    except (GeneratorError, KeyError):
        return None
