"""Opens the tools that build generators, and the generators that users name; checks what users type."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.schedule.apply import apply_header
from halide_autotune.autotune_loop.schedule.check import CPP_KEYWORDS
from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.cmake.generator import cmake_generator
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import GeneratorReference, parse_generator, resolve_name
from halide_autotune.targets.generator.run import AutoschedulerRequest
from halide_autotune.targets.halide_install import HalideInstall, find_halide_install
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.profile.loader import HOST, load_profile
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.profile.target_features import with_target_features
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_C_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def _tell_nobody(text: str) -> None:
    pass


@dataclass(frozen=True)
class Workbench:
    """The tools of this machine that commands share.

    Attributes:
        tell: called with a phrase before what may take long.
    """

    halide: HalideInstall
    cache: ContentCache
    compiler: HostCppCompiler
    tell: Callable[[str], None] = _tell_nobody

    def apply_header(self, text: str) -> AutoschedulerRequest:
        """Return what applies a header to a generator; see `autotune_loop.schedule.apply`.

        Raises:
            GeneratorError, ToolchainError: as `apply_header` there.
        """
        return apply_header(text, self.compiler, self.cache)


def open_workbench(settings: Settings, tell: Callable[[str], None] = _tell_nobody) -> Workbench:
    """Return Halide, the cache of built files and the host's compiler.

    Args:
        tell: called with a phrase before what may take long.

    Raises:
        ToolchainError: Halide is not installed.
    """
    halide = find_halide_install()
    cache = ContentCache(settings.cache_folder)
    return Workbench(halide, cache, HostCppCompiler(halide, cache, settings.environment), tell)


def named_profile(devices: DeviceOptions, settings: Settings) -> TargetProfile:
    """The profile that is asked for, else this machine's, with the features that are asked for; no device is needed.

    Raises:
        ProfileError, UsageError: as `load_profile` and `with_target_features`.
    """
    profile = load_profile(devices.target or HOST, settings.profile_folder)
    return with_target_features(profile, devices.target_features)


def named_generator(
    generator: str, parameters: Iterable[str], workbench: Workbench, settings: Settings, build: CppBuild | None = None
) -> GeneratorReference:
    """Return the generator that is meant: a file, or with `build.cmake` a target of a CMake project.

    Raises:
        GeneratorError, UsageError, ToolchainError: as `parse_generator` and `cmake_generator`.
    """
    if build is None or build.cmake is None:
        if build is not None and build.cmake_is_built:
            raise UsageError("--cmake-is-built needs --cmake.", next_step="Give the build folder with --cmake.")
        return parse_generator(generator, parameters, build)
    return cmake_generator(generator, parameters, build, settings.environment, workbench.tell)


@contextlib.contextmanager
def open_named_generator(
    generator: str,
    parameters: Iterable[str],
    workbench: Workbench,
    settings: Settings,
    build: CppBuild | None = None,
) -> Iterator[tuple[GeneratorReference, GeneratorProgram]]:
    """Import or build the generator for a while, and fill in its name.

    Raises:
        GeneratorError, UsageError, ToolchainError: as `named_generator`, `open_generator` and `resolve_name`.
    """
    reference = named_generator(generator, parameters, workbench, settings, build)
    program = open_generator(reference, workbench.halide, workbench.compiler, settings.environment)
    with contextlib.closing(program):
        yield resolve_name(reference, program.names), program


def check_function_name(name: str) -> str:
    """`name`, when it can be the name of a C function and of files, or of a C++ function in namespaces (ns::name).

    Raises:
        UsageError: it cannot.
    """
    for part in name.split("::"):
        _check_name(part)
    return name


def _check_name(name: str) -> None:
    if name in CPP_KEYWORDS or name in ("main", "restrict"):  # C reads the shipped header, too
        raise UsageError(
            f"{name!r} cannot be a function's name: it is a word of C or C++.",
            next_step="Give another with --function-name, or call the generator otherwise.",
        )
    if not _C_NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be a function's name.", next_step="Use letters, digits and underscores.")


def free_run_folder(parent: Path, name: str, target: str) -> Path:
    """The first of tuned/<name>-<target>-1, -2 … that does not exist yet."""
    number = 1
    while (folder := parent / "tuned" / f"{name}-{target}-{number}").exists():
        number += 1
    return folder
