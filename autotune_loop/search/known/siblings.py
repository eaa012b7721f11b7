"""The fastest schedules of a run's tasks, for its other tasks that differ from them in nothing but sizes."""

from __future__ import annotations

import contextlib

from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.history.pipeline_identity import identity_of
from halide_autotune.targets.errors import GeneratorError

_FUNCTION = "schedule"


class Siblings:
    """The fastest so far of each task."""

    def __init__(self) -> None:
        self._kinds: dict[int, str] = {}
        self._fastest: dict[int, tuple[Draft, PipelineNames]] = {}

    def tell(self, task_index: int, names: PipelineNames, fastest: Draft) -> None:
        """Remember the fastest schedule of a task."""
        self._fastest[task_index] = fastest, names

    def of(self, task_index: int, names: PipelineNames) -> list[Draft]:
        """Those of other tasks, as schedules of this one."""
        kind, drafts = self._kind(task_index, names), []
        for other, (fastest, its_names) in self._fastest.items():
            if other != task_index and self._kind(other, its_names) == kind:
                # What fits one size need not fit another.
                with contextlib.suppress(GeneratorError, KeyError):
                    drafts.append(draft_of(schedule_of(fastest, its_names, _FUNCTION), names))
        return drafts

    def _kind(self, task_index: int, names: PipelineNames) -> str:
        if task_index not in self._kinds:
            self._kinds[task_index] = identity_of(names.shape).at_any_size
        return self._kinds[task_index]
