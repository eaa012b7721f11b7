"""A schedule: its Funcs, its variables and the directives for each stage."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from autotune_loop.schedule.directives import Directive


@dataclass(frozen=True)
class ByIndex:
    """The Func is `pipeline.get_func(index)`: its place among the pipeline's Funcs, producers first."""

    index: int


@dataclass(frozen=True)
class ByName:
    """The Func of the pipeline that has this name; Li2018 writes nothing else."""

    name: str


@dataclass(frozen=True)
class Wrapper:
    """The Func is `of.in(consumer)`; both are identifiers."""

    of: str
    consumer: str


@dataclass(frozen=True)
class Intermediate:
    """The Func is made by an `rfactor` among the stages."""


@dataclass(frozen=True)
class ScheduledFunc:
    """A Func of the pipeline.

    Attributes:
        identifier: what the schedule calls it; valid in C++ and in Python, and no variable's.
        origin: how it is reached.
    """

    identifier: str
    origin: ByIndex | ByName | Wrapper | Intermediate


class DimensionList(Enum):
    """The list of a stage that an `Accessor` indexes."""

    # All loops of a stage, the innermost first, as they are before any scheduling.
    DIMS = "dims"
    # The reduction variables of an update.
    RVARS = "rvars"
    # The pure variables of the Func.
    ARGS = "args"


def stage_name(func: str, update: int | None) -> str:
    """What C++ and Python call a stage."""
    return func if update is None else f"{func}.update({update})"


@dataclass(frozen=True)
class Accessor:
    """A variable's name taken from the pipeline: `func[.update(n)].get_schedule().dims()[position].var` and the like.

    Attributes:
        func: the Func's identifier.
        update: the update's number; None is the pure definition.
    """

    func: str
    update: int | None
    dimensions: DimensionList
    position: int


@dataclass(frozen=True)
class Variable:
    """A loop variable.

    Attributes:
        identifier: what the schedule calls it; valid in C++ and in Python, and no Func's.
        is_reduction: an RVar, not a Var.
        source: the name Halide knows it by, or where the pipeline has that name.
    """

    identifier: str
    is_reduction: bool
    source: str | Accessor


@dataclass(frozen=True)
class StageSchedule:
    """Directives for one stage. A stage may have several, which apply in order.

    Attributes:
        func: the Func's identifier.
        update: the update's number; None is the pure definition.
    """

    func: str
    update: int | None
    directives: tuple[Directive, ...]


@dataclass(frozen=True)
class Provenance:
    """Where a schedule came from, as its header's comment says.

    Attributes:
        autoscheduler: its name, such as 'Adams2019'.
        target: Halide's target string.
        parameters: of the autoscheduler, without its prefix and without local paths; sorted by name.
    """

    autoscheduler: str
    target: str
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Schedule:
    """A whole schedule. Funcs without a stage are inlined.

    Attributes:
        function_name: the <name> of the header's `apply_schedule_<name>`.
        variables: the Vars, then the RVars, each sorted by identifier.
        provenance: None if the header does not say.
    """

    function_name: str
    funcs: tuple[ScheduledFunc, ...]
    variables: tuple[Variable, ...]
    stages: tuple[StageSchedule, ...]
    provenance: Provenance | None = None
