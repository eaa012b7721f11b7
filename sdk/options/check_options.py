"""What `sdk check` can be asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.options.shared_options import ShippedGenerators
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.pipeline.estimates import EstimateOptions
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.values.checks import above_zero, number
from halide_autotune.targets.values.options import Option
from halide_autotune.targets.values.texts import parse_duration_s


def parse_share(text: str) -> float:
    """'5%' or '5' in per cent, as a share.

    Raises:
        UsageError: it is neither, or below 0.
    """
    digits = text.strip().removesuffix("%").strip()
    try:
        share = float(digits) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < 10:
        raise UsageError(f"{text!r} is not a share.", next_step="Write it in per cent, such as 5%.")
    return share


@dataclass(frozen=True)
class CheckOptions:
    """Which schedules of a shipped folder are checked, where they are timed, and how much slower they may be.

    Attributes:
        slower_share: how much more of the default's time a schedule may take than it took when it was shipped.
        budget_s: for all schedules together.
        build: what else C++ generators of `generators` are made from.
    """

    generators: ShippedGenerators = ()
    slower_share: Annotated[
        float,
        number(0.0, 10.0),
        Option(
            "--fail-if-slower",
            metavar="SHARE",
            help="How much slower a schedule may be, beside the default, than its header says.",
            parse=parse_share,
            shown="5%",
        ),
    ] = 0.05
    budget_s: Annotated[
        float | None,
        above_zero(),
        Option("--budget", metavar="TIME", help="Begin no turn after this time: 90s, 10m.", parse=parse_duration_s),
    ] = None
    devices: DeviceOptions = field(default_factory=DeviceOptions)
    inputs: KernelInputs = field(default_factory=KernelInputs)
    estimates: EstimateOptions = field(default_factory=EstimateOptions)
    build: CppBuild = field(default_factory=CppBuild)
