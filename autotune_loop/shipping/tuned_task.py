"""The tuning tasks that a run recorded: generator, parameters, function name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from autotune_loop.specification.objective import Objective, objective_from_json
from autotune_loop.store.run_record import FILE_NAME, RunRecord
from devices.timing.measure_settings import KernelInputs
from targets.errors import RunFolderError
from targets.profile.halide_target import parse_halide_target
from targets.values.checks import Check, Unfit, any_text, list_of, matching, table_of
from targets.values.records import Source, record

_T = TypeVar("_T")
_c_name = matching(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a C function")
_profile_name = matching(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", "the name of a profile")
_seed = matching(r"[0-9]{1,20}", "a whole number")
_texts = table_of(any_text)


@dataclass(frozen=True)
class TunedTask:
    """One pipeline that a run has tuned.

    Attributes:
        index: its number in the run.
        name: of best.<name>.schedule.h; a C identifier.
        generator: the registered name.
        generator_file: None if the run did not record it.
        generator_sha256: of that file.
        parameters: of the generator.
        function_name: of its kernels; a C identifier.
    """

    index: int
    name: str
    generator: str
    generator_file: Path | None
    generator_sha256: str
    parameters: Mapping[str, str]
    function_name: str


@dataclass(frozen=True)
class _RecordedTask:
    name: Annotated[str, _c_name]
    generator: str
    generator_sha256: str
    function_name: Annotated[str, _c_name]
    parameters: Mapping[str, str]


def tuned_tasks(folder: Path, run: RunRecord) -> list[TunedTask]:
    """The tasks of the run in `folder`, in their order.

    Raises:
        RunFolderError: its record is damaged.
    """
    source, identity = _source(folder), run.identity

    def value(key: str, check: Check[_T]) -> _T:
        return source.check(check, identity.get(key, ""), key=key)

    value("profile", _profile_name)
    value("halide_target", lambda text: parse_halide_target(any_text(text)))
    if "tasks" in identity:
        tasks = value("tasks", _json_text(list_of(record(_RecordedTask))))
        text = run.settings.get("generator_files", "")
        files = source.check(_json_text(list_of(any_text)), text, key="generator_files")
        if len(files) != len(tasks):
            raise source.refuse(f"generator_files has {len(files)} files for {len(tasks)} tasks.")
    else:
        name, sha256 = value("function_name", _c_name), identity.get("generator_sha256", "")
        generator = value("generator", matching(r".+", "the name of a generator"))
        argsets = value("argsets", _json_text(list_of(_texts)))
        tasks = tuple(
            _RecordedTask(f"{name}_argset{index}" if index else name, generator, sha256, name, parameters)
            for index, parameters in enumerate(argsets)
        )
        files = (run.settings.get("generator_file", ""),) * len(tasks)
    if not tasks:
        raise source.refuse("it has no tuning task.")
    return [
        TunedTask(
            index=index,
            name=task.name,
            generator=task.generator,
            generator_file=Path(file) if file else None,
            generator_sha256=task.generator_sha256,
            parameters=task.parameters,
            function_name=task.function_name,
        )
        for index, (task, file) in enumerate(zip(tasks, files, strict=True))
    ]


def recorded_inputs(folder: Path, run: RunRecord) -> KernelInputs:
    """The inputs of the run's kernels, without the user's own data, of which only a hash is recorded.

    Raises:
        RunFolderError: its record is damaged.
    """
    source, identity = _source(folder), run.identity
    sizes, scalars = (
        source.check(_json_text(_texts), identity.get(key, "{}"), key=key) for key in ("input_sizes", "input_scalars")
    )
    seed = source.check(_seed, identity.get("input_seed", "0"), key="input_seed")
    return KernelInputs(seed=int(seed), sizes=sizes, scalars=scalars)


def recorded_objective(folder: Path, run: RunRecord) -> Objective:
    """The objective of the run.

    Raises:
        RunFolderError: its record is damaged.
    """
    text = run.settings.get("objective_options", "")
    try:
        return objective_from_json(text) if text else Objective()
    except ValueError as error:
        raise _source(folder).refuse(f"key 'objective_options' must be an objective: {error}.") from error


def _source(folder: Path) -> Source:
    return Source(f"{folder / FILE_NAME} is damaged", RunFolderError, next_step="Ship another run, or tune again.")


def _json_text(check: Check[_T]) -> Check[_T]:
    """A check for a value that is recorded as JSON."""

    def check_text(value: object) -> _T:
        try:
            found = json.loads(any_text(value))
        except (ValueError, RecursionError) as error:
            raise Unfit("JSON") from error
        return check(found)

    return check_text
