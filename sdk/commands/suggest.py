"""`sdk suggest`: schedules without a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.options.autotune_options import (
    ONE_GENERATOR,
    GeneratorOptions,
    chosen_options,
    given_generator,
)
from halide_autotune.sdk.options.shared_options import GeneratorArgument
from halide_autotune.sdk.options.suggest_options import SuggestOptions
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress, shown_path
from halide_autotune.sdk.project.file import find_project
from halide_autotune.targets.errors import UsageError, os_error_as
from halide_autotune.targets.pipeline.estimates import EstimateOptions
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.toolchain.cpp_build import CppBuild

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.suggest.suggestion import Suggestion, Suggestions

_TAKEN = ("target", "target_features", "parallelism")
_SUFFIX = ".schedule.h"


@with_options
def suggest(
    *,
    generator: GeneratorArgument = None,
    typed: Annotated[
        Mapping[str, Any], Takes(GeneratorOptions, RunOptions, only=("function_name", *ONE_GENERATOR, *_TAKEN))
    ],
    command: SuggestOptions,
) -> None:
    """Write a schedule within seconds, without a device: the one expected to be fastest, by what is known of others.

    Nothing is timed. A run of `sdk autotune` finds faster ones.

    Example: sdk suggest blur.cpp --target arm64
    """
    from halide_autotune.autotune_loop.history.known_schedule import threads_text
    from halide_autotune.sdk.api.suggest import suggest as suggest_for
    from halide_autotune.sdk.project.next_commands import command_line, option_words

    if command.output is not None and not command.output.name.endswith(_SUFFIX):
        raise UsageError(
            f"--output {command.output} is not the name of a header.",
            next_step=f"Give a path that ends in {_SUFFIX}.",
        )
    project = find_project(Path.cwd())
    named = given_generator(generator, typed, project)
    options = chosen_options(typed, project, _TAKEN)
    with show_progress(f"suggesting a schedule for {named.generator}", quiet=command.as_json) as progress:
        found = suggest_for(named, count=command.count, options=options, progress=progress)
    written = _write(found.first, command.output or Path(f"suggested.{found.function_name}{_SUFFIX}"))
    if command.as_json:
        print_json(_as_json(found, written))
        return
    table = plain_table("schedule", "expected time", "made by", numbers=("expected time",))
    for path, one in zip(written, found.first, strict=True):
        table.add_row(shown_path(path), f"{one.expected_ratio:.2f}", ", ".join(one.made_by))
    make_console().print(table)
    compared = f"{found.compared} schedules were compared for {threads_text(found.cores)}"
    typer.echo(f"{compared}, by what is known of other pipelines. None was timed.")
    parameters = [word for each in named.parameters for word in ("-p", each)]
    words = [named.generator, *option_words(RunOptions(), options), *parameters]
    words += [*option_words(CppBuild(), named.build), *option_words(EstimateOptions(), named.estimates)]
    schedules = [f"--schedule={shown_path(path)}" for path in written]
    typer.echo(f"time it: {command_line('bench', *words, *schedules)}")


def _write(suggestions: Sequence[Suggestion], output: Path) -> list[Path]:
    """Write the headers; those after the first get a number in their names."""
    stem = output.name.removesuffix(_SUFFIX)
    paths = [output, *(output.with_name(f"{stem}-{place}{_SUFFIX}") for place in range(2, len(suggestions) + 1))]
    for path, one in zip(paths, suggestions, strict=True):
        with os_error_as(UsageError, f"{path} cannot be written", next_step="Give another path with --output."):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, one.header.encode())
    return paths


def _as_json(found: Suggestions, written: Sequence[Path]) -> dict[str, object]:
    return {
        "schedules": [
            {"header": str(path), "made_by": [*one.made_by], "expected_ratio": one.expected_ratio}
            for path, one in zip(written, found.first, strict=True)
        ],
        "compared": found.compared,
        "refused": found.refused,
        "cores": found.cores,
    }
