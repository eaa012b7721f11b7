"""`sdk.report`: a run as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from halide_autotune.autotune_loop.report.recorded_run import RecordedRun, read_recorded_run
from halide_autotune.autotune_loop.report.run_page import PageOptions, print_page
from halide_autotune.sdk.project.next_commands import next_commands
from halide_autotune.targets.errors import RunFolderError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically


def report(
    run: str | Path,
    output: str | Path | None = None,
    *,
    lines_ms: Mapping[str, float] | None = None,
) -> Path:
    """Write one HTML file that opens without a network, and return its path.

    Args:
        run: the folder of a run, finished or under way.
        output: the file; report.html in the run's folder by default.
        lines_ms: times to compare with, by their names, such as {"by hand": 5.6}.

    Raises:
        RunFolderError: the folder holds no run, or is damaged; or the page cannot be written.
    """
    return write_report(read_recorded_run(Path(run)), output, PageOptions(lines_ms or {}))


def write_report(run: RecordedRun, output: str | Path | None, options: PageOptions) -> Path:
    """As `report`, of a run that has been read."""
    page = print_page(run, options, next_commands(run))
    path = run.folder / "report.html" if output is None else Path(output)
    with os_error_as(RunFolderError, f"{path} cannot be written", next_step="Choose another file with --output."):
        write_atomically(path, page.encode(errors="replace"))
    return path
