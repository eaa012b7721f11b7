"""Outputs of a few channels, each of which is computed in its own way.

Where nothing says how many there are, or with which the caller begins, every channel is computed in all ways and one
is selected. Experts promise it (`bound(c, 0, 3)`), and the kernel then refuses anything else. Here the code is compiled
once more for what the estimates say (`specialize`), and anything else is computed as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.check import make_identifier
from halide_autotune.autotune_loop.schedule.model import Parameter, StageSchedule
from halide_autotune.autotune_loop.schedule.values import Expression
from halide_autotune.targets.pipeline.shape import FuncShape

# Of more channels few are of a kind of their own.
_MOST = 4


def cases_of(structure: DraftStructure, name: str) -> tuple[str, ...]:
    """The arguments of an output, by their loops, each value of which it computes in its own way, by what is inlined
    into it, too."""
    shape, func = structure.shape(name), structure.draft.funcs[name]
    if shape is None or not func.stages or not _may_have_cases(shape):
        return ()
    told_apart = _told_apart(structure, name, {})
    return tuple(
        variable.identifier
        for variable, argument, extent in zip(structure.loops(Site(name, 0)), shape.args, shape.extents, strict=True)
        if argument in told_apart and extent is not None and 1 < extent <= _MOST
        if not structure.is_bounded(name, argument)
    )


def _may_have_cases(shape: FuncShape) -> bool:
    """Whether it is an output of one buffer, whose name no process changes, and without updates."""
    is_one = shape.value_bytes == shape.narrowest_bytes and "$" not in shape.name
    return shape.is_output and not shape.is_extern and is_one and len(shape.stages) == 1


def _told_apart(structure: DraftStructure, name: str, known: dict[str, set[str]]) -> set[str]:
    """The arguments of a Func whose number chooses between its values, or between those of what is inlined into it.

    Args:
        known: of Funcs that are read in several ways, which would take exponential time.
    """
    if name not in known:
        known[name] = _found_apart(structure, name, known)
    return known[name]


def _found_apart(structure: DraftStructure, name: str, known: dict[str, set[str]]) -> set[str]:
    shape = structure.shape(name)
    if shape is None:
        return set()
    found = {*shape.stages[0].cases}
    for called, read in structure.reads[Site(name, 0)].items():
        callee = structure.shape(called)
        if callee is None or not structure.is_inlined(called):
            continue
        inner = _told_apart(structure, called, known)
        for argument, dimension in zip(callee.args, read.dimensions, strict=True):
            if argument in inner:
                found.update(arg for arg in shape.args if dimension.follows(arg))
    return found


def parameters_of(draft: Draft, names: PipelineNames) -> tuple[Parameter, ...]:
    """What the conditions of a draft's cases name, by identifiers that nothing else has."""
    taken = {*draft.funcs, *names.original, *(parameter.identifier for parameter in draft.parameters)}
    found = []
    for name, func in draft.funcs.items():
        for field, _ in _told(names.shapes[name], _places(func, names, name)) if func.cases else ():
            identifier = make_identifier(f"{name}_{field.replace('.', '_')}", taken)
            taken.add(identifier)
            found.append(Parameter(identifier, names.shapes[name].name, field))
    return tuple(found)


def stage_of(func: FuncDraft, name: str, names: PipelineNames, parameters: Sequence[Parameter]) -> StageSchedule | None:
    """What compiles a Func once more for its cases; None where it has none.

    Args:
        parameters: of the draft, as `parameters_of` has them.
    """
    if not func.cases:
        return None
    shape = names.shapes[name]
    known = {each.field: Expression(each.identifier) for each in parameters if each.name == shape.name}
    told = _told(shape, _places(func, names, name))
    conditions = (Expression("==", (known[field], value)) for field, value in told)
    return StageSchedule(name, None, (), (reduce(lambda one, other: Expression("&&", (one, other)), conditions),))


def _places(func: FuncDraft, names: PipelineNames, name: str) -> list[int]:
    loops = [variable.identifier for variable in names.loops(name, 0)]
    return [loops.index(each) for each in func.cases]


def _told(shape: FuncShape, places: Sequence[int]) -> list[tuple[str, int]]:
    """The fields of an output's buffer, each with the value for which the code is compiled once more."""
    return [told for at in places for told in ((f"min.{at}", 0), (f"extent.{at}", shape.extents[at] or 0))]


def read_cases(
    stage: StageSchedule, shape: FuncShape, loops: Sequence[str], parameters: Sequence[Parameter]
) -> tuple[str, ...] | None:
    """The inverse of `stage_of`; None if a stage says anything else.

    Args:
        loops: the Func's over its arguments.
    """
    if stage.directives or stage.update is not None or len(stage.conditions) != 1 or not _may_have_cases(shape):
        return None
    fields = {each.identifier: each.field for each in parameters if each.name == shape.name}
    told: list[tuple[str, int]] = []
    for each in _conjuncts(stage.conditions[0]):
        match each:
            case Expression("==", (Expression(identifier, ()), int(value))) if identifier in fields:
                told.append((fields[identifier], value))
            case _:
                return None
    mins = [field.removeprefix("min.") for field, _ in told[::2]]
    if not all(place.isdecimal() and int(place) < len(loops) for place in mins):
        return None
    places = [int(place) for place in mins]
    return tuple(loops[place] for place in places) if told == _told(shape, places) else None


def _conjuncts(expression: Expression) -> Iterator[Expression | int]:
    if expression.operator != "&&":
        yield expression
        return
    for each in expression.operands:
        yield from _conjuncts(each) if isinstance(each, Expression) else (each,)
