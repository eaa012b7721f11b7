"""The tuning tasks that a run recorded: generator, parameters, function name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune_loop.specification.tuning_task import published_names
from autotune_loop.store.run_record import RunRecord


@dataclass(frozen=True)
class TunedTask:
    """One pipeline that a run has tuned.

    Attributes:
        index: its number in the run.
        name: of best.<name>.schedule.h; a C identifier.
        generator: the registered name.
        generator_file: where it was.
        generator_sha256: of that file.
        parameters: of the generator.
        function_name: of its kernels; a C identifier.
    """

    index: int
    name: str
    generator: str
    generator_file: Path
    generator_sha256: str
    parameters: Mapping[str, str]
    function_name: str


def tuned_tasks(record: RunRecord) -> list[TunedTask]:
    """What a run has tuned, in its order."""
    tasks = record.spec.tasks
    return [
        TunedTask(
            index=index,
            name=name,
            generator=task.generator_name,
            generator_file=task.reference.file,
            generator_sha256=sha256,
            parameters=task.parameters,
            function_name=task.function_name,
        )
        for index, (task, name, sha256) in enumerate(
            zip(tasks, published_names(tasks), record.made_with.generator_sha256, strict=True)
        )
    ]
