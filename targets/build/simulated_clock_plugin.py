"""The QEMU plug-in that gives programs a simulated clock: its build and its command line.

The program's own clock then shows the time that its instructions, cache misses and page faults would take on the
profile's machine. That time is equal in every run, and orders programs as real times do far more often than an
emulator's own time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from halide_autotune.targets.errors import EmulatorError, ProfileError, UsageError, os_error_as
from halide_autotune.targets.process.compiler_run import compiler_facts, find_compiler, run_compiler
from halide_autotune.targets.process.content_cache import ContentCache, file_sha256
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
from halide_autotune.targets.profile.profile import MachineParameters

MOST_CORES = 256
# Those that plugin.c knows.
SIMULATED_GUESTS = ("x86_64", "aarch64", "arm", "riscv64", "hexagon")

_SOURCE_FOLDER = Path(__file__).parent / "simulated_clock"
_COMPILERS = ("gcc", "cc", "clang")
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden")
_ASKING_LIMITS = ProcessLimits(time_s=20.0, memory_bytes=2 * 2**30)
# Since this version of QEMU plug-ins see system calls.
_FIRST_VERSION = (6, 0)
_USE_ANOTHER = "Use QEMU 6.0 or later, built with plug-ins, or --clock emulated, the emulator's own time."

_FALLBACK_L1_BYTES = 32 * 1024
_FALLBACK_L2_BYTES = 512 * 1024
_SMALLEST_CACHE_BYTES = 512
_LARGEST_CACHE_BYTES = 2**30
# More cores than these share the memory's bandwidth.
_CORES_OF_FULL_BANDWIDTH = 4
# Of the random bytes that the kernel gives a program at its start.
_SEED = "1"
# Since QEMU 8.2 the kernel chooses where the memory of a 64-bit guest lies, by chance, unless a place is reserved for
# all of it. An x86-64 has a page beyond any place; there, times of two runs may differ by a nanosecond.
_GUESTS_WITH_A_PLACE = ("aarch64", "riscv64")
_RESERVED_BYTES = 7 << 36


def build_simulated_clock(compiler_environment: Mapping[str, str], cache: ContentCache) -> Path:
    """Build the plug-in for this machine, one for all guests; cached.

    Args:
        compiler_environment: the compiler's environment; its PATH is searched for the compiler.

    Raises:
        ToolchainError: no C compiler is installed, or it fails.
    """
    fix = "On Debian: apt-get install gcc. The emulator's own time (--clock emulated) needs none."
    compiler = find_compiler(_COMPILERS, compiler_environment, "The simulated clock needs a C compiler", fix)
    sources = _sources()
    key = ["simulated clock", *compiler_facts(compiler), *_FLAGS]
    for path in sources:
        key += [path.name, file_sha256(path)]

    def build(output: Path) -> None:
        files = [str(path) for path in sources if path.suffix == ".c"]
        failure = "The simulated clock's plug-in does not compile"
        run_compiler([compiler, *_FLAGS, *files, "-o", str(output)], compiler_environment, failure, compiler)

    return cache.get_or_build(key, ".so", build)


def clock_model_sha256() -> str:
    """Return the hash (hexadecimal) of the model that simulated times come from; times of two models never compare."""
    hashes = "".join(file_sha256(path) for path in _sources())
    return hashlib.sha256(hashes.encode()).hexdigest()


def _sources() -> list[Path]:
    return sorted(path for path in _SOURCE_FOLDER.iterdir() if path.suffix in (".c", ".h"))


def simulated_clock_arguments(
    plugin: Path, emulator: str, machine: MachineParameters, threads: int, *, marked: bool = False
) -> tuple[str, ...]:
    """Return the arguments that the emulator gets before the program, for a simulated clock.

    Times are equal only if the program's path has the same length in every run and its environment is the same: both
    are on its stack. The program must use one thread (the runner's `--simulated-cores` does).

    Args:
        plugin: from `build_simulated_clock`.
        emulator: its command.
        machine: its caches are simulated; unknown ones get common sizes.
        threads: cores that use the memory at the same time, 1 to `MOST_CORES`.
        marked: the clock stands still until the program starts it, as the runner does before it times a kernel.

    Raises:
        ProfileError: a cache is smaller than the one before it, or has a size that no machine has.
        UsageError: so many threads cannot be simulated.
    """
    if not 1 <= threads <= MOST_CORES:
        raise UsageError(f"The simulated clock has {threads} threads; expected 1 to {MOST_CORES}.")
    l1_bytes, l2_bytes, last_level_bytes = _cache_sizes_bytes(machine)
    # For the emulator a comma ends a value, and two are a comma in it.
    values = [
        f"file={str(plugin).replace(',', ',,')}",
        f"l1_bytes={l1_bytes}",
        f"l2_bytes={l2_bytes}",
        f"last_level_bytes={last_level_bytes}",
        f"memory_percent={max(100, 100 * threads // _CORES_OF_FULL_BANDWIDTH)}",
    ]
    if marked:
        values.append("marked=on")
    place = ("-R", hex(_RESERVED_BYTES)) if _guest(emulator) in _GUESTS_WITH_A_PLACE else ()
    return "-seed", _SEED, *place, "-plugin", ",".join(values)


def check_emulator(command: str, environment: Mapping[str, str]) -> None:
    """Check that an emulator takes the plug-in; about 20 ms.

    Raises:
        EmulatorError: it cannot be run, prints no version, is too old, is built without plug-ins, or emulates a
            processor that the plug-in does not know.
    """
    if _guest(command) not in SIMULATED_GUESTS:
        raise EmulatorError(
            f"The simulated clock does not support {command}, only qemu-{', qemu-'.join(SIMULATED_GUESTS)}.",
            next_step="Use --clock emulated, the emulator's own time.",
        )
    with os_error_as(EmulatorError, f"{command} cannot be run", next_step=_USE_ANOTHER):
        version = run_limited([command, "--version"], _ASKING_LIMITS, environment=environment)
        options = run_limited([command, "-h"], _ASKING_LIMITS, environment=environment)
    found = re.search(r"version (\d+)\.(\d+)", version.log)
    if not version.succeeded or found is None:
        raise EmulatorError(f"{command} --version prints no version, as QEMU's emulators do.", next_step=_USE_ANOTHER)
    if (int(found[1]), int(found[2])) < _FIRST_VERSION:
        text = f"The simulated clock does not support version {found[1]}.{found[2]} of {command}."
        raise EmulatorError(text, next_step=_USE_ANOTHER)
    if "-plugin" not in options.log:
        # Such as Debian's since version 13.
        text = f"{command} takes no plug-ins, as static builds of QEMU do not, and the simulated clock is one."
        raise EmulatorError(text, next_step=_USE_ANOTHER)


def _guest(command: str) -> str:
    return Path(command).name.removeprefix("qemu-").removesuffix("-static")


def _cache_sizes_bytes(machine: MachineParameters) -> tuple[int, int, int]:
    """Return the sizes of level 1, level 2 and the last level; 0 if level 2 is the last."""
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
