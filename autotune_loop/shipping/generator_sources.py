"""The generators of shipped schedules: the file that a run names, or one that the user passes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from halide_autotune.autotune_loop.shipping.run_winner import RunWinner
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.program import GeneratorProgram, generator_sha256, open_generator
from halide_autotune.targets.generator.reference import GeneratorReference, parse_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler


@dataclass(frozen=True)
class GeneratorSources:
    """Where to find generators.

    Attributes:
        given: those that the user passes, which take precedence over those that runs name.
    """

    given: Sequence[GeneratorReference]
    halide: HalideInstall
    compiler: HostCppCompiler
    environment: Mapping[str, str]

    @contextlib.contextmanager
    def open(self, run: RunWinner) -> Iterator[GeneratorProgram]:
        """The generator of a run's schedule; closed afterwards.

        Raises:
            GeneratorError: it is missing, cannot be opened, or is not the file that was tuned.
            ToolchainError: a C++ source, and no compiler.
        """
        name, file, folder = run.task.generator_name, run.task.reference.file, run.folder
        with self.open_given(name) as program:
            if program is not None:
                yield program
                return
        hint = "Pass it with --generator."
        if not file.is_file():
            raise GeneratorError(f"{file} is missing. {folder} was tuned from it.", next_step=hint)
        reference = parse_generator(f"{file}:{name}", (), run.task.reference.build)
        if generator_sha256(reference, self.compiler) != run.generator_sha256:
            raise GeneratorError(
                f"{file} has changed since {folder} was tuned, or a file that it needs has. Its schedule may not fit.",
                next_step="Tune again. If the algorithm is the same, pass the file with --generator.",
            )
        with self._open(reference) as program:
            yield program

    @contextlib.contextmanager
    def open_given(self, generator_name: str) -> Iterator[GeneratorProgram | None]:
        """The given generator that registers this name, or None; closed afterwards.

        Raises:
            GeneratorError, ToolchainError: as `open`.
        """
        for reference in self.given:
            with self._open(reference) as program:
                if generator_name in program.names:
                    yield program
                    return
        yield None

    def places(self) -> dict[str, int]:
        """The name of each generator → which of the given ones registers it; each is opened once.

        Raises:
            GeneratorError, ToolchainError: as `open`.
        """
        found: dict[str, int] = {}
        for place, reference in enumerate(self.given):
            with self._open(reference) as program:
                for name in program.names:
                    found.setdefault(name, place)
        return found

    @contextlib.contextmanager
    def _open(self, reference: GeneratorReference) -> Iterator[GeneratorProgram]:
        program = open_generator(reference, self.halide, self.compiler, self.environment)
        with contextlib.closing(program):
            if reference.name is not None and reference.name not in program.names:
                raise GeneratorError(
                    f"{reference.file} registers no generator named {reference.name!r}; "
                    f"it has: {', '.join(program.names)}."
                )
            yield program
