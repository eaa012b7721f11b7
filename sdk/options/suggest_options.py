"""What `sdk suggest` can be asked beside the options of a run that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from halide_autotune.targets.values.checks import whole_number
from halide_autotune.targets.values.options import Option

_MOST = 64


@dataclass(frozen=True)
class SuggestOptions:
    """How many schedules `sdk suggest` writes, and where."""

    count: Annotated[
        int,
        whole_number(1, _MOST),
        Option("--count", metavar="COUNT", help="How many schedules to write, to time them yourself."),
    ] = 1
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            metavar="HEADER",
            help="The header to write; further ones get a number. [default: suggested.NAME.schedule.h]",
        ),
    ] = None
    as_json: Annotated[bool, Option("--json", help="Print JSON for machines.")] = False
