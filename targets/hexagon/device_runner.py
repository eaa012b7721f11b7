"""Qualcomm's way to a phone's DSP: run_main_on_hexagon, what goes with it, and what its times are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from targets.errors import ToolchainError
from targets.hexagon.sdk import DSP_SKELETON, HexagonSdk, dsp_version_of

_NO_SYSTEM, _DEVICE_SYSTEM = "noos", "qurt"


@dataclass(frozen=True)
class HexagonDeviceRunner:
    """An SDK's run_main_on_hexagon for one DSP version.

    Attributes:
        sdk: whose tools also build what it runs.
        program: run_main_on_hexagon itself, for the phone's processor.
        skeleton: its counterpart, for the DSP.
        dsp_version: such as 'v66'.
    """

    sdk: HexagonSdk
    program: Path
    skeleton: Path
    dsp_version: str

    @property
    def clock_model(self) -> str:
        """What its times are: those of another clock are never compared with them."""
        return f"processor cycles of a device's DSP {self.dsp_version}, a nanosecond for each"


def open_hexagon_device_runner(sdk: HexagonSdk, halide_target: str) -> HexagonDeviceRunner:
    """What runs a Hexagon Halide target's programs on devices; nothing is started.

    Raises:
        ToolchainError: the SDK lacks a part, or has no libraries for the target's DSP version; the message names it.
    """
    version = dsp_version_of(halide_target)
    sdk.check_dsp_version(version)
    skeleton = dict(sdk.skeletons).get(version)
    if sdk.device_runner is None or skeleton is None:
        part = (
            "run_main_on_hexagon for 64-bit Android" if sdk.device_runner is None else f"{DSP_SKELETON} for {version}"
        )
        raise ToolchainError(
            f"The Hexagon SDK in {sdk.root} has no {part}, which programs are run on a phone's DSP with.",
            next_step="Build libs/run_main_on_hexagon with the SDK's make, for Android and for that DSP; or time with"
            " --device hexagon-sim.",
        )
    return HexagonDeviceRunner(sdk, sdk.device_runner, skeleton, version)


def runs_on_devices(halide_target: str) -> bool:
    """Whether a Hexagon Halide target is for QuRT, the system of devices' DSPs."""
    return _DEVICE_SYSTEM in halide_target.split("-")


def device_halide_target(halide_target: str) -> str:
    """A standalone Hexagon's Halide target as that of a device's DSP, which runs QuRT."""
    return "-".join(_DEVICE_SYSTEM if word == _NO_SYSTEM else word for word in halide_target.split("-"))
