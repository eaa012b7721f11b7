"""`sdk cmake-dir`: where the CMake package is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import print_json


def cmake_dir(
    halide: Annotated[
        bool, typer.Option("--halide", help="Print the folder of Halide's CMake packages, for CMAKE_PREFIX_PATH.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the folder of the CMake package HalideAutotune.

    Example: cmake -S . -B build -DHalideAutotune_DIR="$(sdk cmake-dir)"
    """
    from halide_autotune.targets.halide_install import find_halide_install

    own = Path(__file__).parents[1] / "cmake_package"
    if as_json:
        print_json({"cmake_dir": str(own), "halide_cmake_dir": str(find_halide_install().lib_dir / "cmake")})
    else:
        typer.echo(str(find_halide_install().lib_dir / "cmake" if halide else own))
