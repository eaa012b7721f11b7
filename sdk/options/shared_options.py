"""Options that several commands share, with their shell completion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def complete_target_names(incomplete: str) -> list[str]:
    """Return the names of the profiles that start with `incomplete`, for the shell; never an error."""
    from sdk.settings import read_settings
    from targets.errors import SdkError
    from targets.profile.loader import profile_names

    try:
        return [name for name in profile_names(read_settings().profile_folder) if name.startswith(incomplete)]
    except SdkError:
        return []


def complete_weights_names(incomplete: str) -> list[str]:
    """Return the names of the weights that start with `incomplete`, for the shell; never an error."""
    from sdk.select.named_weights import open_registry
    from sdk.settings import read_settings
    from targets.errors import SdkError

    try:
        names = ["baseline", *open_registry(read_settings()).names()]
    except (SdkError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


HEXAGON_SDK_HELP = (
    "Qualcomm's Hexagon SDK, for its compiler, its simulator and phones' DSPs; HEXAGON_SDK_ROOT by default."
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
TargetOption = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        metavar="PROFILE",
        help="Name or path of a target profile; `sdk targets` lists them.",
        autocompletion=complete_target_names,
    ),
]
GeneratorArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[GENERATOR]",
        help="path.py[:name], path.cpp[:name], a built path.generator[:name], or a name of sdk.toml.",
    ),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option("--parameter", "-p", metavar="KEY=VALUE", help="A generator parameter; repeat for more."),
]
HexagonSdkOption = Annotated[
    Path | None,
    typer.Option("--hexagon-sdk-root", metavar="FOLDER", help=HEXAGON_SDK_HELP),
]
