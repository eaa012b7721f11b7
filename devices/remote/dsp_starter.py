"""What starts programs on a phone's DSP: our launcher, and Qualcomm's run_main_on_hexagon that it uses."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from devices.agent.program import DEVICE_C_FLAGS, agent_triple, static_toolchain
from targets.errors import ToolchainError
from targets.hexagon.runners import HexagonDeviceRunner
from targets.hexagon.sdk import DSP_SKELETON
from targets.process.content_cache import ContentCache, file_sha256

_LAUNCHER = "dsp_launcher"
_DSP_RUNNER = "run_main_on_hexagon"
_SOURCE = Path(__file__).parent / "dsp_launcher" / "dsp_launcher.c"


@dataclass(frozen=True)
class DspStarter:
    """Starts shared objects for QuRT on the DSP, as if they were programs of the phone.

    The agent runs the launcher: time limits, leases and files are those of any other program. When the launcher is
    killed, FastRPC ends what the DSP does for it.
    """

    runner: HexagonDeviceRunner
    cache: ContentCache

    @property
    def name(self) -> str:
        """Of the program that takes another one's name as its first argument."""
        return _LAUNCHER

    def files(self, machine: str) -> tuple[tuple[Path, str], ...]:
        """What must lie beside the programs, and under which names.

        Args:
            machine: what the phone's `uname -m` says.

        Raises:
            DeviceTrouble: BROKEN, no program can be built for such a machine.
            ToolchainError: the launcher does not build, or the SDK's files cannot be read.
        """
        try:
            runner = self.cache.get_or_build(["dsp runner", file_sha256(self.runner.program)], ".program", self._copy)
        except OSError as error:
            raise ToolchainError(f"{self.runner.program} cannot be read: {error.strerror or error}.") from error
        return (
            (build_dsp_launcher(machine, self.cache), _LAUNCHER),
            (runner, _DSP_RUNNER),
            (self.runner.skeleton, DSP_SKELETON),
        )

    def _copy(self, output: Path) -> None:
        """Executable, which a file of an unpacked SDK need not be."""
        shutil.copyfile(self.runner.program, output)
        output.chmod(0o755)


def build_dsp_launcher(machine: str, cache: ContentCache) -> Path:
    """The launcher for what a device's `uname -m` says, static as the agent is; built unless the cache has it.

    Raises:
        DeviceTrouble: BROKEN, no program can be built for such a machine.
        ToolchainError: zig is missing or fails, or the cache cannot be written.
    """
    toolchain = static_toolchain(agent_triple(machine), cache)

    def build(output: Path) -> None:
        compiled = output.with_suffix(".o")
        toolchain.compile_c(_SOURCE, compiled, [], DEVICE_C_FLAGS)
        toolchain.link([compiled], output, ())

    key = ["dsp launcher", toolchain.fingerprint(), *DEVICE_C_FLAGS, file_sha256(_SOURCE)]
    return cache.get_or_build(key, ".launcher", build)
