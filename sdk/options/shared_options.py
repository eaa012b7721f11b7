"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from halide_autotune.autotune_loop.specification.options import DeviceOptions, FarmOptions
from halide_autotune.sdk.options.autotune_options import GeneratorOptions
from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.targets.values.options import Option, option_of


def declared(kind: type[Any], keyword: str, **changes: Any) -> Any:
    """Return an option of `sdk autotune` as one of another command.

    Args:
        kind: the dataclass that declares it.
        changes: what differs, as for `typer.Option`.
    """
    facts = option_of(kind, keyword).facts
    details = {"metavar": facts.metavar, "help": facts.help, "autocompletion": COMPLETIONS.get(facts.complete)}
    return typer.Option(*facts.flags, **{**details, **changes})


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
GeneratorArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="GENERATOR",
        help="path.py[:name], path.cpp[:name], a built path.generator[:name], or a name of sdk.toml.",
    ),
]
# A field of the dataclasses of options of the commands that read a shipped folder.
ShippedGenerators = Annotated[
    tuple[str, ...],
    Option(
        "--generator",
        metavar="GENERATOR",
        help="A generator in place of the file that was tuned: path.py[:name] or path.cpp[:name]. Repeatable.",
    ),
]
ParameterOption = Annotated[list[str] | None, declared(GeneratorOptions, "parameters")]
HexagonSdkOption = Annotated[Path | None, declared(DeviceOptions, "hexagon_sdk_root")]
SchedulerOption = Annotated[
    str | None,
    declared(
        FarmOptions,
        "scheduler",
        help="The scheduler of the farm: tls://HOST:8786. Default: SDK_SCHEDULER, else sdk.toml.",
    ),
]
CertificatesOption = Annotated[Path | None, declared(FarmOptions, "farm_certificates")]
PlainOption = Annotated[
    bool,
    typer.Option("--plain", help="Allow tcp:// beyond this machine: anyone who reaches a port can run programs there."),
]
