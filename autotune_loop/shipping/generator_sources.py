"""The generators that shipped schedules belong to: the file that a run names, or one that the user gives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune_loop.shipping.tuned_task import TunedTask
from targets.errors import GeneratorError
from targets.generator.program import GeneratorProgram, open_generator
from targets.generator.reference import parse_generator
from targets.halide_install import HalideInstall
from targets.process.content_cache import file_sha256
from targets.toolchain.host_cpp_compiler import HostCppCompiler


@dataclass(frozen=True)
class GeneratorSources:
    """Where generators are found.

    Attributes:
        given: generators as the user writes them, which go before those that runs name.
    """

    given: Sequence[str]
    halide: HalideInstall
    compiler: HostCppCompiler
    environment: Mapping[str, str]

    @contextlib.contextmanager
    def open(self, task: TunedTask, folder: Path) -> Iterator[GeneratorProgram]:
        """The generator of a run's task; closed afterwards.

        Raises:
            GeneratorError: it is not there, cannot be opened, or is not the file that was tuned.
            ToolchainError: a C++ source, and no compiler.
        """
        with self.open_given(task.generator) as program:
            if program is not None:
                yield program
                return
        file = task.generator_file
        hint = "Give it with --generator."
        if file is None:
            raise GeneratorError(f"{folder} does not tell which file generator {task.generator} is in.", next_step=hint)
        if not file.is_file():
            raise GeneratorError(f"{file}, which {folder} was tuned from, is gone.", next_step=hint)
        if file_sha256(file) != task.generator_sha256:
            raise GeneratorError(
                f"{file} has been changed since {folder} was tuned, so its schedule may not fit any more.",
                next_step="Tune again; or give the file with --generator if you know that the algorithm is the same.",
            )
        with self._open(f"{file}:{task.generator}") as program:
            yield program

    @contextlib.contextmanager
    def open_given(self, generator_name: str) -> Iterator[GeneratorProgram | None]:
        """The given generator that registers this name, or None; closed afterwards.

        Raises:
            GeneratorError, ToolchainError: as `open`.
        """
        for text in self.given:
            with self._open(text) as program:
                if generator_name in program.names:
                    yield program
                    return
        yield None

    @contextlib.contextmanager
    def _open(self, text: str) -> Iterator[GeneratorProgram]:
        reference = parse_generator(text)
        program = open_generator(reference, self.halide, self.compiler, self.environment)
        with contextlib.closing(program):
            if reference.name is not None and reference.name not in program.names:
                raise GeneratorError(
                    f"{reference.file} registers no generator named {reference.name!r}; "
                    f"it has: {', '.join(program.names)}."
                )
            yield program
