"""What a run has to ship: a schedule or parameters for each argument set."""

from __future__ import annotations

from pathlib import Path

from autotune_loop.shipping.run_parameters import RunParameters, read_run_parameters
from autotune_loop.shipping.run_schedule import RunSchedule, read_run_schedule
from autotune_loop.specification.tuning_task import published_files
from autotune_loop.store.run_record import read_run_record


def read_run_winners(folder: Path) -> list[RunSchedule | RunParameters]:
    """The winners of the run in `folder`, one for each argument set.

    Raises:
        RunFolderError: it is not a run folder, or one of its files is missing or damaged.
    """
    record = read_run_record(folder)
    winners: list[RunSchedule | RunParameters] = []
    for index, (task, file) in enumerate(zip(record.spec.tasks, published_files(record.spec.tasks), strict=True)):
        read = read_run_schedule if task.space is None else read_run_parameters
        winners.append(read(folder, record, index, folder / "samples" / file))
    return winners
