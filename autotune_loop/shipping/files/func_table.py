"""The Funcs of a pipeline: their names by index, and hashes of their definitions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.schedule.check import HALIDE_NAME
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.generator.run import (
    AutoschedulerRequest,
    GeneratorFailure,
    GeneratorRequest,
    run_generator,
)
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_SOURCE = Path(__file__).parent / "func_table_plugin.cpp"
_AUTOSCHEDULER = "SdkFuncTable"
_LIMITS = ProcessLimits(time_s=300.0, memory_bytes=8 * 2**30)
_MAXIMUM_FUNCS = 100_000
_SHOWN_CHARACTERS = 80
_ROW = re.compile(rf"({HALIDE_NAME.pattern})\t([0-9a-f]{{16}})\t([0-9a-f]{{16}})")


@dataclass(frozen=True)
class FuncRow:
    """One Func of a pipeline.

    Attributes:
        name: without the numbers that Halide adds to equal names in one process.
        definition: hash of its definitions as text; 0 if that text is too long to compare.
        domains: hash of its reduction domains; 0 as above.
    """

    name: str
    definition: int
    domains: int


def read_func_table(
    program: GeneratorProgram,
    generator_name: str,
    parameters: Mapping[str, str],
    halide_target: str,
    compiler: HostCppCompiler,
) -> tuple[FuncRow, ...]:
    """The rows in the order of `Pipeline::get_func`. Runs the generator, but compiles only our plug-in.

    Raises:
        GeneratorError: the generator fails.
        ToolchainError: no C++ compiler is installed.
    """
    plugin = compiler.build_plugin(_SOURCE)
    with scratch_folder("funcs") as folder:
        table = folder / "funcs.schedule.h"
        request = GeneratorRequest(
            generator_name=generator_name,
            function_name="funcs",
            base_name="funcs",
            output_folder=folder,
            # The plug-in writes the table and ends the generator before Halide writes a schedule.
            emit=("schedule",),
            halide_target=halide_target,
            parameters=parameters,
            autoscheduler=AutoschedulerRequest(_AUTOSCHEDULER, (plugin,), {"table_path": str(table)}),
        )
        result = run_generator(program, request, _LIMITS)
        if isinstance(result, GeneratorFailure):
            raise GeneratorError(result.message)
        return _rows(table.read_text(encoding="utf-8", errors="replace"), generator_name)


def _rows(text: str, generator_name: str) -> tuple[FuncRow, ...]:
    rows = []
    for line in text.splitlines()[:_MAXIMUM_FUNCS]:
        row = _ROW.fullmatch(line)
        if row is None:
            name = line.partition("\t")[0][:_SHOWN_CHARACTERS]
            raise GeneratorError(
                f"Generator {generator_name} has a Func named {name!r}, which a shipped header cannot contain.",
                next_step="Rename it with letters, digits and underscores, then tune again.",
            )
        rows.append(FuncRow(row[1], int(row[2], 16), int(row[3], 16)))
    if not rows:
        raise GeneratorError(f"Generator {generator_name} has no Funcs.")
    return tuple(rows)


def algorithm_hash(rows: tuple[FuncRow, ...]) -> str:
    """One hash of a whole table, 16 hexadecimal digits."""
    text = "\n".join(f"{row.name} {row.definition:016x} {row.domains:016x}" for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
