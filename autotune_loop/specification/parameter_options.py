"""The options by which parameters of a generator are tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from halide_autotune.autotune_loop.parameters.tuned_parameter import parse_tune
from halide_autotune.targets.values.options import Option

_WHAT = "What is tuned"


@dataclass(frozen=True)
class ParameterOptions:
    """Which generator parameters are tuned, in the generator's own schedule."""

    tune: Annotated[
        Mapping[str, str],
        Option(
            "--tune",
            metavar="NAME=VALUES",
            help="A generator parameter to tune in the generator's own schedule, with its values: 16..512:x2, 8..64:+8,"
            " or a list such as 8,16; repeat for more. Schedules are then not searched, unless with --search-too.",
            panel=_WHAT,
            parse=parse_tune,
            is_fixed=True,
        ),
    ] = field(default_factory=dict)
    restrict: Annotated[
        tuple[str, ...],
        Option(
            "--restrict",
            metavar="CONDITION",
            help='What all tuned values must fulfil, such as "tile_x * tile_y <= 65536"; repeat for more.',
            panel=_WHAT,
            is_fixed=True,
        ),
    ] = ()
    searches_too: Annotated[
        bool,
        Option(
            "--search-too",
            help="With --tune: also search for schedules, with the parameters that are fastest so far.",
            panel=_WHAT,
            name="search_too",
            is_fixed=True,
        ),
    ] = False
