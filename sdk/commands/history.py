"""`sdk history`: what earlier runs have found; list it, add runs to it, share it, and delete of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.display.quantities import count_text, moment_text, time_text
from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.texts import parse_duration_s

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.history.history import History, PlaceSummary

group = typer.Typer(name="history")
_PipelineOption = Annotated[
    str | None, typer.Option("--pipeline", metavar="NAME", help="Only pipelines of the generator of this name.")
]


@dataclass(frozen=True)
class _Asked:
    """What is asked before the subcommand."""

    file: Path | None
    as_json: bool

    def open(self) -> History:
        """The history that is meant.

        Raises:
            UsageError: there is no such file.
        """
        from halide_autotune.autotune_loop.history.history import History
        from halide_autotune.sdk.project.history import open_history

        if self.file is None:
            return open_history(read_settings())
        if not self.file.is_file():
            raise UsageError(f"There is no history {self.file}.", next_step="A farm's is where its scheduler keeps it.")
        return History(self.file)


@group.callback(invoke_without_command=True)
def history(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Another history than yours, such as a farm's."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the pipelines that earlier runs have tuned: runs of equal ones start from their fastest schedules.

    Example: sdk history
    """
    asked = context.obj = _Asked(file, as_json)
    if context.invoked_subcommand is not None:
        return
    known = asked.open()
    places = known.summary()
    if as_json:
        print_json({"file": str(known.file), "pipelines": [asdict(place) for place in places]})
        return
    if places:
        _print(places)
    else:
        typer.echo("Nothing is known yet. `sdk autotune` adds what it times; `sdk history add RUN`, an earlier run.")
    typer.echo(f"The history is {known.file}.")


def _print(places: list[PlaceSummary]) -> None:
    from halide_autotune.devices.device import Clock
    from halide_autotune.sdk.display.clock_lines import clock_lines

    console = make_console()
    for line in clock_lines(place.clock for place in places):
        console.print(line)
    numbers = ("schedules", "fastest")
    table = plain_table("pipeline", "timed at", "Halide target", "device", *numbers, "newest", numbers=numbers)
    for place in places:
        table.add_row(
            place.pipeline,
            place.conditions,
            _short_target(place.halide_target),
            place.device,
            str(place.schedules),
            time_text(place.best_ms, Clock.mark_of(place.clock)),
            moment_text(place.newest_unix_s),
        )
    console.print(table)


def _short_target(halide_target: str) -> str:
    """'x86-64-linux and 9 features': the JSON has all of them."""
    words = halide_target.split("-")
    kind, features = "-".join(words[:3]), len(words) - 3
    return f"{kind} and {count_text(features, 'feature')}" if features > 0 else kind


@group.command()
def add(
    context: typer.Context,
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Folders of runs.", autocompletion=COMPLETIONS["runs"])
    ],
    as_json: JsonOption = False,
) -> None:
    """Add what runs have timed, such as a run that was killed or made with --no-history.

    Example: sdk history add tuned/blur-arm64-1
    """
    from halide_autotune.sdk.project.history import keep_run

    known, quiet = context.obj.open(), as_json or context.obj.as_json
    added: dict[str, int] = {}
    with show_progress("reading runs", quiet=quiet) as progress:
        for run in runs:
            progress(f"reading {run}")
            added[str(run)] = keep_run(run, known)
    _print_added(added, as_json=quiet)


def _print_added(added: Mapping[str, int], *, as_json: bool) -> None:
    """How many schedules of each run or file were new."""
    if as_json:
        print_json(added)
        return
    for name, count in added.items():
        typer.echo(f"{name}: {count_text(count, 'new schedule')}")


@group.command()
def export(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")],
    pipeline: _PipelineOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write what is known to a file for others, with other names for your devices.

    Example: sdk history export -o history.jsonl.gz
    """
    from halide_autotune.autotune_loop.history.exchange import export_schedules

    known = context.obj.open()
    schedules = known.schedules(pipeline)
    if not schedules:
        what = "yet" if pipeline is None else f"of a generator called {pipeline!r}"
        raise UsageError(f"Nothing is known {what}.", next_step="`sdk history` lists what is.")
    count = export_schedules(schedules, known.all_nests(), output, known.salt())
    if as_json or context.obj.as_json:
        print_json({"file": str(output), "schedules": count})
    else:
        names = "with the names of generators, Funcs, variables and inputs"
        typer.echo(f"{output}: {count_text(count, 'schedule')}, {names}.")


@group.command()
def merge(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files that `sdk history export` has written.")],
    as_json: JsonOption = False,
) -> None:
    """Add what others have exported. A file with anything wrong in it adds nothing.

    Example: sdk history merge history.jsonl.gz
    """
    from halide_autotune.autotune_loop.history.exchange import read_exported, taken_apart

    known = context.obj.open()
    own_devices = known.devices()
    salt = known.salt() if own_devices else ""
    added = {str(file): known.add(*taken_apart(read_exported(file, own_devices, salt))) for file in files}
    _print_added(added, as_json=as_json or context.obj.as_json)


@group.command()
def prune(
    context: typer.Context,
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="COUNT", min=1, help="Keep so many of the fastest of a pipeline on a device."),
    ] = None,
    older_than_s: Annotated[
        float | None,
        typer.Option("--older-than", metavar="TIME", parser=parse_duration_s, help="Delete what is older, as 2000h."),
    ] = None,
    pipeline: _PipelineOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete slow or old schedules.

    Example: sdk history prune --keep 50
    """
    if keep is None and older_than_s is None and pipeline is None:
        raise UsageError("Nothing says what to delete.", next_step="Give --keep, --older-than or --pipeline.")
    since_s = 0.0 if older_than_s is None else time.time() - older_than_s
    if keep is None and older_than_s is None:
        keep = 0  # all of the named pipeline goes
    deleted = context.obj.open().prune(pipeline=pipeline, keep=keep, since_unix_s=since_s)
    if as_json or context.obj.as_json:
        print_json({"deleted": deleted})
    else:
        typer.echo(f"Deleted {count_text(deleted, 'schedule')}.")
