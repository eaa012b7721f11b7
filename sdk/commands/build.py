"""`sdk build`: cross-compile a generator with a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.options.autotune_options import (
    CALLED_WITH,
    ONE_GENERATOR,
    GeneratorOptions,
    chosen_options,
    given_generator,
)
from halide_autotune.sdk.options.bench_options import BuildOptions
from halide_autotune.sdk.options.shared_options import GeneratorArgument
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.output import print_json, show_progress
from halide_autotune.sdk.project.file import find_project

_TAKEN = ("target", "target_features", "hexagon_sdk_root", "parallelism", *CALLED_WITH)


@with_options
def build(
    *,
    generator: GeneratorArgument = None,
    typed: Annotated[
        Mapping[str, Any], Takes(GeneratorOptions, RunOptions, only=("function_name", *ONE_GENERATOR, *_TAKEN))
    ],
    command: BuildOptions,
) -> None:
    """Cross-compile a generator: object, static library, header, and a benchmark to run on the target.

    Example: sdk build blur.cpp --target arm64 --schedule best.blur.schedule.h -o build
    """
    from halide_autotune.sdk.api.build import build as build_files

    project = find_project(Path.cwd())
    named = given_generator(generator, typed, project)
    options = chosen_options(typed, project, _TAKEN)
    text = f"building {named.generator} for {options.devices.target or 'host'}"
    with show_progress(text, quiet=command.as_json) as progress:
        made = build_files(named, command.output, schedule=command.schedule, options=options, progress=progress)
    files = {
        "object": made.object,
        "static_library": made.static_library,
        "header": made.header,
        "benchmark": made.benchmark,
    }
    if command.as_json:
        inputs = {"inputs": [str(path) for path in made.inputs]} if made.inputs else {}
        print_json({**{kind: str(path) for kind, path in files.items()}, **inputs, "toolchain": made.toolchain})
        return
    for kind, path in (*files.items(), *(("input", path) for path in made.inputs)):
        typer.echo(f"{kind.replace('_', ' '):15} {path}")
    typer.echo(f"{'linked with':15} {made.toolchain}")
