"""What starts programs on a phone's DSP: our launcher, and Qualcomm's run_main_on_hexagon that it uses."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.devices.agent.program import build_c_program, static_toolchain
from halide_autotune.targets.errors import ToolchainError, os_error_as
from halide_autotune.targets.hexagon.runners import HexagonDeviceRunner
from halide_autotune.targets.hexagon.sdk import DSP_SKELETON
from halide_autotune.targets.process.content_cache import ContentCache, file_sha256

DSP_LAUNCHER = "dsp_launcher"
"""Its name on a device; its first argument is the name of the program to start."""
_DSP_RUNNER = "run_main_on_hexagon"
_SOURCE = Path(__file__).parent / "dsp_launcher.c"


@dataclass(frozen=True)
class DspStarter:
    """Starts shared objects for QuRT on the DSP, as if they were programs of the phone.

    The agent runs the launcher, so time limits, leases and files are those of any other program. When the launcher is
    killed, FastRPC ends what the DSP does for it.
    """

    runner: HexagonDeviceRunner
    cache: ContentCache

    def files(self, machine: str) -> tuple[tuple[Path, str], ...]:
        """Return the files that starting programs needs, with their names on a device.

        Args:
            machine: what the device's `uname -m` prints.

        Raises:
            DeviceTrouble: BROKEN, no program can be built for such a machine.
            ToolchainError: the launcher does not build, or the SDK's files cannot be read.
        """
        with os_error_as(ToolchainError, f"{self.runner.program} cannot be read"):
            runner = self.cache.get_or_build(["dsp runner", file_sha256(self.runner.program)], ".program", self._copy)
        return (
            (build_dsp_launcher(machine, self.cache), DSP_LAUNCHER),
            (runner, _DSP_RUNNER),
            (self.runner.skeleton, DSP_SKELETON),
        )

    def _copy(self, output: Path) -> None:
        """Copy as executable, which a file of an unpacked SDK need not be."""
        shutil.copyfile(self.runner.program, output)
        output.chmod(0o755)


def build_dsp_launcher(machine: str, cache: ContentCache) -> Path:
    """Return the launcher for a device whose `uname -m` prints `machine`, built unless the cache has it.

    Raises:
        DeviceTrouble: BROKEN, no program can be built for such a machine.
        ToolchainError: zig is missing or fails, or the cache cannot be written.
    """
    return build_c_program([_SOURCE], static_toolchain(machine, cache), ["-D_GNU_SOURCE"], cache)
