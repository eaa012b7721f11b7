"""`sdk.compare` and `sdk.load_run`: runs side by side, and one run as data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from halide_autotune.autotune_loop.report.comparison import Comparison, compare_runs
from halide_autotune.autotune_loop.report.comparison_page import print_comparison
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun, read_recorded_run
from halide_autotune.sdk.project.next_commands import play_off_line
from halide_autotune.targets.errors import RunFolderError, UsageError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically


def load_run(run: str | Path) -> RecordedRun:
    """Read a run's folder, finished or under way, without touching it; `to_frame()` has its schedules as a table.

    Raises:
        RunFolderError: the folder holds no run, or is damaged.
    """
    return read_recorded_run(Path(run))


def compare(runs: Sequence[str | Path], output: str | Path | None = None) -> list[Comparison]:
    """Put runs of the same pipelines side by side.

    Args:
        runs: at least two run folders.
        output: an HTML file to write, which opens without a network.

    Returns:
        One for each pipeline that at least two of the runs have timed.

    Raises:
        UsageError: there are fewer than two, or they have no pipeline in common.
        RunFolderError: a folder holds no run, or is damaged; or the page cannot be written.
    """
    if len(runs) < 2:
        raise UsageError("A comparison needs at least two runs.", next_step="Name another run's folder.")
    found = compare_runs([load_run(run) for run in runs])
    if output is not None:
        with os_error_as(RunFolderError, f"{output} cannot be written", next_step="Choose another file with --output."):
            commands = {each.name: play_off_line(each) for each in found}
            write_atomically(Path(output), print_comparison(found, commands).encode(errors="replace"))
    return found
