"""What a run has to ship: a schedule or parameters for each argument set."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.autotune_loop.shipping.run_parameters import RunParameters, read_run_parameters
from halide_autotune.autotune_loop.shipping.run_schedule import RunSchedule, read_run_schedule
from halide_autotune.autotune_loop.specification.tuning_task import published_paths
from halide_autotune.autotune_loop.store.run_record import read_run_record


def read_run_winners(folder: Path) -> list[RunSchedule | RunParameters]:
    """The winners of the run in `folder`, one for each argument set.

    Raises:
        RunFolderError: it is not a run folder, or one of its files is missing or damaged.
    """
    record = read_run_record(folder)
    winners: list[RunSchedule | RunParameters] = []
    for index, path in enumerate(published_paths(folder / "samples", record.spec.tasks)):
        read = read_run_schedule if path.suffix == ".h" else read_run_parameters
        winners.append(read(folder, record, index, path))
    return winners
