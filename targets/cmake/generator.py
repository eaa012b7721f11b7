"""GENERATOR as a target of a CMake project: `target[:name]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from halide_autotune.targets.cmake.build_folder import open_build_folder
from halide_autotune.targets.cmake.reply import EXECUTABLE, CMakeReply, CMakeTarget, read_reply
from halide_autotune.targets.cmake.target_build import needed_first, target_build
from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.generator.reference import GeneratorKind, GeneratorReference, parse_parameters
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.values.checks import nearest
from halide_autotune.targets.values.options import differing_options

_MOST_NAMES = 20


def cmake_generator(
    text: str,
    parameters: Iterable[str],
    build: CppBuild,
    environment: Mapping[str, str],
    tell: Callable[[str], None],
) -> GeneratorReference:
    """Return the generator that a target of `build.cmake` is, with all that CMake compiles and links for it.

    CMake is run first, and what the target depends on is built; neither where `build.cmake_is_built`.

    Args:
        text: `target` or `target:name`.
        parameters: each `key=value`.
        tell: called with a phrase before each step.

    Raises:
        UsageError: there is no such target, it is not an executable, the folder is not configured, or options are
            given that CMake decides.
        ToolchainError: CMake is missing, or fails; the message has its first error.
        GeneratorError: the target is made from something that the SDK cannot compile.
    """
    assert build.cmake is not None
    bare = CppBuild(
        cmake=build.cmake,
        cmake_is_built=build.cmake_is_built,
        kernel_sources=build.kernel_sources,
        data_files=build.data_files,
    )
    if given := differing_options(bare, build):
        raise UsageError(
            f"{given[0].label} cannot be given with --cmake: CMake says what a target is made from.",
            next_step="Leave it out, and write it into CMakeLists.txt.",
        )
    folder = build.cmake.absolute()
    if build.cmake_is_built:
        reply = read_reply(folder)
        target, name = _named_target(reply, text)
    else:
        opened = open_build_folder(folder, environment)
        tell(f"configuring {build.cmake}")
        reply = opened.configure()
        target, name = _named_target(reply, text)
        target_build(reply, target, name)  # what cannot be compiled is refused before anything is built
        if needed := needed_first(reply, target):
            tell(f"building what {target.name} needs: {', '.join(needed)}")
            opened.build(needed, reply.configuration)
    made = target_build(reply, target, name)
    file = made.sources[0]
    if not file.is_file():
        raise GeneratorError(
            f"{file}, a source of {target.name}, is missing.", next_step=f"Build it: cmake --build {folder}"
        )
    made = replace(
        made,
        sources=made.sources[1:],
        cmake=folder,
        cmake_target=target.name,
        kernel_sources=build.kernel_sources,
        data_files=build.data_files,
    )
    return GeneratorReference(file.resolve(), GeneratorKind.CPP, name, parse_parameters(parameters), made)


def _named_target(reply: CMakeReply, text: str) -> tuple[CMakeTarget, str | None]:
    """The executable that is meant, and the generator's name behind a colon."""
    entries = {entry.name: entry for entry in reply.targets}
    target_name, name = text, None
    if text not in entries:
        target_name, _, name = text.rpartition(":") if ":" in text else (text, "", None)
    if target_name not in entries:
        close = nearest(target_name, entries)
        raise UsageError(
            f"{reply.folder} has no target {target_name!r}.",
            next_step=f"Did you mean {close}?" if close else _executables(reply),
        )
    target = reply.target(entries[target_name])
    if target.type != EXECUTABLE:
        kind = target.type.lower().replace("_", " ").replace("utility", "custom target")
        raise UsageError(
            f"{target_name} of {reply.folder} is not an executable but a {kind}, so it is no C++ generator.",
            next_step=_executables(reply),
        )
    return target, name or None


def _executables(reply: CMakeReply) -> str:
    targets = (reply.target(entry) for entry in reply.targets)
    names = [target.name for target in targets if target.type == EXECUTABLE]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"Its executables: {', '.join(names[:_MOST_NAMES])}{more}." if names else "It has no executables."
