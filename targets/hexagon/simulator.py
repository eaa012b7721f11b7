"""Qualcomm's simulator of a Hexagon: its command line, and what its times are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from targets.errors import ToolchainError
from targets.hexagon.sdk import HexagonSdk, dsp_version_of

HEXAGON_SIMULATOR = "hexagon-sim"

# Of the SDK's documentation (examples/profiling): the DSP of each version, and that only --timing models its caches and
# stalls. With --simulated_returnval the simulator ends with the program's own exit code.
_PROCESSORS = {"v65": "v65a_1024", "v66": "v66g_1024", "v68": "v68n_1024"}
_OPTIONS = ("--timing", "--simulated_returnval")


@dataclass(frozen=True)
class HexagonSimulator:
    """An SDK's hexagon-sim for one DSP version.

    Attributes:
        sdk: whose tools also build what it runs.
        program: hexagon-sim itself.
        dsp_version: such as 'v66'.
    """

    sdk: HexagonSdk
    program: Path
    dsp_version: str

    @property
    def command(self) -> tuple[str, ...]:
        """What stands before a program."""
        return (str(self.program.absolute()), self._processor, *_OPTIONS)

    @property
    def arguments_mark(self) -> tuple[str, ...]:
        """What stands between a program and its arguments."""
        return ("--",)

    @property
    def clock_model(self) -> str:
        """What its times come from: those of two models are never compared."""
        options = " ".join((self._processor, *_OPTIONS))
        return f"{HEXAGON_SIMULATOR} of tools {self.sdk.tools_version} {options}, a nanosecond for a processor cycle"

    @property
    def _processor(self) -> str:
        return f"-m{_PROCESSORS.get(self.dsp_version, self.dsp_version)}"


def open_hexagon_simulator(sdk: HexagonSdk, halide_target: str) -> HexagonSimulator:
    """The simulator for a Hexagon Halide target; nothing is started.

    Raises:
        ToolchainError: the SDK has no simulator, or no libraries for the target's DSP version.
    """
    version = dsp_version_of(halide_target)
    sdk.check_dsp_version(version)
    if sdk.simulator is None:
        raise ToolchainError(
            f"The Hexagon SDK in {sdk.root} has no simulator {HEXAGON_SIMULATOR} beside its compiler.",
            next_step="Install it with the SDK's package manager, or time under QEMU with --device qemu.",
        )
    return HexagonSimulator(sdk, sdk.simulator, version)
