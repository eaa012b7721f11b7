"""The tuning tasks that a run recorded: generator, parameters, function name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune_loop.specification.objective import Objective, objective_from_json
from autotune_loop.store.run_record import FILE_NAME, RunRecord
from devices.timing.measure_settings import KernelInputs
from targets.errors import ProfileError, RunFolderError
from targets.profile.halide_target import parse_halide_target

_SEED = re.compile(r"[0-9]{1,20}")
_C_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROFILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


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


def tuned_tasks(folder: Path, record: RunRecord) -> list[TunedTask]:
    """The tasks of the run in `folder`, in their order.

    Raises:
        RunFolderError: its record is damaged.
    """
    if not _PROFILE_NAME.fullmatch(required(folder, record, "profile")):
        raise damaged(folder, "profile", "the name of a profile")
    try:
        parse_halide_target(required(folder, record, "halide_target"))
    except ProfileError as error:
        raise damaged(folder, "halide_target", "a Halide target") from error
    if "tasks" in record.identity:
        return _listed_tasks(folder, record)
    name = required(folder, record, "function_name")
    file = record.settings.get("generator_file", "")
    return [
        _task(
            folder,
            "argsets",
            index,
            {
                "name": name if index == 0 else f"{name}_argset{index}",
                "generator": required(folder, record, "generator"),
                "generator_sha256": record.identity.get("generator_sha256", ""),
                "function_name": name,
                "parameters": parameters,
            },
            file,
        )
        for index, parameters in enumerate(_json_list(folder, record.identity.get("argsets", ""), "argsets"))
    ]


def _listed_tasks(folder: Path, record: RunRecord) -> list[TunedTask]:
    """The tasks of a run over several generators."""
    tasks = _json_list(folder, record.identity["tasks"], "tasks")
    files = _json_list(folder, record.settings.get("generator_files", ""), "generator_files")
    if len(files) != len(tasks) or not all(isinstance(file, str) for file in files):
        raise damaged(folder, "generator_files", "a file for each task")
    return [_task(folder, "tasks", index, fields, files[index]) for index, fields in enumerate(tasks)]


def _task(folder: Path, key: str, index: int, fields: Any, file: str) -> TunedTask:
    texts = ("name", "generator", "generator_sha256", "function_name")
    if not isinstance(fields, dict) or not all(isinstance(fields.get(text), str) for text in texts):
        raise damaged(folder, key, "tasks with their names")
    parameters = fields.get("parameters")
    if not isinstance(parameters, dict) or not all(isinstance(value, str) for value in parameters.values()):
        raise damaged(folder, key, "a list of generator parameters")
    for name in (fields["name"], fields["function_name"]):
        if not _C_NAME.fullmatch(name):
            raise damaged(folder, "function_name", "the name of a C function")
    return TunedTask(
        index=index,
        name=fields["name"],
        generator=fields["generator"],
        generator_file=Path(file) if file else None,
        generator_sha256=fields["generator_sha256"],
        parameters=parameters,
        function_name=fields["function_name"],
    )


def recorded_inputs(folder: Path, record: RunRecord) -> KernelInputs:
    """The inputs of the run's kernels, without the user's own data, of which only a hash is recorded.

    Raises:
        RunFolderError: its record is damaged.
    """
    seed = record.identity.get("input_seed", "0")
    if not _SEED.fullmatch(seed):
        raise damaged(folder, "input_seed", "a whole number")
    sizes, scalars = (_texts(folder, record, key) for key in ("input_sizes", "input_scalars"))
    return KernelInputs(seed=int(seed), sizes=sizes, scalars=scalars)


def recorded_objective(folder: Path, record: RunRecord) -> Objective:
    """The objective of the run.

    Raises:
        RunFolderError: its record is damaged.
    """
    text = record.settings.get("objective_options", "")
    try:
        return objective_from_json(text) if text else Objective()
    except ValueError as error:
        raise damaged(folder, "objective_options", "an objective") from error


def _texts(folder: Path, record: RunRecord, key: str) -> dict[str, str]:
    try:
        values = json.loads(record.identity.get(key, "{}"))
    except (ValueError, RecursionError) as error:
        raise damaged(folder, key, "JSON") from error
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise damaged(folder, key, "texts by their arguments")
    return values


def _json_list(folder: Path, text: str, key: str) -> list[Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(folder, key, "JSON") from error
    if not isinstance(values, list) or not values:
        raise damaged(folder, key, "a list")
    return values


def required(folder: Path, record: RunRecord, key: str) -> str:
    """A value that every run records.

    Raises:
        RunFolderError: it is missing.
    """
    value = record.identity.get(key, "")
    if not value:
        raise damaged(folder, key, "a value")
    return value


def damaged(folder: Path, key: str, expected: str) -> RunFolderError:
    """The error for a record with a wrong value."""
    return RunFolderError(
        f"{folder / FILE_NAME} is damaged: {key} is wrong; expected {expected}.",
        next_step="Ship another run, or tune again.",
    )
