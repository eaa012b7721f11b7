"""The plug-in that gives programs under QEMU's user mode a simulated clock: built here, with its command line.

A program's own clock then tells the time that its instructions, cache misses and page faults would take on the
profile's machine: equal in every run, and in the order of real times far more often than an emulator's own.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from targets.errors import EmulatorError, ProfileError, ToolchainError, UsageError
from targets.process.compiler_run import run_compiler
from targets.process.content_cache import ContentCache, file_sha256
from targets.process.limited_process import ProcessLimits, run_limited
from targets.profile.profile import MachineParameters

NOMINAL_FREQUENCY_HZ = 2_000_000_000
MOST_CORES = 256
# As plugin.c knows them.
SIMULATED_GUESTS = ("x86_64", "aarch64", "arm", "riscv64", "hexagon")

_SOURCE_FOLDER = Path(__file__).parent / "simulated_clock"
_COMPILERS = ("gcc", "cc", "clang")
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden")
_VERSION_LIMITS = ProcessLimits(time_s=20.0, memory_bytes=2 * 2**30)
# The plug-in speaks version 1 of the emulator's interface.
_FIRST_VERSION, _FIRST_VERSION_WITHOUT = (6, 0), (9, 0)

_FALLBACK_L1_BYTES = 32 * 1024
_FALLBACK_L2_BYTES = 512 * 1024
_SMALLEST_CACHE_BYTES = 512
_LARGEST_CACHE_BYTES = 2**30
# Memory keeps up with so many cores; more of them share what it gives.
_CORES_OF_FULL_BANDWIDTH = 4
# Of the random bytes that a program finds at its start, so that all runs find the same.
_SEED = "1"


def build_simulated_clock(compiler_environment: Mapping[str, str], cache: ContentCache) -> Path:
    """The plug-in (one for all guests), compiled for this machine on its first use and cached.

    Args:
        compiler_environment: what the compiler sees; it is looked for on its PATH.

    Raises:
        ToolchainError: no C compiler is installed, or it fails.
    """
    sources = _sources()
    key = ["simulated clock", *_FLAGS]
    for path in sources:
        key += [path.name, file_sha256(path)]

    def build(output: Path) -> None:
        compiler = _compiler(compiler_environment)
        files = [str(path) for path in sources if path.suffix == ".c"]
        failure = "The simulated clock's plug-in does not compile"
        run_compiler([compiler, *_FLAGS, *files, "-o", str(output)], compiler_environment, failure, compiler)

    return cache.get_or_build(key, ".so", build)


def clock_model_sha256() -> str:
    """Of the model that simulated times come from (hex): times of two models are never compared."""
    hashes = "".join(file_sha256(path) for path in _sources())
    return hashlib.sha256(hashes.encode()).hexdigest()


def _sources() -> list[Path]:
    return sorted(path for path in _SOURCE_FOLDER.iterdir() if path.suffix in (".c", ".h"))


def simulated_clock_arguments(
    plugin: Path, machine: MachineParameters, threads: int, *, marked: bool = False
) -> tuple[str, ...]:
    """What the emulator gets before the program, so that the program's clock is the simulated one.

    For equal times the program must be given by a path of equal length in every run, with an equal environment: both
    lie on its stack. It must keep to one thread (the runner's `--simulated-cores` does).

    Args:
        plugin: from `build_simulated_clock`.
        machine: its caches are simulated; for those that are not known, common sizes.
        threads: cores that want lines from memory at the same time, 1 to `MOST_CORES`.
        marked: the clock stands until the program says that it is wanted, as the runner does before it times a kernel.

    Raises:
        ProfileError: a cache is smaller than the one before it, or of a size that no machine has.
        UsageError: a number of threads that cannot be simulated.
    """
    if not 1 <= threads <= MOST_CORES:
        raise UsageError(f"The simulated clock got {threads} threads; expected 1 to {MOST_CORES}.")
    l1_bytes, l2_bytes, last_level_bytes = _cache_sizes_bytes(machine)
    # Commas end a value for the emulator; two stand for one.
    values = [
        f"file={str(plugin).replace(',', ',,')}",
        f"l1_bytes={l1_bytes}",
        f"l2_bytes={l2_bytes}",
        f"last_level_bytes={last_level_bytes}",
        f"frequency_hz={NOMINAL_FREQUENCY_HZ}",
        f"memory_percent={max(100, 100 * threads // _CORES_OF_FULL_BANDWIDTH)}",
    ]
    if marked:
        values.append("marked=on")
    return "-seed", _SEED, "-plugin", ",".join(values)


def check_emulator(command: str, environment: Mapping[str, str]) -> None:
    """Make sure that an emulator takes the plug-in; about 10 ms.

    Raises:
        EmulatorError: it cannot be run, does not tell its version, is too old or too new, or emulates a processor whose
            programs the plug-in does not know.
    """
    guest = Path(command).name.removeprefix("qemu-").removesuffix("-static")
    if guest not in SIMULATED_GUESTS:
        raise EmulatorError(
            f"The simulated clock knows the emulators qemu-{', qemu-'.join(SIMULATED_GUESTS)}, and {command} is none.",
            next_step="Take the emulator's own time.",
        )
    next_step = "Use QEMU 6.0 to 8.2, or take the emulator's own time."
    try:
        outcome = run_limited([command, "--version"], _VERSION_LIMITS, environment=environment)
    except OSError as error:
        raise EmulatorError(f"{command} cannot be run: {error.strerror}.", next_step=next_step) from error
    found = re.search(r"version (\d+)\.(\d+)", outcome.log)
    if not outcome.succeeded or found is None:
        raise EmulatorError(f"{command} does not tell its version, as QEMU's emulators do.", next_step=next_step)
    version = (int(found[1]), int(found[2]))
    if not _FIRST_VERSION <= version < _FIRST_VERSION_WITHOUT:
        text = ".".join(map(str, version))
        raise EmulatorError(
            f"{command} has version {text}, which the simulated clock does not fit.", next_step=next_step
        )


def _compiler(environment: Mapping[str, str]) -> str:
    for name in _COMPILERS:
        found = shutil.which(name, path=environment.get("PATH", ""))
        if found:
            return found
    raise ToolchainError(
        f"The simulated clock needs a C compiler of this machine, and none of {', '.join(_COMPILERS)} is installed.",
        next_step="On Debian: apt-get install gcc. The emulator's own time needs none.",
    )


def _cache_sizes_bytes(machine: MachineParameters) -> tuple[int, int, int]:
    """Level 1, level 2 and the last one; 0 where level 2 is the last."""
    l1_bytes = machine.l1_data_cache_bytes or _FALLBACK_L1_BYTES
    l2_bytes = machine.l2_cache_bytes or max(_FALLBACK_L2_BYTES, 2 * l1_bytes)
    last_level_bytes = machine.last_level_cache_bytes or 0
    for what, size_bytes in (
        ("level 1", l1_bytes),
        ("level 2", l2_bytes),
        ("last level", last_level_bytes or l2_bytes),
    ):
        if not _SMALLEST_CACHE_BYTES <= size_bytes <= _LARGEST_CACHE_BYTES:
            raise ProfileError(
                f"The {what} cache has {size_bytes} bytes, which cannot be simulated; "
                f"expected {_SMALLEST_CACHE_BYTES} to {_LARGEST_CACHE_BYTES}."
            )
    if l2_bytes <= l1_bytes or 0 < last_level_bytes < l2_bytes:
        raise ProfileError(
            f"Caches of {l1_bytes}, {l2_bytes} and {last_level_bytes} bytes cannot be simulated; "
            "expected each to be larger than the one before."
        )
    return l1_bytes, l2_bytes, last_level_bytes if last_level_bytes > l2_bytes else 0
