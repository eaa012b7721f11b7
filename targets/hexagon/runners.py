"""The programs of the Hexagon SDK that run kernels: the simulator, and run_main_on_hexagon for a phone's DSP."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.hexagon.sdk import DSP_SKELETON, HexagonSdk, dsp_version_of

HEXAGON_SIMULATOR = "hexagon-sim"

# By the SDK's documentation (examples/profiling): the DSP of each version; only --timing models its caches and stalls;
# with --simulated_returnval the simulator ends with the program's exit code.
_PROCESSORS = {"v65": "v65a_1024", "v66": "v66g_1024", "v68": "v68n_1024"}
_OPTIONS = ("--timing", "--simulated_returnval")


@dataclass(frozen=True)
class HexagonSimulator:
    """The hexagon-sim of an SDK, for one DSP version.

    Attributes:
        sdk: its tools also build what the simulator runs.
        command: the words before the program on the command line.
        clock_model: what its times come from; times of two models are never compared.
        arguments_mark: the words between the program and its arguments.
    """

    sdk: HexagonSdk
    command: tuple[str, ...]
    clock_model: str
    arguments_mark: tuple[str, ...] = ("--",)


def open_hexagon_simulator(sdk: HexagonSdk, halide_target: str) -> HexagonSimulator:
    """Return the simulator for a Hexagon Halide target; nothing is started.

    Raises:
        ToolchainError: the SDK has no simulator, or no libraries for the target's DSP version.
    """
    version = dsp_version_of(halide_target)
    sdk.check_dsp_version(version)
    if sdk.simulator is None:
        raise ToolchainError(
            f"The Hexagon SDK in {sdk.root} has no simulator {HEXAGON_SIMULATOR} beside its compiler.",
            next_step="Install it with the SDK's package manager, or use --device qemu.",
        )
    words = (f"-m{_PROCESSORS.get(version, version)}", *_OPTIONS)
    model = f"{HEXAGON_SIMULATOR} of tools {sdk.tools_version} {' '.join(words)}, a nanosecond for a processor cycle"
    return HexagonSimulator(sdk, (str(sdk.simulator.absolute()), *words), model)


@dataclass(frozen=True)
class HexagonDeviceRunner:
    """The run_main_on_hexagon of an SDK, for one DSP version.

    Attributes:
        sdk: its tools also build what the DSP runs.
        program: run_main_on_hexagon, for the phone's processor.
        skeleton: its half for the DSP.
        dsp_version: such as 'v66'.
    """

    sdk: HexagonSdk
    program: Path
    skeleton: Path
    dsp_version: str

    @property
    def clock_model(self) -> str:
        """What its times are; times of two models are never compared."""
        return f"processor cycles of a device's DSP {self.dsp_version}, a nanosecond for each"


def open_hexagon_device_runner(sdk: HexagonSdk, halide_target: str) -> HexagonDeviceRunner:
    """Return what runs programs of a Hexagon Halide target on devices; nothing is started.

    Raises:
        ToolchainError: the SDK lacks a part, or has no libraries for the target's DSP version.
    """
    version = dsp_version_of(halide_target)
    sdk.check_dsp_version(version)
    skeleton = dict(sdk.skeletons).get(version)
    if sdk.device_runner is None or skeleton is None:
        part = (
            "run_main_on_hexagon for 64-bit Android" if sdk.device_runner is None else f"{DSP_SKELETON} for {version}"
        )
        raise ToolchainError(
            f"The Hexagon SDK in {sdk.root} has no {part}, which a phone's DSP needs to run programs.",
            next_step="Build libs/run_main_on_hexagon with the SDK's make, for Android and for that DSP, or use"
            " --device hexagon-sim.",
        )
    return HexagonDeviceRunner(sdk, sdk.device_runner, skeleton, version)
