"""`sdk config`: which options a run would have here, and where each comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import make_console, plain_table, print_json

if TYPE_CHECKING:
    from halide_autotune.sdk.project.file import Project

group = typer.Typer(
    name="config",
    help="Which options a run would have in this folder, and where each comes from.\n\nExample: sdk config show",
)
_DEFAULT = "default"


@group.command()
def show(
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="PROFILE",
            help="For a run of this target. Default: the one in sdk.toml, else host.",
            autocompletion=COMPLETIONS["targets"],
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show the defaults, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the options of `sdk autotune` as sdk.toml and environment variables set them for this folder.

    Example: sdk config show --target arm64
    """
    from halide_autotune.sdk.project.file import FILE_NAME, find_project

    project = find_project(Path.cwd())
    file = project.folder / FILE_NAME
    rows = _options(project, target, str(file))
    folders = _folders(project)
    if as_json:
        print_json({"file": str(file) if file.is_file() else None, "options": rows, "folders": folders})
        return
    typer.echo(f"project: {file}" if file.is_file() else f"There is no {FILE_NAME} in this folder or above it.")
    shown = [row for row in rows if everything or row["from"] != _DEFAULT]
    if shown:
        _print(("option", "value", "from"), shown)
    else:
        typer.echo("Every option has its default; --all shows them.")
    _print(("folder", "value", "from"), folders)


def _options(project: Project, target: str | None, file: str) -> list[dict[str, object]]:
    """A row for each option of a run: its flag, its value, and what sets it."""
    from halide_autotune.autotune_loop.specification.options import RunOptions
    from halide_autotune.sdk.options.autotune_options import project_options, project_values, target_of
    from halide_autotune.targets.values.options import options_of, value_at
    from halide_autotune.targets.values.records import plain

    typed = {} if target is None else {"target": target}
    counts = target_of(typed, project)
    asked, values = project_options(project, counts).with_values(typed), project_values(project, counts)
    rows: list[dict[str, object]] = []
    for option in options_of(RunOptions):
        source = f"{file} {values[option.keyword].table}" if option.keyword in values else _DEFAULT
        if option.keyword in typed:
            source = "--target"
        rows.append({"option": option.label, "value": plain(value_at(asked, option)), "from": source})
    return rows


def _folders(project: Project) -> list[dict[str, object]]:
    """Where the SDK keeps files, looks for others' tools and for devices, with what says so."""
    from halide_autotune.sdk.project.file import FILE_NAME
    from halide_autotune.sdk.settings import read_settings, variables_set
    from halide_autotune.targets.hexagon.sdk import HEXAGON_SDK_VARIABLE
    from halide_autotune.targets.toolchain.ndk import NDK_VARIABLES, SDK_VARIABLE

    settings, given = read_settings(), variables_set()
    kinds = (
        ("cache", settings.cache_folder, ("SDK_CACHE_DIR", "XDG_CACHE_HOME")),
        ("settings", settings.config_folder, ("SDK_CONFIG_DIR", "XDG_CONFIG_HOME")),
        ("profiles", settings.profile_folder, ("SDK_PROFILE_DIR", "SDK_CONFIG_DIR", "XDG_CONFIG_HOME")),
        ("Android NDK", settings.ndk_root, (*NDK_VARIABLES, SDK_VARIABLE)),
        ("Hexagon SDK", settings.hexagon_sdk_root, (HEXAGON_SDK_VARIABLE,)),
        ("inventory", project.inventory, ()),
        ("farm", settings.scheduler or project.farm.scheduler, ("SDK_SCHEDULER",)),
    )
    in_file = {"inventory": project.inventory and "inventory", "farm": project.farm.scheduler and "[farm]"}
    rows: list[dict[str, object]] = []
    for name, value, variables in kinds:
        place = in_file.get(name)
        otherwise = f"{project.folder / FILE_NAME} {place}" if place else _DEFAULT
        source = next((variable for variable in variables if variable in given), otherwise)
        rows.append({"folder": name, "value": None if value is None else str(value), "from": source})
    return rows


def _print(titles: tuple[str, ...], rows: list[dict[str, object]]) -> None:
    table = plain_table(*titles)
    for row in rows:
        table.add_row(*(_text(row[title]) for title in titles))
    make_console().print(table)


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items()) or "–"
    return (", ".join(map(str, value)) or "–") if isinstance(value, list | tuple) else str(value)
