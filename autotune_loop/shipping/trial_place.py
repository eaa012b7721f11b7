"""Where a schedule is tried before it ships, and with what it is built."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autotune_loop.specification.tune_request import Folders
from devices.device import Device
from devices.remote_place import ConnectionSettings
from targets.build.executable import BuildTools
from targets.profile.profile import TargetProfile
from targets.toolchain.host_cpp_compiler import HostCppCompiler


@dataclass(frozen=True)
class TrialPlace:
    """The devices of a run, or others of its profile.

    Attributes:
        devices: at least one; play-offs are held on all of them, sizes are tried on the first.
        profile: the run's.
        connections: of remote devices; None where there are none.
        ptxas: NVIDIA's assembler, where it is there.
    """

    devices: tuple[Device, ...]
    profile: TargetProfile
    tools: BuildTools
    compiler: HostCppCompiler
    folders: Folders
    connections: ConnectionSettings | None
    ptxas: Path | None = None

    @property
    def device(self) -> Device:
        """The first of the devices."""
        return self.devices[0]
