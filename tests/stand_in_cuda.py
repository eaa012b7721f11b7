"""A stand-in for NVIDIA's driver on machines without a card; see stand_in_cuda.c for what it can show, and cannot."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")
# What programs load: the driver under either of its names, and NVML.
_NAMES = ("libcuda.so", "libcuda.so.1", "libnvidia-ml.so.1")


@dataclass(frozen=True)
class StandInCuda:
    """The stand-in's libraries in a folder, and where it writes what it is called for."""

    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "calls"

    def environment(self, base: Mapping[str, str], **values: int) -> dict[str, str]:
        """`base`, with the stand-in in the place of a driver; `values` are its STAND_IN_CUDA_ variables."""
        own = {f"STAND_IN_CUDA_{name.upper()}": str(value) for name, value in values.items()}
        return {**base, "LD_LIBRARY_PATH": str(self.folder), "STAND_IN_CUDA_LOG": str(self.log), **own}

    def calls(self) -> list[str]:
        """The calls so far: `to_card`, `load`, `launch`, `wait` and `to_host`, in their order."""
        return [line.split()[0] for line in self.log.read_text().splitlines()]


def build_stand_in_cuda(folder: Path) -> StandInCuda:
    """Compile it into `folder`."""
    library = folder / "stand_in.so"
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", library, _SOURCE], check=True)
    for name in _NAMES:
        (folder / name).symlink_to(library.name)
    return StandInCuda(folder)
