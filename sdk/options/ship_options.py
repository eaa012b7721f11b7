"""What `sdk ship` can be asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.sdk.options.shared_options import ShippedGenerators
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.values.checks import above_zero
from halide_autotune.targets.values.options import Option
from halide_autotune.targets.values.texts import parse_duration_s


@dataclass(frozen=True)
class ShipOptions:
    """What is tried before schedules ship, and where: by default where each run was timed.

    Attributes:
        build: what else C++ generators of `generators` are made from.
    """

    generators: ShippedGenerators = ()
    accept_sizes: Annotated[
        tuple[str, ...],
        Option(
            "--accept-size",
            metavar="SIZE",
            help="A size of the output that must work: 1920x1080, 640x480@3x5 with an offset, or blur=1920x1080 for"
            " one of several generators. Repeatable.",
        ),
    ] = ()
    no_sizes: Annotated[bool, Option("--no-sizes", help="Do not also try odd, small and shifted sizes.")] = False
    guard: Annotated[
        bool, Option("--guard", help="Also write a C header that calls another kernel at unsupported sizes.")
    ] = False
    one_schedule: Annotated[
        bool, Option("--one-schedule", help="Ship one schedule for all sizes, also where a size has its own.")
    ] = False
    play_off: Annotated[
        bool, Option("--play-off", help="Ship only what beats the default schedule with 95 % confidence.")
    ] = False
    incumbent: Annotated[
        Path | None, Option("--incumbent", metavar="HEADER", help="The header in use, to beat in a play-off.")
    ] = None
    allow_unconfirmed: Annotated[
        bool,
        Option("--allow-unconfirmed", help="Also ship what no play-off has confirmed; the files say so."),
    ] = False
    budget_s: Annotated[
        float | None,
        above_zero(),
        Option("--budget", metavar="TIME", help="End the play-off after this time: 90s, 10m.", parse=parse_duration_s),
    ] = None
    devices: DeviceOptions = field(default_factory=DeviceOptions)
    build: CppBuild = field(default_factory=CppBuild)
