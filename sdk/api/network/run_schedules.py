"""The schedules that a network's run has found, by operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.shipping.run_schedule import read_run_schedule
from halide_autotune.autotune_loop.specification.tuning_task import published_paths
from halide_autotune.autotune_loop.store.run_record import RunRecord, read_run_record
from halide_autotune.targets.errors import RunFolderError


@dataclass(frozen=True)
class RunSchedules:
    """A run of `sdk network tune`."""

    folder: Path
    record: RunRecord

    @property
    def target(self) -> str:
        """The profile that it was tuned for."""
        return self.record.spec.profile.name

    def check_target(self, name: str) -> None:
        """Check that it was tuned for a profile.

        Raises:
            RunFolderError: it was not.
        """
        if name != self.target:
            raise RunFolderError(
                f"{self.folder} was tuned for {self.target}, not for {name}.",
                next_step=f"Build for --target {self.target}, or give a run for {name}.",
            )

    def header(self, generator_name: str, parameters: Mapping[str, str], what: str) -> str | None:
        """The text of an operator's schedule; None if none of its schedules could be timed.

        Args:
            what: the operator, with its layer, for people.

        Raises:
            RunFolderError: the run has not tuned this operator, or its schedule is damaged.
        """
        tasks = self.record.spec.tasks
        for index, (task, path) in enumerate(zip(tasks, published_paths(self.folder / "samples", tasks), strict=True)):
            if task.generator_name == generator_name and dict(task.parameters) == dict(parameters):
                return read_run_schedule(self.folder, self.record, index, path).header_text if path.is_file() else None
        raise RunFolderError(
            f"{self.folder} has no schedule for {what}: it is a run of another network, or this one has changed since.",
            next_step="Tune this network with sdk network tune, or give its run.",
        )


def run_schedules(folder: Path) -> RunSchedules:
    """The run in a folder.

    Raises:
        RunFolderError: it is no run folder, or damaged.
    """
    return RunSchedules(folder, read_run_record(folder))
