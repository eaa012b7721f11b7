"""One pipeline that a run tunes: a generator with one set of parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.autotune_loop.parameters.space import ParameterSpace
from halide_autotune.targets.generator.reference import GeneratorReference

# The name of sample files in a run of several generators.
_SHARED_FILE_NAME = "kernel"
# Of a file with a set of parameters.
PARAMETERS_SUFFIX = "parameters.toml"


@dataclass(frozen=True)
class TuningTask:
    """A generator with its parameters.

    Attributes:
        reference: the generator, its name resolved, without parameters.
        function_name: the name of the tuned function without namespaces, and of best.<name>.schedule.h.
        parameters: of the generator, including the user's `-p`.
        incumbent: the header in use today; None if there is none.
        space: the parameter sets that are tried with the generator's own schedule; None if no parameters are tuned.
        searches: schedules are searched.
        schedules_itself: the generator's own schedule is what must be beaten, unless there is an incumbent.
        estimates: for the search, as `PipelineFacts.estimates` returns them; none leaves the generator's.
        calls: how often whoever uses the run's tasks together calls this one; None where nobody says.
    """

    reference: GeneratorReference
    function_name: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    incumbent: Path | None = None
    space: ParameterSpace | None = None
    schedules_itself: bool = False
    estimates: Mapping[str, str] = field(default_factory=dict)
    searches: bool = True
    calls: float | None = None

    @property
    def generator_name(self) -> str:
        """The registered name."""
        assert self.reference.name is not None, "the reference is resolved before a run starts"
        return self.reference.name


def published_names(tasks: Sequence[TuningTask]) -> tuple[str, ...]:
    """The names of the tasks' best headers: the function's, with _argset<k> after the first set of parameters."""
    seen: Counter[str] = Counter()
    names = []
    for task in tasks:
        count = seen[task.function_name]
        names.append(task.function_name if count == 0 else f"{task.function_name}_argset{count}")
        seen[task.function_name] += 1
    return tuple(names)


def published_paths(samples: Path, tasks: Sequence[TuningTask]) -> tuple[Path, ...]:
    """The files with the tasks' winners below samples/: headers, or parameters of the generators' own schedules.

    A task whose parameters are tuned may have either; a header that is there belongs to the winner.
    """
    paths = []
    for task, name in zip(tasks, published_names(tasks), strict=True):
        header = samples / f"best.{name}.schedule.h"
        is_own = task.space is not None and not header.is_file()
        paths.append(samples / f"best.{name}.{PARAMETERS_SUFFIX}" if is_own else header)
    return tuple(paths)


def sample_file_name(tasks: Sequence[TuningTask]) -> str:
    """The name of a run's sample files: the function's, if there is only one."""
    functions = {task.function_name for task in tasks}
    return functions.pop() if len(functions) == 1 else _SHARED_FILE_NAME


def generator_names(tasks: Sequence[TuningTask]) -> str:
    """The names of a run's generators, each once, as shown to users."""
    return ", ".join(dict.fromkeys(task.generator_name for task in tasks))
