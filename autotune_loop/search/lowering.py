"""Lowers a run's schedules, each once: several at a time in the build slots, before any code is generated."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import LowerSchedules
from halide_autotune.autotune_loop.lowered.lowered_schedule import (
    LoweredSchedule,
    lowered_schedule,
    read_lowered_schedule,
)
from halide_autotune.autotune_loop.search.models.model import OF_NESTS
from halide_autotune.autotune_loop.search.run_pace import RunPace
from halide_autotune.targets.errors import GeneratorError, RunFolderError, SdkError, os_error_as
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.lowering.loop_nest import LoopNest
from halide_autotune.targets.process.atomic_write import write_atomically

# Starting the generator takes as long as lowering some schedules, but for those that take long.
_FEWEST_AT_ONCE, _LONG_S = 4, 0.25
# So many are lowered for each that is timed, if that takes at most so much of what building and timing it takes.
_MOST_PER_WANTED, _SHARE_OF_TRIAL = 3, 0.5
# Before one was lowered, it is taken for so much of a trial.
_USUAL_SHARE_OF_TRIAL = 0.25
_OFF = "Schedules are chosen without lowering them, because that failed:"


@dataclass
class TaskLowering:
    """Lowers schedules of one tuning task; called in one thread.

    Attributes:
        pace: of the run.
        text_of: a schedule as JSON.
    """

    pace: RunPace
    task_index: int
    text_of: Callable[[Draft], str]
    listen: Listener
    _known: dict[str, LoweredSchedule | None] = field(default_factory=dict)
    # Which of them no file has yet, and the files.
    _new: set[str] = field(default_factory=set)
    _files: dict[str, Path] = field(default_factory=dict)
    _runs: itertools.count[int] = field(default_factory=itertools.count)
    _is_off: bool = False
    # All that was lowered, and how long it took.
    _lowered: int = 0
    _lowering_s: float = 0.0

    def affordable(self, wanted: int) -> int:
        """See `Lowering.affordable`. For each that is wanted, lowering may take a share of what its trial takes."""
        trial_s, most = self.pace.trial_s(self.task_index), _MOST_PER_WANTED * wanted
        each_s = self._each_s / self.pace.executor.build_slots if self._lowered else _USUAL_SHARE_OF_TRIAL * trial_s
        return min(most, int(wanted * _SHARE_OF_TRIAL * trial_s / each_s)) if each_s > 0 else most

    def keep(self, sha256: str, path: Path) -> None:
        """Keep what is known of a schedule's loop nest, or comes to be known, in a file; it may be there already.

        Raises:
            RunFolderError: the file cannot be written.
        """
        self._files[sha256] = path
        known = self._known.get(sha256)
        if known is not None and sha256 in self._new:
            with os_error_as(RunFolderError, f"{path} cannot be written"):
                write_atomically(path, known.packed)
            self._new.remove(sha256)

    def lowered(self, drafts: Sequence[Draft]) -> list[LoweredSchedule | None] | None:
        """See `Lowering.lowered`."""
        texts = [self.text_of(draft) for draft in drafts]
        hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        unknown = {one: text for one, text in zip(hashes, texts, strict=True) if not self._is_known(one)}
        if unknown and not self._is_off:
            self._lower(unknown)
        return None if self._is_off else [self._known.get(one) for one in hashes]

    @property
    def _each_s(self) -> float:
        """What lowering a schedule takes a build slot; 0 before the first."""
        return self._lowering_s / max(1, self._lowered)

    def _is_known(self, sha256: str) -> bool:
        if sha256 not in self._known and sha256 in self._files:
            # A damaged file is written anew.
            with contextlib.suppress(OSError, GeneratorError):
                self._known[sha256] = read_lowered_schedule(self._files[sha256], self.pace.context.parallelism)
        return sha256 in self._known

    def _lower(self, texts: dict[str, str]) -> None:
        hashes, executor = [*texts], self.pace.executor
        fewest = 1 if self._each_s > _LONG_S else _FEWEST_AT_ONCE
        size = max(fewest, -(-len(hashes) // executor.build_slots))
        chunks = [hashes[start : start + size] for start in range(0, len(hashes), size)]
        folder = self.pace.context.workspace.work_folder / "lowered" / str(self.task_index)
        submitted = [
            executor.submit(
                LowerSchedules(
                    folder / str(next(self._runs)),
                    self.task_index,
                    tuple(texts[one] for one in chunk),
                    self.pace.limit_s(self.task_index),
                )
            )
            for chunk in chunks
        ]
        for chunk, future in zip(chunks, submitted, strict=True):
            found = future.result()
            if isinstance(found, GeneratorFailure | SdkError):
                self._failed(found)
                continue
            for sha256, nest in zip(chunk, found.nests, strict=True):
                self._learn(sha256, nest if isinstance(nest, LoopNest) else None)
            self._lowered += len(chunk)
            # What waits for a timing to end takes no time of its own.
            self._lowering_s += found.duration_s

    def _learn(self, sha256: str, nest: LoopNest | None) -> None:
        self._known[sha256] = None if nest is None else lowered_schedule(nest, self.pace.context.parallelism)
        if nest is None:
            return
        self._new.add(sha256)
        if sha256 in self._files:
            self.keep(sha256, self._files[sha256])

    def _failed(self, failure: GeneratorFailure | SdkError) -> None:
        if isinstance(failure, GeneratorFailure) and failure.reason is GeneratorFailureReason.STOPPED:
            return
        if not self._is_off:
            self.listen(Notice(f"{_OFF} {failure.message}", warning=True))
        self._is_off = True


@dataclass
class RunLowerings:
    """What lowers the schedules of each of a run's tasks, if the run's model wants that.

    Attributes:
        pace: of the run.
        text_of: a schedule of a task as JSON.
    """

    pace: RunPace
    text_of: Callable[[Draft, int], str]
    listen: Listener
    _tasks: dict[int, TaskLowering] = field(default_factory=dict)

    @property
    def are_wanted(self) -> bool:
        """Whether the run's model is one of loop nests."""
        return self.pace.context.spec.options.search.model in OF_NESTS

    def of(self, task_index: int, samples: Mapping[str, str]) -> TaskLowering | None:
        """What lowers a task's schedules; it keeps the loop nests of those that are tried.

        Args:
            samples: their hashes → their folders below samples/.
        """
        if not self.are_wanted:
            return None
        if task_index not in self._tasks:
            self._tasks[task_index] = TaskLowering(
                self.pace, task_index, lambda draft: self.text_of(draft, task_index), self.listen
            )
        for sha256, sample in samples.items():
            self.keep(task_index, sha256, sample)
        return self._tasks[task_index]

    def keep(self, task_index: int, sha256: str, sample: str) -> None:
        """Keep a schedule's loop nest in its folder below samples/, if it was lowered."""
        store = self.pace.store
        if task_index in self._tasks:
            self._tasks[task_index].keep(sha256, store.lowered_path(store.samples / sample))
