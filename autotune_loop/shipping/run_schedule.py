"""The schedule that a run found, with its times and options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from autotune_loop.schedule.model import Schedule
from autotune_loop.schedule.parse import parse_schedule
from autotune_loop.shipping.recorded_facts import RecordedFacts, read_recorded_facts
from autotune_loop.specification.objective import Objective
from autotune_loop.specification.tuning_task import TuningTask, published_names
from autotune_loop.store.run_record import RunRecord, read_run_record
from devices.timing.measure_settings import KernelInputs
from targets.errors import GeneratorError, RunFolderError
from targets.schedule.header import read_schedule


@dataclass(frozen=True)
class RunSchedule:
    """One argument set of a run, ready to be shipped.

    Attributes:
        folder: of the run.
        index: of its task among the run's.
        header: best.<name>.schedule.h.
        header_text: its content.
    """

    folder: Path
    record: RunRecord
    index: int
    facts: RecordedFacts
    schedule: Schedule
    header: Path
    header_text: str

    @property
    def task(self) -> TuningTask:
        """What was tuned."""
        return self.record.spec.tasks[self.index]

    @property
    def name(self) -> str:
        """Of best.<name>.schedule.h; a C identifier."""
        return published_names(self.record.spec.tasks)[self.index]

    @property
    def generator_sha256(self) -> str:
        """Of the generator's file, as it was tuned."""
        return self.record.made_with.generator_sha256[self.index]

    @property
    def profile_name(self) -> str:
        """The profile that it was tuned for."""
        return self.record.spec.profile.name

    @property
    def inputs(self) -> KernelInputs:
        """What it was timed with; the user's own data is left out."""
        return replace(self.record.spec.options.inputs, files={})

    @property
    def objective(self) -> Objective:
        """What it is good at, where there are several devices."""
        return self.record.spec.options.play_off.objective


def read_run_schedules(folder: Path) -> list[RunSchedule]:
    """The schedules of the run in `folder`, one for each argument set.

    Raises:
        RunFolderError: it is not a run folder, or one of its files is missing or damaged.
    """
    record = read_run_record(folder)
    names = published_names(record.spec.tasks)
    return [_run_schedule(folder, record, index, name) for index, name in enumerate(names)]


def _run_schedule(folder: Path, record: RunRecord, index: int, name: str) -> RunSchedule:
    header = folder / "samples" / f"best.{name}.schedule.h"
    if not header.is_file():
        raise RunFolderError(
            f"{folder} has no winner to ship: {header.name} is missing from its samples.",
            next_step=f"Continue the run: sdk autotune --resume {folder}.",
        )
    try:
        text = read_schedule(header)
        schedule = parse_schedule(text)
    except GeneratorError as error:
        where = "" if error.message.startswith(str(header)) else f"{header}: "
        raise RunFolderError(
            f"{where}{error.message}", next_step="The header was changed or damaged. Continue the run, or tune again."
        ) from error
    facts = read_recorded_facts(header, folder / "tuning.db", index)
    return RunSchedule(folder, record, index, facts, schedule, header, text)
