"""`sdk build`: cross-compile a generator with a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from autotune_loop.specification.options import DeviceOptions
from sdk.options.autotune_options import given_build
from sdk.options.shared_options import GeneratorArgument, HexagonSdkOption, JsonOption, ParameterOption, declared
from sdk.options.with_options import Takes, with_options
from sdk.output import print_json, show_progress
from sdk.project.file import find_project
from targets.toolchain.cpp_build import CppBuild


@with_options
def build(
    *,
    generator: GeneratorArgument = None,
    target: Annotated[
        str, declared(DeviceOptions, "target", help="Name or path of a target profile; `sdk targets` lists them.")
    ] = "host",
    schedule: Annotated[
        str,
        typer.Option(
            "--schedule",
            metavar="HEADER",
            help="A .schedule.h; or own (the generator's), adams2019 (anderson2021 for a card), mullapudi2016, li2018.",
        ),
    ] = "own",
    parameters: ParameterOption = None,
    made_from: Annotated[Mapping[str, Any], Takes(CppBuild)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("build"),
    function_name: Annotated[
        str | None,
        typer.Option("--function-name", "-f", help="Name of the function. [default: the generator's]"),
    ] = None,
    hexagon_sdk_root: HexagonSdkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cross-compile a generator: object, static library, header, and a benchmark to run on the target.

    Example: sdk build blur.cpp --target arm64 --schedule best.blur.schedule.h -o build
    """
    from sdk.api.build import build as build_files
    from sdk.options.generator_spec import GeneratorSpec

    entry = find_project(Path.cwd()).named(generator)
    named = entry.generator
    with show_progress(f"building {named} for {target}", quiet=as_json):
        made = build_files(
            GeneratorSpec(
                named, tuple(parameters or ()), function_name=function_name, build=given_build(made_from, entry)
            ),
            output,
            target=target,
            schedule=schedule,
            hexagon_sdk_root=hexagon_sdk_root,
        )
    files = {
        "object": made.object,
        "static_library": made.static_library,
        "header": made.header,
        "benchmark": made.benchmark,
    }
    if as_json:
        print_json({**{kind: str(path) for kind, path in files.items()}, "toolchain": made.toolchain})
        return
    for kind, path in files.items():
        typer.echo(f"{kind.replace('_', ' '):15} {path}")
    typer.echo(f"{'linked with':15} {made.toolchain}")
