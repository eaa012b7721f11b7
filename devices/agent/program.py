"""The device agent's program, built for the device's machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devices.device_trouble import DeviceTrouble, TroubleKind
from targets.process.content_cache import ContentCache, file_sha256
from targets.toolchain.zig import ZigToolchain

AGENT_DIR = Path(__file__).parent / "source"
# Of every C program of ours that devices run.
DEVICE_C_FLAGS = ("-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-Wall", "-Wextra", "-Werror")
# Static, with musl: it runs on every Linux and every Android, whatever C library is there.
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


def agent_for(machine: str, cache: ContentCache) -> AgentProgram:
    """The agent for what a device's `uname -m` says.

    Raises:
        DeviceTrouble: BROKEN, no agent can be built for such a machine.
        ToolchainError: it does not build.
    """
    return build_agent(agent_triple(machine), cache)


def agent_triple(machine: str) -> str:
    """zig's name of what the agent is built for on a device whose `uname -m` says `machine`.

    Raises:
        DeviceTrouble: BROKEN, there is no agent for such a machine.
    """
    try:
        return _TRIPLES[machine]
    except KeyError:
        shown = "".join(c for c in machine[:40] if c.isprintable())
        raise DeviceTrouble(
            TroubleKind.BROKEN,
            f"The device calls its machine {shown!r}, which the SDK has no agent for.",
            next_step=f"There are agents for: {', '.join(_TRIPLES)}.",
        ) from None


def static_toolchain(triple: str, cache: ContentCache) -> ZigToolchain:
    """What such programs are built with: they need nothing of the device but its kernel."""
    return ZigToolchain(triple, cache.root / "zig", extra_flags=("-static",))


def build_agent(triple: str, cache: ContentCache, definitions: Sequence[str] = ()) -> AgentProgram:
    """The agent for `triple`, built unless the cache has it: about 10 s on a fast machine, 20 ms afterwards.

    Args:
        definitions: further C macros, such as 'SYS_ROOT="/somewhere"' for tests.

    Raises:
        ToolchainError: zig is missing or fails, or the cache cannot be written.
    """
    toolchain = static_toolchain(triple, cache)
    flags = (*DEVICE_C_FLAGS, *(f"-D{definition}" for definition in definitions))
    header = AGENT_DIR / "agent.h"
    sources = sorted(AGENT_DIR.glob("*.c"))
    shared = ["agent", toolchain.fingerprint(), *flags, file_sha256(header)]

    def build(output: Path) -> None:
        toolchain.link([_build_object(source, shared, flags, toolchain, cache) for source in sources], output, ())

    key = [*shared, *(part for source in sources for part in (source.name, file_sha256(source)))]
    path = cache.get_or_build(key, ".agent", build)
    return AgentProgram(path, file_sha256(path))


def _build_object(
    source: Path, shared: Sequence[str], flags: Sequence[str], toolchain: ZigToolchain, cache: ContentCache
) -> Path:
    def build(output: Path) -> None:
        toolchain.compile_c(source, output, [AGENT_DIR], flags)

    return cache.get_or_build([*shared, source.name, file_sha256(source)], ".o", build)
