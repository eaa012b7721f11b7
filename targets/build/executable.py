"""Link a batch of kernels into one executable with the runner and Halide's runtime."""

from __future__ import annotations

import os
import re
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.targets.build.c_text import c_string
from halide_autotune.targets.build.kernel_sources import KernelSources, missing_symbols, undefined_symbols
from halide_autotune.targets.errors import KernelLinkError, ToolchainError, os_error_as
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.content_cache import ContentCache, file_sha256
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.target_features import NAME_MANGLING

RUNNER_DIR = Path(__file__).parent / "runner"
RUNNER_FLAGS = ("-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra")

_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LONGEST_NAME_CHARACTERS = 200
_RUNTIME_LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
_RUNTIME_NAME = "halide_runtime"
_ERROR_LINES = 6
# A runtime does not depend on these; with strict_float Halide 21 fails on its own runtime.
_FEATURES_OF_KERNELS = ("no_runtime", "strict_float", "no_asserts", "no_bounds_query", NAME_MANGLING)


@dataclass(frozen=True)
class BuildTools:
    """What every build needs besides the generator.

    Attributes:
        kernel_sources: what its kernels call.
    """

    halide: HalideInstall
    cache: ContentCache
    toolchain: CToolchain
    kernel_sources: KernelSources = field(default_factory=KernelSources)


@dataclass(frozen=True)
class KernelObject:
    """One compiled schedule.

    Attributes:
        name: its function name, a C identifier; the object defines `<name>_argv` and `<name>_metadata`.
        object_path: the object file, compiled by Halide with the target feature `no_runtime`.
    """

    name: str
    object_path: Path


@dataclass(frozen=True)
class Executable:
    """A program of the runner, Halide's runtime and the kernels.

    Attributes:
        path: the executable file.
        kernels: the names that `--kernel` takes.
        sha256: of the file, in hexadecimal.
    """

    path: Path
    kernels: tuple[str, ...]
    sha256: str


def link_executable(
    kernels: Sequence[KernelObject],
    halide_target: str,
    tools: BuildTools,
    output: Path,
    stop: StopSignal | None = None,
    defaults: Sequence[str] = (),
) -> Executable:
    """Link kernels, Halide's runtime for the target and the runner into one executable at `output`.

    Takes about 0.3 s once the runner's objects are in the cache. `output` appears complete or not at all.

    Args:
        defaults: options that the runner has before those that it is called with; their files lie beside it.

    Raises:
        KernelLinkError: an object is damaged, or calls what nothing defines; they are named.
        ToolchainError: there is no kernel, a name is not a C identifier or occurs twice, Halide has no runtime for the
            target, the link fails, or `stop` is set before its end.
    """
    _check_names(kernels)
    for kernel in kernels:
        _check_object(kernel)
    runtime = build_runtime_object(halide_target, tools.cache, tools.halide)
    runner = _runner_objects(tools, stop)
    names = tuple(kernel.name for kernel in kernels)
    with os_error_as(ToolchainError, f"{output} cannot be written"):
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".linking-", dir=output.parent) as folder:
            linked = Path(folder) / output.name
            table = _compile_table(
                _table(kernels, NAME_MANGLING in halide_target.split("-"), defaults), Path(folder), tools, stop
            )
            called = tools.kernel_sources.objects(Path(folder), tools.toolchain, tools.halide, stop)
            objects = [*runner, table, *(kernel.object_path for kernel in kernels), *called, runtime]
            try:
                tools.toolchain.link(objects, linked, stop, is_cpp=tools.kernel_sources.has_cpp)
            except ToolchainError as error:
                raise _name_culprit(error, kernels) from error
            executable = Executable(output, names, file_sha256(linked))
            os.replace(linked, output)
            return executable


def build_runtime_object(halide_target: str, cache: ContentCache, halide: HalideInstall) -> Path:
    """Build Halide's standalone runtime, to be linked once with kernels that are built with `-no_runtime`.

    Takes less than a second the first time; cached by the installed Halide and the target.

    Args:
        halide_target: such as 'arm-64-linux'; features of kernels alone, such as `no_runtime`, have no effect.

    Raises:
        ToolchainError: Halide does not know the target, or has no runtime for it.
    """
    words = halide_target.strip().split("-")
    target = "-".join(word for word in words if word not in _FEATURES_OF_KERNELS)
    key = ["halide runtime", halide.fingerprint(), target]
    return cache.get_or_build(key, ".o", lambda output: _build_runtime(target, halide, output))


def _build_runtime(target: str, halide: HalideInstall, output: Path) -> None:
    command = [str(halide.bin_dir / "gengen"), "-r", _RUNTIME_NAME, "-e", "object", "-o", str(output.parent)]
    try:
        outcome = run_limited([*command, f"target={target}"], _RUNTIME_LIMITS, environment={"LC_ALL": "C"})
    except OSError as error:
        raise ToolchainError(
            f"Halide's program {command[0]} cannot be run: {error}.",
            next_step="Reinstall Halide: pip install --force-reinstall halide",
        ) from error
    # For Windows the object is called .obj.
    made = [path for path in output.parent.glob(f"{_RUNTIME_NAME}.*") if path.suffix in (".o", ".obj")]
    if not outcome.succeeded or not made:
        words = " ".join(outcome.log.split("\n")[:_ERROR_LINES]).strip()
        raise ToolchainError(
            f"Halide {halide.version} cannot build its runtime for the target '{target}' "
            f"({outcome.describe()}): {words}",
            next_step="Check the profile's Halide target, such as 'arm-64-linux'.",
        )
    os.replace(made[0], output)


