"""A batch of kernels linked into one executable with the runner and Halide's runtime."""

from __future__ import annotations

import os
import re
import shutil
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from targets.errors import ToolchainError
from targets.halide_install import HalideInstall
from targets.process.content_cache import ContentCache, file_sha256
from targets.process.limited_process import ProcessLimits, run_limited
from targets.toolchain.c_toolchain import CToolchain

RUNNER_DIR = Path(__file__).parent / "runner"
RUNNER_FLAGS = ("-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra")

_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_MAXIMUM_NAME_LENGTH = 200


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
    """A runnable batch: the runner, Halide's runtime and the kernels.

    Attributes:
        path: the executable file.
        kernels: the names that `--kernel` takes.
        sha256: of the file, hexadecimal.
        size_bytes: of the file.
    """

    path: Path
    kernels: tuple[str, ...]
    sha256: str
    size_bytes: int


def link_executable(
    kernels: Sequence[KernelObject],
    runtime_object: Path,
    toolchain: CToolchain,
    cache: ContentCache,
    halide: HalideInstall,
    output: Path,
) -> Executable:
    """Link kernels, Halide's runtime and the runner into one executable at `output`.

    Takes about 0.3 s once the runner's objects are in the cache. `output` appears complete or not at all.

    Raises:
        ToolchainError: no kernel, a name that is no C identifier or is there twice, a damaged object (it is
            named), or the link fails.
    """
    _check_names(kernels)
    for kernel in kernels:
        _check_object(kernel)
    runner_objects = _runner_objects(toolchain, cache, halide)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".linking-", dir=output.parent))
    except OSError as error:
        raise ToolchainError(f"{output} cannot be written: {error.strerror or error}.") from error
    try:
        table = _compile_table(kernels, folder, toolchain, halide)
        linked = folder / output.name
        objects = [*runner_objects, table, *(kernel.object_path for kernel in kernels), runtime_object]
        try:
            toolchain.link(objects, linked)
        except ToolchainError as error:
            raise _name_culprit(error, kernels) from error
        executable = Executable(
            output, tuple(kernel.name for kernel in kernels), file_sha256(linked), linked.stat().st_size
        )
        os.replace(linked, output)
        return executable
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_names(kernels: Sequence[KernelObject]) -> None:
    if not kernels:
        raise ToolchainError("There is no kernel to link.")
    seen: set[str] = set()
    for kernel in kernels:
        if not _C_IDENTIFIER.fullmatch(kernel.name) or len(kernel.name) > _MAXIMUM_NAME_LENGTH:
            raise ToolchainError(f"The kernel name {kernel.name!r} is not a C identifier.")
        if kernel.name in seen:
            raise ToolchainError(f"Two kernels of one executable are called '{kernel.name}'.")
        seen.add(kernel.name)


def _check_object(kernel: KernelObject) -> None:
    """Refuse what is no ELF file or was cut short: the section table must lie inside the file."""
    try:
        size_bytes = kernel.object_path.stat().st_size
        with open(kernel.object_path, "rb") as file:
            header = file.read(64)
    except OSError as error:
        raise _damaged(kernel, error.strerror or str(error)) from error
    if header[:4] != b"\x7fELF" or len(header) < 52:
        raise _damaged(kernel, "it is not an ELF object file")
    if header[4] == 2 and len(header) == 64:
        (table_offset,), (entry_bytes, entries) = (
            struct.unpack_from("<Q", header, 40),
            struct.unpack_from("<HH", header, 58),
        )
    else:
        (table_offset,), (entry_bytes, entries) = (
            struct.unpack_from("<I", header, 32),
            struct.unpack_from("<HH", header, 46),
        )
    if table_offset == 0 or table_offset + entry_bytes * entries > size_bytes:
        raise _damaged(kernel, f"it is cut short, at {size_bytes} bytes")


def _damaged(kernel: KernelObject, what: str) -> ToolchainError:
    return ToolchainError(
        f"The object of the kernel '{kernel.name}', {kernel.object_path}, cannot be linked: {what}.",
        next_step="Build this schedule again, or leave it out.",
    )


