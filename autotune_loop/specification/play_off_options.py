"""The options of the play-off: what a winner must beat, and how it is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from halide_autotune.autotune_loop.specification.incumbents import parse_incumbents
from halide_autotune.autotune_loop.specification.objective import LOOKS, Objective
from halide_autotune.targets.values.checks import whole_number
from halide_autotune.targets.values.options import Option

_WHAT = "What is tuned"
_LENGTH = "How long"


@dataclass(frozen=True)
class PlayOffOptions:
    """How the winner is decided."""

    objective: Objective = field(default_factory=Objective)
    turns: Annotated[
        int,
        whole_number(LOOKS[0]),
        Option(
            "--play-off-turns",
            metavar="COUNT",
            help="Most turns of the play-off against the default or the incumbent.",
            panel=_LENGTH,
            name="play_off_turns",
        ),
    ] = LOOKS[-1]
    incumbents: Annotated[
        Mapping[str, Path],
        Option(
            "--incumbent",
            metavar="HEADER",
            help="The header in use today, which stays unless a schedule beats it. NAME=HEADER if the run tunes several"
            " generators or argument sets.",
            panel=_WHAT,
            parse=parse_incumbents,
        ),
    ] = field(default_factory=dict)
    ignores_own: Annotated[
        bool,
        Option(
            "--ignore-own-schedule",
            help="Compare with the default schedule, not with the one that the generator itself applies.",
            panel=_WHAT,
            name="ignore_own_schedule",
            is_fixed=True,
        ),
    ] = False