def _check_names(kernels: Sequence[KernelObject]) -> None:
    if not kernels:
        raise ToolchainError("There is no kernel to link.")
    seen: set[str] = set()
    for kernel in kernels:
        if not _C_IDENTIFIER.fullmatch(kernel.name) or len(kernel.name) > _LONGEST_NAME_CHARACTERS:
            raise ToolchainError(f"The kernel name {kernel.name!r} is not a C identifier.")
        if kernel.name in seen:
            raise ToolchainError(f"Two kernels of one executable are called '{kernel.name}'.")
        seen.add(kernel.name)


def _check_object(kernel: KernelObject) -> None:
    """Refuse a file that is not ELF or is cut short: its section table must lie inside it."""
    try:
        size_bytes = kernel.object_path.stat().st_size
        with open(kernel.object_path, "rb") as file:
            header = file.read(64)
    except OSError as error:
        raise _damaged(kernel, error.strerror or str(error)) from error
    if header[:4] != b"\x7fELF" or len(header) < 52:
        raise _damaged(kernel, "it is not an ELF object file")
    is_64_bit = header[4] == 2 and len(header) == 64
    (table_offset,) = struct.unpack_from("<Q", header, 40) if is_64_bit else struct.unpack_from("<I", header, 32)
    entry_bytes, entries = struct.unpack_from("<HH", header, 58 if is_64_bit else 46)
    if table_offset == 0 or table_offset + entry_bytes * entries > size_bytes:
        raise _damaged(kernel, f"it is cut short, at {size_bytes} bytes")


def _damaged(kernel: KernelObject, what: str) -> KernelLinkError:
    return KernelLinkError(
        f"The object of kernel '{kernel.name}', {kernel.object_path}, cannot be linked: {what}.",
        next_step="Build this schedule again, or leave it out.",
        kernels=(kernel.name,),
    )


def _name_culprit(error: ToolchainError, kernels: Sequence[KernelObject]) -> ToolchainError:
    """Return the error with what the kernels miss, or the kernel that the linker complains about, if it is one."""
    # Another path may start with a kernel's: it must end here.
    named = [
        kernel for kernel in kernels if re.search(rf"{re.escape(str(kernel.object_path))}(?![\w.])", error.message)
    ]
    if missing := undefined_symbols(error.message, [kernel.name for kernel in kernels]):
        return missing_symbols(missing, tuple(kernel.name for kernel in named), error)
    for kernel in kernels:
        if kernel in named or re.search(rf"undefined symbol: {kernel.name}_(argv|metadata)\b", error.message):
            return _damaged(kernel, error.message)
    return error


def _runner_objects(tools: BuildTools, stop: StopSignal | None) -> list[Path]:
    include_dirs = [RUNNER_DIR, tools.halide.include_dir]
    headers = [RUNNER_DIR / "runner.h", tools.halide.include_dir / "HalideRuntime.h"]
    shared = [tools.toolchain.fingerprint(), *RUNNER_FLAGS, *(file_sha256(path) for path in headers)]
    objects = []
    for source in (*sorted(RUNNER_DIR.glob("*.c")), *tools.toolchain.shim_sources):

        def build(output: Path, source: Path = source) -> None:
            tools.toolchain.compile_c(source, output, include_dirs, RUNNER_FLAGS, stop)

        key = ["runner", source.name, file_sha256(source), *shared]
        objects.append(tools.cache.get_or_build(key, ".o", build))
    return objects


def _table(kernels: Sequence[KernelObject], is_mangled: bool, defaults: Sequence[str]) -> str:
    """The C source of what the runner is made for.

    Args:
        is_mangled: the kernels' symbols are those of C++ functions (Itanium C++ ABI, "Mangling").
    """

    def symbol(name: str, types: str) -> str:
        return f' __asm__("_Z{len(name)}{name}{types}")' if is_mangled else ""

    declarations = "".join(
        f"int {kernel.name}_argv(void **arguments){symbol(f'{kernel.name}_argv', 'PPv')};\n"
        f"const struct halide_filter_metadata_t *{kernel.name}_metadata(void)"
        f"{symbol(f'{kernel.name}_metadata', 'v')};\n"
        for kernel in kernels
    )
    rows = "".join(f'    {{"{kernel.name}", {kernel.name}_argv, {kernel.name}_metadata}},\n' for kernel in kernels)
    words = "".join(f"    {c_string(word)},\n" for word in defaults)
    return (
        f'#include "runner.h"\n\n{declarations}\n'
        f"const struct runner_kernel runner_kernels[] = {{\n{rows}}};\n"
        f"const int runner_kernel_count = {len(kernels)};\n"
        f"const char *const runner_defaults[] = {{\n{words}    NULL,\n}};\n"
    )


def _compile_table(text: str, folder: Path, tools: BuildTools, stop: StopSignal | None) -> Path:
    source, compiled = folder / "kernels.c", folder / "kernels.o"
    source.write_text(text)
    tools.toolchain.compile_c(source, compiled, [RUNNER_DIR, tools.halide.include_dir], RUNNER_FLAGS, stop)
    return compiled
