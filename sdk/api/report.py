"""`sdk.report`: a run as an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from halide_autotune.autotune_loop.measure.func_comparison import ProfiledSchedule
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun, read_recorded_run
from halide_autotune.autotune_loop.report.run_page import PageOptions, print_page
from halide_autotune.autotune_loop.shipping.confirmation import compare_funcs_of_run
from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.autotune_loop.shipping.run_schedule import RunSchedule
from halide_autotune.autotune_loop.shipping.run_winners import read_run_winners
from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.sdk.project.next_commands import next_commands
from halide_autotune.sdk.project.preparation import open_workbench
from halide_autotune.sdk.select.trial_place import open_trial_place
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import RunFolderError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically


def report(
    run: str | Path,
    output: str | Path | None = None,
    *,
    lines_ms: Mapping[str, float] | None = None,
    by_func: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
    """Write one HTML file that opens without a network, and return its path.

    Args:
        run: the folder of a run, finished or under way.
        output: the file; report.html in the run's folder by default.
        lines_ms: times to compare with, by their names, such as {"by hand": 5.6}.
        by_func: build the winner and what it had to beat once more, to show what each of their Funcs takes.
        progress: called with a phrase at every step that may take long.

    Raises:
        RunFolderError: the folder holds no run, or is damaged; or the page cannot be written.
        SdkError: with `by_func`, another of its children: the generator or the device cannot be used.
    """
    recorded = read_recorded_run(Path(run))
    funcs = run_func_times(recorded.folder, progress) if by_func else {}
    return write_report(recorded, output, PageOptions(lines_ms or {}, funcs=funcs))


def run_func_times(
    folder: Path, progress: Callable[[str], None], settings: Settings | None = None
) -> dict[int, Sequence[ProfiledSchedule]]:
    """What the Funcs of a run's winners and of what they had to beat take, by argument set; without tuned parameters.

    Raises:
        SdkError: one of its children: the run, the generator or the device cannot be used.
    """
    settings = settings or read_settings()
    workbench = open_workbench(settings, progress)
    sources = GeneratorSources((), workbench.halide, workbench.compiler, settings.environment)
    found: dict[int, Sequence[ProfiledSchedule]] = {}
    for winner in read_run_winners(folder):
        if isinstance(winner, RunSchedule):
            place = open_trial_place(winner, DeviceOptions(), workbench, settings, progress)
            with sources.open(winner) as program:
                found[winner.index] = compare_funcs_of_run(winner, program, place, progress)
    return found


def write_report(run: RecordedRun, output: str | Path | None, options: PageOptions) -> Path:
    """As `report`, of a run that has been read."""
    page = print_page(run, options, next_commands(run))
    path = run.folder / "report.html" if output is None else Path(output)
    with os_error_as(RunFolderError, f"{path} cannot be written", next_step="Choose another file with --output."):
        write_atomically(path, page.encode())
    return path
