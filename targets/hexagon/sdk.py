"""An installed Hexagon SDK of Qualcomm's: its version and its parts; and the DSP that a Halide target is for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError

HEXAGON_SDK_VARIABLE = "HEXAGON_SDK_ROOT"
HEXAGON_SDK_OPTION = "--hexagon-sdk-root"

_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,6}){1,3}", re.ASCII)
_DSP_VERSION = re.compile(r"v[0-9]{2}", re.ASCII)
_HVX_FEATURE = re.compile(r"-hvx_(v[0-9]{2})(?![0-9])", re.ASCII)
_TOOLS = "tools/HEXAGON_Tools/*/Tools"
# The two halves that run programs on a device's DSP: on the phone, and on the DSP. Releases before 4.0 built several
# variants, in folders such as android_Release_aarch64 and hexagon_Release_dynamic_toolv83_v66.
_SHIPPED = ("libs/run_main_on_hexagon/ship", "libs/common/run_main_on_hexagon/ship")
_DEVICE_RUNNER = "android*aarch64/run_main_on_hexagon"
DSP_SKELETON = "librun_main_on_hexagon_skel.so"
_SKELETON_FOLDER = re.compile(r"hexagon_(\w+_)?toolv[0-9]+_(v[0-9]{2})(_\w+)?", re.ASCII)
_NO_SYSTEM, _DEVICE_SYSTEM = "noos", "qurt"
_SIGNERS = ("utils/scripts/signer.py", "tools/elfsigner/elfsigner.py")


@dataclass(frozen=True)
class HexagonSdk:
    """The parts of an installed SDK.

    Attributes:
        version: of the SDK, from its folder's name; None if the name is not a version.
        tools_version: of the compiler and the simulator.
        compiler: hexagon-clang.
        dsp_versions: the DSP versions that programs can be linked for, such as 'v66'.
        simulator: hexagon-sim; None if it is missing.
        device_runner: run_main_on_hexagon for 64-bit phones; None if it is missing.
        skeletons: its half on the DSP, by DSP version, such as 'v66'.
        signer: signs a device so that its DSP runs one's own programs; None if it is missing.
    """

    root: Path
    version: str | None
    tools_version: str
    compiler: Path
    dsp_versions: tuple[str, ...]
    simulator: Path | None
    device_runner: Path | None
    skeletons: tuple[tuple[str, Path], ...]
    signer: Path | None

    def describe(self) -> str:
        """Return a phrase such as '4.5.0.3 with tools 8.5.13, for v65, v66'."""
        versions = ", ".join(self.dsp_versions) or "no DSP version"
        return f"{self.version or 'of unknown version'} with tools {self.tools_version}, for {versions}"

    def check_dsp_version(self, version: str) -> None:
        """Check that programs can be linked for a DSP version.

        Raises:
            ToolchainError: they cannot.
        """
        if version not in self.dsp_versions:
            versions = ", ".join(self.dsp_versions) or "no DSP version"
            raise ToolchainError(
                f"The Hexagon SDK in {self.root} has no C library for {version}; it has them for {versions}.",
                next_step="Install tools that have it, or use another --target.",
            )

    def missing(self) -> tuple[str, ...]:
        """Return the parts that this SDK lacks, without those of one DSP (see `open_hexagon_device_runner`)."""
        parts = {"the simulator hexagon-sim": self.simulator, "a signer for devices": self.signer}
        return tuple(name for name, path in parts.items() if path is None)


def find_hexagon_sdk(root: Path) -> HexagonSdk:
    """Find the parts of the SDK in a folder; nothing is started.

    Raises:
        ToolchainError: there is no SDK, or it has no compiler.
    """
    tools = {path.parent.name: path for path in root.glob(_TOOLS) if _VERSION.fullmatch(path.parent.name)}
    for version in sorted(tools, key=_numbers, reverse=True):
        compiler = _program(tools[version].glob("bin/hexagon-clang"))
        if compiler is not None:
            libraries = tools[version].glob("target/hexagon/lib/v*")
            return HexagonSdk(
                root=root,
                version=root.name if _VERSION.fullmatch(root.name) else None,
                tools_version=version,
                compiler=compiler,
                dsp_versions=tuple(sorted(path.name for path in libraries if _DSP_VERSION.fullmatch(path.name))),
                simulator=_program(tools[version].glob("bin/hexagon-sim")),
                device_runner=_first(
                    path for place in _SHIPPED for path in sorted((root / place).glob(_DEVICE_RUNNER))
                ),
                skeletons=_skeletons(root),
                signer=_first(root / place for place in _SIGNERS),
            )
    raise ToolchainError(
        f"The Hexagon SDK in {root} cannot be used: it has no {_TOOLS}/bin/hexagon-clang.",
        next_step=f"Set {HEXAGON_SDK_VARIABLE} or {HEXAGON_SDK_OPTION} to the folder of an SDK. "
        "To tune under QEMU, set neither.",
    )


def dsp_version_of(halide_target: str) -> str:
    """Return the DSP version of a Hexagon Halide target, such as 'v66'; Halide's default if it names none."""
    found = _HVX_FEATURE.search(halide_target)
    return found[1] if found else "v62"


def runs_on_devices(halide_target: str) -> bool:
    """Whether a Hexagon Halide target is for QuRT, the system of devices' DSPs."""
    return _DEVICE_SYSTEM in halide_target.split("-")


def device_halide_target(halide_target: str) -> str:
    """Turn the Halide target of a standalone Hexagon into that of a device's DSP, which runs QuRT."""
    return "-".join(_DEVICE_SYSTEM if word == _NO_SYSTEM else word for word in halide_target.split("-"))


def _skeletons(root: Path) -> tuple[tuple[str, Path], ...]:
    """Find each DSP version's skeleton; the newest tools' if several built one."""
    found: dict[str, Path] = {}
    for place in _SHIPPED:
        for path in sorted((root / place).glob(f"hexagon_*/{DSP_SKELETON}")):
            folder = _SKELETON_FOLDER.fullmatch(path.parent.name)
            if folder is not None and path.is_file():
                found[folder[2]] = path
    return tuple(sorted(found.items()))


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _program(paths: Iterable[Path]) -> Path | None:
    return next((path for path in paths if path.is_file() and os.access(path, os.X_OK)), None)


def _first(paths: Iterable[Path]) -> Path | None:
    return next((path for path in paths if path.is_file()), None)
