"""The options of timing: how precisely, and how long a run waits for a device that can be timed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from halide_autotune.targets.values.checks import above_zero
from halide_autotune.targets.values.options import Option
from halide_autotune.targets.values.texts import parse_duration_s

_DEVICE = "Where it is timed"
_MEASURING = "How it is timed"


@dataclass(frozen=True)
class MeasureOptions:
    """How schedules are timed; times in seconds."""

    patience_s: Annotated[
        float,
        above_zero(),
        Option(
            "--device-patience",
            metavar="TIME",
            help="How long to wait for a device if all are leased or lost.",
            panel=_DEVICE,
            parse=parse_duration_s,
            shown="10m",
        ),
    ] = 600.0
    quiet_patience_s: Annotated[
        float | None,
        above_zero(),
        Option(
            "--quiet-patience",
            metavar="TIME",
            help="How long to wait for a device that is too disturbed to become quiet. Default: as --device-patience;"
            " at most a tenth of --budget.",
            panel=_DEVICE,
            parse=parse_duration_s,
        ),
    ] = None
    max_time_s: Annotated[
        float, above_zero(), Option(help="Most seconds to time the calls of a schedule.", panel=_MEASURING)
    ] = 0.3
    precision: Annotated[
        float,
        above_zero(1),
        Option(
            help="Timing ends once the median is known this precisely, as a share; beside a yardstick, twice this.",
            panel=_MEASURING,
        ),
    ] = 0.01
