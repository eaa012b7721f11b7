"""The programs in C that run on devices: how they are built, and the agent for a device's machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.content_cache import ContentCache, file_sha256
from halide_autotune.targets.toolchain.zig import ZigToolchain
from halide_autotune.targets.values.texts import printable

_SOURCES = Path(__file__).parent / "source"
_THIRD_PARTY = Path(__file__).parent / "third_party"
# Of zlib and libmd: no standard library behind zlib's back, and no SHA-224 and SHA-384.
_DEFINITIONS = ("-D_GNU_SOURCE", "-DZ_SOLO", "-DSHA2_SMALL")
_WARNINGS = ("-D_FILE_OFFSET_BITS=64", "-Wall", "-Wextra", "-Werror")
# Static, with musl: it runs on every Linux and every Android, whatever C library they have.
_TRIPLES = {
    "x86_64": "x86_64-linux-musl",
    "aarch64": "aarch64-linux-musl",
    "arm64": "aarch64-linux-musl",
    "armv8l": "arm-linux-musleabihf",
    "armv7l": "arm-linux-musleabihf",
    "riscv64": "riscv64-linux-musl",
    "i686": "x86-linux-musl",
}


@dataclass(frozen=True)
class AgentProgram:
    """A built agent.

    Attributes:
        path: the program's file on this machine.
        sha256: of the file, hexadecimal.
    """

    path: Path
    sha256: str


def agent_for(machine: str, cache: ContentCache, definitions: Sequence[str] = ()) -> AgentProgram:
    """Return the agent for a device whose `uname -m` prints `machine`, built unless the cache has it.

    Args:
        definitions: further C macros, such as 'SYS_ROOT="/somewhere"' for tests.

    Raises:
        DeviceTrouble: BROKEN, the SDK has no agent for such a machine.
        ToolchainError: zig is missing or fails, or the cache cannot be written.
    """
    toolchain = static_toolchain(machine, cache)
    flags = [*_DEFINITIONS, *(f"-D{definition}" for definition in definitions)]
    sources, headers = (
        [*sorted(_SOURCES.glob(f"*{end}")), *sorted(_THIRD_PARTY.rglob(f"*{end}"))] for end in (".c", ".h")
    )
    path = build_c_program(sources, toolchain, flags, cache, headers=headers)
    return AgentProgram(path, file_sha256(path))


def static_toolchain(machine: str, cache: ContentCache) -> ZigToolchain:
    """Return what builds programs that need nothing of a device but its kernel.

    Args:
        machine: what the device's `uname -m` prints.

    Raises:
        DeviceTrouble: BROKEN, the SDK has no agent for such a machine.
    """
    if machine not in _TRIPLES:
        raise DeviceTrouble(
            TroubleKind.BROKEN,
            f"The SDK has no agent for the device's machine type {printable(machine)[:40]!r}.",
            next_step=f"Use a device with one of: {', '.join(_TRIPLES)}.",
        )
    return ZigToolchain(_TRIPLES[machine], cache.root / "zig", extra_flags=("-static",))


def build_c_program(
    sources: Sequence[Path],
    toolchain: CToolchain,
    flags: Sequence[str],
    cache: ContentCache,
    *,
    headers: Sequence[Path] = (),
) -> Path:
    """Return a program of ours in C, built unless the cache has it. Warnings are errors.

    Args:
        headers: files that they include, whose folders are searched.

    Raises:
        ToolchainError: the toolchain is missing or fails, or the cache cannot be written.
    """
    flags = [*_WARNINGS, *flags]
    folders = sorted({file.parent for file in (*sources, *headers)})

    def build(output: Path) -> None:
        objects = [output.with_name(f"{source.stem}.o") for source in sources]
        for source, compiled in zip(sources, objects, strict=True):
            toolchain.compile_c(source, compiled, folders, flags)
        toolchain.link(objects, output)

    files = [part for file in (*sources, *headers) for part in (file.name, file_sha256(file))]
    return cache.get_or_build(["device program", toolchain.fingerprint(), *flags, *files], ".program", build)
