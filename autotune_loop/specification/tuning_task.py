"""One pipeline that a run tunes: a generator with one set of parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from targets.generator.reference import GeneratorReference

# What files of samples are called in a run of several generators.
_SHARED_FILE_NAME = "kernel"


@dataclass(frozen=True)
class TuningTask:
    """What is tuned.

    Attributes:
        reference: the generator, its name resolved, without parameters.
        function_name: the name the tuned function is built under, and best.<name>.schedule.h is called by.
        parameters: of the generator, the user's `-p` included.
        incumbent: the header that is in use today; None where there is none.
    """

    reference: GeneratorReference
    function_name: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    incumbent: Path | None = None

    @property
    def generator_name(self) -> str:
        """The registered name."""
        assert self.reference.name is not None, "the reference is resolved before a run starts"
        return self.reference.name


def published_names(tasks: Sequence[TuningTask]) -> tuple[str, ...]:
    """The names of the tasks' best headers: the function's, with _argset<k> from a function's second set on."""
    seen: Counter[str] = Counter()
    names = []
    for task in tasks:
        count = seen[task.function_name]
        names.append(task.function_name if count == 0 else f"{task.function_name}_argset{count}")
        seen[task.function_name] += 1
    return tuple(names)


def sample_file_name(tasks: Sequence[TuningTask]) -> str:
    """What the files of a run's samples are called: as the function, where there is but one."""
    functions = {task.function_name for task in tasks}
    return functions.pop() if len(functions) == 1 else _SHARED_FILE_NAME


def generator_names(tasks: Sequence[TuningTask]) -> str:
    """The generators of a run, each once, for people."""
    return ", ".join(dict.fromkeys(task.generator_name for task in tasks))