def _name_culprit(error: ToolchainError, kernels: Sequence[KernelObject]) -> ToolchainError:
    """The same error, with the kernel named that the linker complains about, if it is one."""
    for kernel in kernels:
        # A path may be the beginning of another one: it has to end where it stands.
        path = re.escape(str(kernel.object_path))
        symbol = rf"undefined symbol: {kernel.name}_(argv|metadata)\b"
        if re.search(rf"{path}(?![\w.])|{symbol}", error.message):
            return _damaged(kernel, error.message)
    return error


def _runner_objects(toolchain: CToolchain, cache: ContentCache, halide: HalideInstall) -> list[Path]:
    headers = [RUNNER_DIR / "runner.h", halide.include_dir / "HalideRuntime.h"]
    shared = [toolchain.fingerprint(), *RUNNER_FLAGS, *(file_sha256(path) for path in headers)]
    objects = []
    for source in (*sorted(RUNNER_DIR.glob("*.c")), *toolchain.shim_sources):

        def build(output: Path, source: Path = source) -> None:
            toolchain.compile_c(source, output, [RUNNER_DIR, halide.include_dir], RUNNER_FLAGS)

        key = ["runner", source.name, file_sha256(source), *shared]
        objects.append(cache.get_or_build(key, ".o", build))
    return objects


def _compile_table(kernels: Sequence[KernelObject], folder: Path, toolchain: CToolchain, halide: HalideInstall) -> Path:
    source, compiled = folder / "kernels.c", folder / "kernels.o"
    source.write_text(_table_source([kernel.name for kernel in kernels]))
    toolchain.compile_c(source, compiled, [RUNNER_DIR, halide.include_dir], RUNNER_FLAGS)
    return compiled


def _table_source(names: Sequence[str]) -> str:
    declarations = "".join(
        f"int {name}_argv(void **arguments);\nconst struct halide_filter_metadata_t *{name}_metadata(void);\n"
        for name in names
    )
    rows = "".join(f'    {{"{name}", {name}_argv, {name}_metadata}},\n' for name in names)
    return (
        f'#include "runner.h"\n\n{declarations}\n'
        f"const struct runner_kernel runner_kernels[] = {{\n{rows}}};\n"
        f"const int runner_kernel_count = {len(names)};\n"
    )


_LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
_FILE_NAME = "halide_runtime"
_ERROR_LINES = 6
# They change nothing in a runtime; with strict_float Halide 21 fails on its own runtime's code.
_FEATURES_OF_KERNELS = ("no_runtime", "strict_float")


def build_runtime_object(halide_target: str, cache: ContentCache, halide: HalideInstall) -> Path:
    """Halide's standalone runtime for `halide_target`, linked once with kernels built with `-no_runtime`.

    Takes under a second the first time; cached by the Halide installed and the target.

    Args:
        halide_target: such as 'arm-64-linux'; the features `no_runtime` and `strict_float` have no effect.

    Raises:
        ToolchainError: Halide does not know the target or has no runtime for it; its own words are given.
    """
    target = halide_target.strip()
    for feature in _FEATURES_OF_KERNELS:
        target = target.replace(f"-{feature}", "")
    key = ["halide runtime", halide.fingerprint(), target]
    return cache.get_or_build(key, ".o", lambda output: _build(target, halide, output))


def _build(target: str, halide: HalideInstall, output: Path) -> None:
    command = [str(halide.bin_dir / "gengen"), "-r", _FILE_NAME, "-e", "object", "-o", str(output.parent)]
    try:
        outcome = run_limited([*command, f"target={target}"], _LIMITS, environment={"LC_ALL": "C"})
    except OSError as error:
        raise ToolchainError(
            f"Halide's program {command[0]} cannot be run: {error}.",
            next_step="Install Halide again with: pip install --force-reinstall halide",
        ) from error
    # Halide names objects for Windows differently.
    made = [path for path in output.parent.glob(f"{_FILE_NAME}.*") if path.suffix in (".o", ".obj")]
    if not outcome.succeeded or not made:
        words = " ".join(outcome.log.split("\n")[:_ERROR_LINES]).strip()
        raise ToolchainError(
            f"Halide {halide.version} cannot make its runtime for the target '{target}' "
            f"({outcome.describe()}): {words}",
            next_step="Check the Halide target string of the profile, such as 'arm-64-linux'.",
        )
    os.replace(made[0], output)
