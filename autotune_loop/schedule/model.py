"""A schedule: its Funcs, its parameters, its variables and the directives for each stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from halide_autotune.autotune_loop.schedule.directives import Directive, RFactor
from halide_autotune.autotune_loop.schedule.values import Expression


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
    """The Func is `of.in(consumers)`: what they call in place of `of`. All are identifiers.

    Attributes:
        consumers: none is `of.in()`, for every consumer.
    """

    of: str
    consumers: tuple[str, ...]


@dataclass(frozen=True)
class Clone:
    """The Func is `of.clone_in(consumers)`: a second computation of `of`, for them. All are identifiers."""

    of: str
    consumers: tuple[str, ...]


@dataclass(frozen=True)
class Intermediate:
    """The Func is made by an `rfactor` among the stages."""


Origin = ByIndex | ByName | Wrapper | Clone | Intermediate


@dataclass(frozen=True)
class ScheduledFunc:
    """A Func of the pipeline.

    Attributes:
        identifier: what the schedule calls it; valid in C++ and in Python, and nothing else's.
        origin: how it is reached.
    """

    identifier: str
    origin: Origin


class DimensionList(Enum):
    """The list of a stage that an `Accessor` indexes."""

    # All loops of a stage, the innermost first, as they are before any scheduling.
    DIMS = "dims"
    # The reduction variables of an update.
    RVARS = "rvars"
    # The pure variables of the Func.
    ARGS = "args"


@dataclass(frozen=True)
class Parameter:
    """An input or output of the pipeline that expressions and prefetches name.

    Attributes:
        identifier: what the schedule calls it; valid in C++ and in Python, and nothing else's.
        name: Halide's, such as `input`.
        field: of a buffer, such as `stride.0`, `min.1` or `extent.2`; "value" of a scalar; "buffer" itself.
    """

    identifier: str
    name: str
    field: str


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
        identifier: what the schedule calls it; valid in C++ and in Python, and nothing else's.
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
        conditions: where they hold, one inside the other, these directives replace the stage's others: `specialize`.
            Such a stage may be without directives: the code is then compiled once more, simplified.
    """

    func: str
    update: int | None
    directives: tuple[Directive, ...]
    conditions: tuple[Expression, ...] = ()


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
        function_name: the `<name>` of the header's `apply_schedule_<name>`.
        variables: the Vars, then the RVars, each sorted by identifier.
        provenance: None if the header does not say.
        parameters: that expressions and prefetches name.
    """

    function_name: str
    funcs: tuple[ScheduledFunc, ...]
    variables: tuple[Variable, ...]
    stages: tuple[StageSchedule, ...]
    provenance: Provenance | None = None
    parameters: tuple[Parameter, ...] = ()


def in_order(schedule: Schedule) -> Iterator[ScheduledFunc | Parameter | Variable | StageSchedule]:
    """Everything in the order in which it can be applied: a wrapper of an rfactor's intermediate comes after it.

    What depends on something that no rfactor makes is left out.
    """
    known: set[str] = set()
    waiting = [func for func in schedule.funcs if not isinstance(func.origin, Intermediate)]

    def reachable() -> Iterator[ScheduledFunc]:
        for func in tuple(waiting):
            origin = func.origin
            if not isinstance(origin, Wrapper | Clone) or known.issuperset((origin.of, *origin.consumers)):
                waiting.remove(func)
                known.add(func.identifier)
                yield func

    yield from reachable()
    yield from schedule.parameters
    yield from schedule.variables
    for stage in schedule.stages:
        yield stage
        for made in (directive for directive in stage.directives if isinstance(directive, RFactor)):
            known.add(made.intermediate)
            yield from reachable()
