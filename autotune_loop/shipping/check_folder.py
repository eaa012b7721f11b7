"""`sdk ship --check`: whether a shipped folder is unchanged and still fits its generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from halide_autotune.autotune_loop.shipping.files.func_table import FuncRow, algorithm_hash, read_func_table
from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.autotune_loop.shipping.ship_folder import shown_files
from halide_autotune.autotune_loop.shipping.ship_manifest import (
    FILE_NAME,
    ShippedParameters,
    ShippedSchedule,
    read_manifest,
)
from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import file_sha256


@dataclass(frozen=True)
class CheckedFolder:
    """The result of a check.

    Attributes:
        by_file: the name of a file → messages about it; with any of them, do not use the folder.
        notes: messages about what could not be checked.
        schedules: how many schedules and sets of parameters were compared with a generator.
    """

    by_file: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    schedules: int

    @property
    def problems(self) -> tuple[str, ...]:
        """The messages about all files."""
        return tuple(chain.from_iterable(self.by_file.values()))


def check_folder(
    folder: Path, sources: GeneratorSources, parameters: Mapping[str, str], halide: HalideInstall
) -> CheckedFolder:
    """Compare the files with their hashes, and every schedule's Funcs with those of its generator, if that is given.

    Args:
        parameters: of the generators, in place of the recorded ones.

    Raises:
        RunFolderError: `folder` is not a shipped folder, or its manifest is damaged.
        GeneratorError: a generator cannot be opened or run.
        ToolchainError: no C++ compiler is installed.
    """
    manifest = read_manifest(folder)
    by_file = {name: (problem,) for name, problem in _file_problems(folder, manifest.files).items()}
    notes: list[str] = []
    compared = 0
    for schedule in manifest.schedules:
        version = schedule.provenance.get("halide_version")
        if version != halide.version:
            notes.append(f"{schedule.header} was made with Halide {version}; this is {halide.version}.")
        with sources.open_given(schedule.generator) as program:
            if program is None:
                notes.append(f"{schedule.header} was not compared with its generator. Pass that with --generator.")
                continue
            now = read_func_table(
                program,
                schedule.generator,
                {**schedule.parameters, **parameters},
                str(schedule.provenance["halide_target"]),
                sources.compiler,
            )
        compared += 1
        by_file[schedule.header] = (*by_file.get(schedule.header, ()), *_func_problems(schedule, now))
    for one in manifest.parameter_sets:
        with sources.open_given(one.generator) as program:
            if program is None:
                notes.append(f"{one.files[0]} was not compared with its generator. Pass that with --generator.")
                continue
            file, found = one.files[0], _parameter_problems(one, program, parameters, sources)
            by_file[file] = (*by_file.get(file, ()), *found)
        compared += 1
    shipped: list[ShippedSchedule | ShippedParameters] = [*manifest.schedules, *manifest.parameter_sets]
    if compared == 0 and sources.given and shipped:
        names = ", ".join(sorted({one.generator for one in shipped}))
        raise GeneratorError(f"{folder} has no schedule of the given generators.", next_step=f"Pass one of: {names}.")
    return CheckedFolder({file: found for file, found in by_file.items() if found}, tuple(notes), compared)


def _parameter_problems(
    one: ShippedParameters, program: GeneratorProgram, others: Mapping[str, str], sources: GeneratorSources
) -> list[str]:
    """Parameters that the generator does not take any more, and another algorithm."""
    file, generator = one.files[0], one.generator
    declared = program.parameters(generator)
    problems = []
    for name, value in one.tuned.items():
        if name not in declared:
            problems.append(f"{file}: generator {generator} has no parameter {name} any more.")
            continue
        try:
            declared[name].check(name, value)
        except UsageError as error:
            problems.append(f"{file}: {error.message}")
    if problems:
        return problems
    parameters = {**one.parameters, **others, **one.tuned}
    target = str(one.provenance["halide_target"])
    now = algorithm_hash(read_func_table(program, generator, parameters, target, sources.compiler))
    if now != one.provenance["algorithm_hash"]:
        return [f"{file}: the algorithm of generator {generator} has changed. Tune again."]
    return []


def _file_problems(folder: Path, files: Mapping[str, str]) -> dict[str, str]:
    problems = {}
    for name, sha256 in files.items():
        path = folder / name
        if not path.is_file():
            problems[name] = f"{name} is missing."
        elif file_sha256(path) != sha256:
            problems[name] = f"{name} was changed after it was shipped."
    foreign = [name for name in shown_files(folder) if name not in {*files, FILE_NAME}]
    return problems | {name: f"{name} is in the folder but was not shipped." for name in foreign}


def _func_problems(schedule: ShippedSchedule, now: Sequence[FuncRow]) -> list[str]:
    """The errors of the header, and changed reduction domains, which a Python module does not see."""
    was = schedule.funcs
    for index in range(max(len(now), len(was))):
        new = f"'{now[index].name}'" if index < len(now) else "missing"
        old = f"'{was[index].name}'" if index < len(was) else "not there"
        if new != old:
            counts = "" if len(now) == len(was) else f"; there are {len(now)} Funcs, were {len(was)}"
            return [f"{schedule.header}: Func {index} is now {new}, was {old}{counts}."]
    changed = [
        f"Func {index} '{row.name}'"
        for index, (row, old_row) in enumerate(zip(now, was, strict=True))
        if old_row.definition and (row.definition, row.domains) != (old_row.definition, old_row.domains)
    ]
    verb = "is" if len(changed) == 1 else "are"
    return [f"{schedule.header}: {', '.join(changed)} {verb} defined differently."] if changed else []
