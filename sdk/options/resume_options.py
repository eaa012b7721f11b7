"""`--resume`: which run is meant, and what may be asked of it anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.store.run_record import RunRecord
from halide_autotune.sdk.options.autotune_options import GeneratorOptions, given_build, parse_argument_sets
from halide_autotune.sdk.output import shown_path
from halide_autotune.sdk.project.file import Project, ProjectGenerator
from halide_autotune.sdk.project.run_folders import check_run_folder, latest_run_folder, newest_run_folder, run_folders
from halide_autotune.targets.cmake.generator import cmake_generator
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.generator.reference import (
    GeneratorReference,
    parse_generator,
    parse_parameters,
    unqualified,
)
from halide_autotune.targets.values.checks import nearest_hint
from halide_autotune.targets.values.options import (
    DeclaredOption,
    differing_options,
    option_of,
    options_of,
    value_at,
    with_values,
    with_whole_paths,
    words_of,
)


def resumed_folder(values: Mapping[str, Any], folder: Path | None, project: Project) -> Path:
    """The run that is meant: the folder that is given, else the newest run of what is given, else the newest of all.

    Args:
        values: what was typed, by keywords.
        folder: of --run-dir.

    Raises:
        UsageError: there is no such run.
    """
    generators: tuple[str, ...] = values.get("generator", ())
    if folder is None and len(generators) == 1 and Path(generators[0]).is_dir():
        folder = Path(generators[0])
    if folder is None and len(generators) == 1 and _is_no_generator(project.named(generators[0]), values):
        known = [shown_path(each) for each in run_folders(Path.cwd())]
        raise UsageError(
            f"--resume: there is no run folder {generators[0]}{nearest_hint(generators[0], known)}.",
            next_step="Give the folder of a run, or leave it out for the newest one.",
        )
    if folder is not None:
        return check_run_folder(folder)
    if not generators and "target" not in values:
        return latest_run_folder(Path.cwd())
    named = [_named(project.named(generator), values) for generator in generators]
    return newest_run_folder(Path.cwd(), named, values.get("target"))


def _is_no_generator(entry: ProjectGenerator, values: Mapping[str, Any]) -> bool:
    """Whether what is no folder is no generator either: no file, and no target of CMake."""
    file = Path(entry.generator.partition(":")[0])
    return not (file.suffix or file.exists()) and given_build(values, entry).cmake is None


def _named(entry: ProjectGenerator, values: Mapping[str, Any]) -> GeneratorReference:
    build = given_build(values, entry)
    if build.cmake is None:
        return parse_generator(entry.generator)
    # What CMake has said before tells which run it is: nothing is built for that.
    build = replace(build, cmake_is_built=True)
    return cmake_generator(entry.generator, (), build, environment={}, tell=lambda text: None)


def resumed_options(record: RunRecord, changes: Mapping[str, Any]) -> RunOptions:
    """The run's options with the changes that leave what is tuned as it is.

    Args:
        changes: by the keywords of the options of a run and of its generators.

    Raises:
        UsageError: a change is of what is tuned, or its value is wrong.
    """
    generator_keywords = {option.keyword for option in options_of(GeneratorOptions)}
    for keyword in changes.keys() & generator_keywords:
        _check_generator_option(record, keyword, changes[keyword])
    old = record.spec.options
    new = old.with_values({name: value for name, value in changes.items() if name not in generator_keywords})
    for option in differing_options(old, new):
        if option.facts.is_fixed:
            asked, given = value_at(old, option), value_at(new, option)
            made = _made_with(record, option.keyword, asked)
            if given != made:
                raise _refused(words_of(option, made), words_of(option, given), option.label)
            new = new.with_values({option.keyword: asked})
    return new


def _made_with(record: RunRecord, keyword: str, asked: object) -> object:
    """What an option came to, where the run chose for itself."""
    if keyword == "target" and asked is None:
        return record.spec.profile.name
    chosen = {"parallelism": record.spec.parallelism, "clock": record.made_with.clock}
    return chosen.get(keyword, asked)


def _check_generator_option(record: RunRecord, keyword: str, given: Any) -> None:
    tasks = record.spec.tasks
    option = option_of(GeneratorOptions, keyword)
    if keyword == "parameters":
        wanted = parse_parameters(given)
        if not all(wanted.items() <= dict(task.parameters).items() for task in tasks):
            made = " ".join(f"-p {key}={value}" for key, value in tasks[0].parameters.items()) or "no -p"
            raise _refused(made, words_of(option, given), "-p")
    elif keyword == "argument_sets":
        sets = [parse_parameters(items) for items in parse_argument_sets(given)]
        if len(sets) != len(tasks) or not all(
            one.items() <= dict(task.parameters).items() for one, task in zip(sets, tasks, strict=True)
        ):
            raise _refused("other argument sets", words_of(option, given), option.label)
    elif keyword == "function_name":
        name = tasks[0].function_name
        if unqualified(given) != name:
            raise _refused(f"-f {name}", f"-f {given}", "-f")
    elif option.path[0] == "tuned":
        for task in tasks:
            of_space = {"tune": {}, "restrict": ()} if task.space is None else vars(task.space)
            made = {**of_space, "search_too": task.searches and task.space is not None}[keyword]
            if given != made:
                raise _refused(words_of(option, made), words_of(option, given), option.label)
    elif option.path[0] == "build":
        if option.facts.is_fixed:
            _check_build(tasks, option, given)
    elif option.path[0] == "estimates":
        raise UsageError(
            f"{option.label} says what is tuned, so a resumed run keeps it.",
            next_step=f"Resume it without {option.label}, or start a new run.",
        )
    elif keyword == "generator" and not Path(given[0]).is_dir():
        _check_generators(tasks, given)


def _check_build(tasks: tuple[TuningTask, ...], option: DeclaredOption, given: Any) -> None:
    for task in tasks:
        old = task.reference.build
        new = with_whole_paths(with_values(old, {option.keyword: given}))
        if new != old:
            made, wanted = (words_of(option, getattr(build, option.path[-1])) for build in (old, new))
            raise _refused(made, wanted, option.label)


def _check_generators(tasks: tuple[TuningTask, ...], given: tuple[str, ...]) -> None:
    files = {task.reference.file for task in tasks}
    targets = {task.reference.build.cmake_target for task in tasks} - {None}
    for text in given:
        if targets & {text, text.rpartition(":")[0]}:
            continue
        file = parse_generator(text).file
        if file not in files:
            raise _refused(", ".join(sorted(str(each) for each in files)), str(file), "a generator")


def _refused(made: str, given: str, without: str) -> UsageError:
    return UsageError(
        f"This run was made with {made}, not {given}.",
        next_step=f"Resume it without {without}, or start a new run.",
    )
