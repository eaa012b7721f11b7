"""The schedule that a run found, with its times and options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autotune_loop.schedule.model import Schedule
from autotune_loop.schedule.parse import parse_schedule
from autotune_loop.shipping.recorded_facts import read_recorded_facts
from autotune_loop.shipping.run_winner import RunWinner, check_is_there
from autotune_loop.store.run_record import RunRecord
from targets.errors import GeneratorError, RunFolderError
from targets.schedule.header import read_schedule


@dataclass(frozen=True)
class RunSchedule(RunWinner):
    """The schedule of one argument set of a run, ready to be shipped.

    Attributes:
        header_text: the content of best.<name>.schedule.h.
    """

    schedule: Schedule
    header_text: str

    @property
    def header(self) -> Path:
        """Its best.<name>.schedule.h."""
        return self.path


def read_run_schedule(folder: Path, record: RunRecord, index: int, header: Path) -> RunSchedule:
    """The schedule that a run has published for an argument set.

    Raises:
        RunFolderError: it is missing, was changed, or is damaged.
    """
    check_is_there(folder, header)
    try:
        text = read_schedule(header)
        schedule = parse_schedule(text)
    except GeneratorError as error:
        where = "" if error.message.startswith(str(header)) else f"{header}: "
        raise RunFolderError(
            f"{where}{error.message}", next_step="The header was changed or damaged. Continue the run, or tune again."
        ) from error
    facts = read_recorded_facts(header, folder / "tuning.db", index)
    return RunSchedule(folder, record, index, facts, header, schedule, text)
