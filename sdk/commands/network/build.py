"""`sdk network build`: a model as a static library with one C entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.display.quantities import count_text
from halide_autotune.sdk.options.autotune_options import chosen_options
from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.output import print_fields, print_json, show_progress, shown_path
from halide_autotune.sdk.project.file import find_project

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.network.library.build_library import NetworkLibrary

TAKEN = ("target", "target_features", "hexagon_sdk_root")
ModelArgument = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A .keras or .tflite file, or an application of Keras such as MobileNetV2."),
]
RunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="FOLDER",
        help="The run of sdk network tune whose schedules are used. Default: the operators' own.",
        autocompletion=COMPLETIONS["runs"],
    ),
]


@with_options
def build(
    model: ModelArgument,
    typed: Annotated[Mapping[str, Any], Takes(RunOptions, only=TAKEN)],
    *,
    run: RunOption = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the files.")] = Path(
        "build"
    ),
    as_json: JsonOption = False,
) -> None:
    """Build a model for a target: a static library with one C entry and the weights, a header, and a benchmark.

    Example: sdk network build MobileNetV2 --target arm64 --run tuned/mobilenetv2-arm64 -o build
    """
    options = network_options(typed, run, TAKEN)
    # Imported here: it takes long, and a wrong option need not wait for it.
    from halide_autotune.sdk.api.network.build import build_network

    with show_progress(f"reading {model}", quiet=as_json) as progress:
        made = build_network(model, output, run=run, options=options, progress=progress)
    if as_json:
        print_json(made.to_dict())
    else:
        _print(made)
    warn_of_defaults(made.not_tuned)


def network_options(typed: Mapping[str, Any], run: Path | None, taken: tuple[str, ...]) -> RunOptions:
    """What is asked of a network's target; a run brings its own with its features, unless others are typed.

    Raises:
        UsageError: one message about the first value that is wrong.
    """
    options = chosen_options(typed, find_project(Path.cwd()), taken)
    if run is None:
        return options
    of_run = {"target": None, "target_features": ()}
    return options.with_values({name: value for name, value in of_run.items() if name not in typed})


def _print(made: NetworkLibrary) -> None:
    from halide_autotune.autotune_loop.network.library.c_sources import entry

    memory = made.steps.memory
    workspace, least = _kib(memory.workspace_bytes), _kib(memory.least_bytes)
    apart = "the least that is possible" if workspace == least else f"of which {least} are needed at once"
    print_fields(
        [
            ("library", shown_path(made.library)),
            ("header", shown_path(made.header)),
            ("benchmark", shown_path(made.benchmark)),
            ("layers", count_text(len(made.steps.steps), "layer")),
            ("weights", _kib(len(made.steps.weights))),
            ("workspace", f"{workspace}, {apart}"),
            ("entry", entry(made.steps.network)),
            ("linked with", made.toolchain),
        ]
    )


def warn_of_defaults(not_tuned: Sequence[str]) -> None:
    """Tell which operators a run has no schedule for."""
    if not_tuned:
        typer.echo(
            f"The run has no schedule for {count_text(len(not_tuned), 'operator')}: they have their generators' own.",
            err=True,
        )
        for words in not_tuned:
            typer.echo(f"    {words}", err=True)
        typer.echo("To tune them, continue the run: sdk autotune --resume FOLDER.", err=True)


def _kib(size_bytes: int) -> str:
    return f"{size_bytes / 2**10:,.1f} KiB"
