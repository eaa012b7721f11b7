"""What `sdk explain` can be asked beside the options of a run that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from halide_autotune.targets.values.options import Option


@dataclass(frozen=True)
class ExplainOptions:
    """What `sdk explain` compares a schedule with."""

    schedules: Annotated[
        tuple[str, ...],
        Option(
            "--schedule",
            metavar="HEADER",
            help="What a header is compared with: another one, own, adams2019, mullapudi2016 or li2018. Repeatable."
            " [default: the profile's autoscheduler]",
        ),
    ] = ()
    as_json: Annotated[bool, Option("--json", help="Print JSON for machines.")] = False
