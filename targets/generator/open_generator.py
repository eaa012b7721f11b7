"""From what the user names to a program that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from targets.errors import GeneratorError
from targets.generator.executable_program import ExecutableGeneratorProgram
from targets.generator.program import GeneratorProgram
from targets.generator.python_program import PythonGeneratorProgram
from targets.generator.reference import GeneratorKind, GeneratorReference
from targets.halide_install import HalideInstall
from targets.toolchain.host_cpp_compiler import HostCppCompiler
from targets.values.checks import nearest


def open_generator(
    reference: GeneratorReference,
    halide: HalideInstall,
    compiler: HostCppCompiler,
    environment: Mapping[str, str],
    plugins: Sequence[Path] = (),
) -> GeneratorProgram:
    """Import, build or just start the generator, whichever its kind needs.

    Args:
        plugins: loaded once into a Python generator's process; the others load them at every run.

    Raises:
        GeneratorError: it does not compile, import or start.
        ToolchainError: a C++ source, and no compiler.
    """
    if reference.kind is GeneratorKind.PYTHON:
        return PythonGeneratorProgram(reference.file, environment, plugins)
    if reference.kind is GeneratorKind.CPP:
        built = compiler.build_generator(reference.file)
        return ExecutableGeneratorProgram(built, environment, halide.lib_dir, source=reference.file)
    return ExecutableGeneratorProgram(reference.file, environment, halide.lib_dir)


def resolve_name(reference: GeneratorReference, names: Sequence[str]) -> GeneratorReference:
    """The same reference with its name filled in and checked against the names the file registers.

    Raises:
        GeneratorError: the name is not registered, or several are and none was chosen.
    """
    listed = ", ".join(names)
    if reference.name is None:
        if len(names) > 1:
            raise GeneratorError(
                f"{reference.file} registers {len(names)} generators: {listed}.",
                next_step=f"Choose one, as in {reference.file.name}:{names[0]}",
            )
        return replace(reference, name=names[0])
    if reference.name not in names:
        close = nearest(reference.name, names)
        raise GeneratorError(
            f"{reference.file} registers no generator named {reference.name!r}; it has: {listed}.",
            next_step=f"Did you mean {reference.file.name}:{close}?" if close else "",
        )
    return reference
