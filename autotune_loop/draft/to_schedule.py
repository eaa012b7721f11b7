"""From a draft to the schedule that makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields

from halide_autotune.autotune_loop.draft.cases import parameters_of, stage_of
from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, LoopKind, StageDraft, made_by
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.partitioning import whole_loops
from halide_autotune.autotune_loop.schedule.directives import (
    ComputeAt,
    ComputeWith,
    Directive,
    OfFunc,
    Parallel,
    PartitionLoop,
    Reorder,
    RFactor,
    StoreAt,
    Unroll,
    Unscheduled,
    Vectorize,
    variables_of,
)
from halide_autotune.autotune_loop.schedule.model import (
    Accessor,
    ByIndex,
    Clone,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Variable,
    Wrapper,
)
from halide_autotune.autotune_loop.schedule.values import OUTERMOST, LoopLevel, Partition, Source, Stage

_MARKS: dict[LoopKind, type[Vectorize | Unroll | Parallel]] = {
    LoopKind.VECTORIZED: Vectorize,
    LoopKind.UNROLLED: Unroll,
    LoopKind.PARALLEL: Parallel,
}


def schedule_of(draft: Draft, names: PipelineNames, function_name: str) -> Schedule:
    """The schedule of a draft; equal drafts give equal schedules.

    Wrappers and clones are made in the draft's order: Halide numbers them, and names are part of the code.
    The consumers come first, as in the schedules that Halide's autoschedulers print.
    """
    in_order = _in_order(draft, names)
    parameters = (*draft.parameters, *parameters_of(draft, names))
    stages: list[StageSchedule] = []
    for name in reversed(in_order):
        stages += _stages(name, draft.funcs[name])
        if of_cases := stage_of(draft.funcs[name], name, names, parameters):
            stages.append(of_cases)
    # What makes other Funcs comes before what schedules those.
    factoring = [stage for name in in_order for stage in draft.funcs[name].factoring]
    stages = [*factoring, *(stage for stage in stages if stage not in factoring)]
    made = {each.intermediate for stage in stages for each in stage.directives if isinstance(each, RFactor)}
    used = {stage.func for stage in stages} | {name for stage in stages for name in _funcs_in(stage)}
    variables = _variables(draft, stages, names)
    used |= {variable.source.func for variable in variables if isinstance(variable.source, Accessor)}
    # From the last on: a wrapper needs what it wraps.
    for name in reversed(in_order):
        if made_of := _made_of(draft.funcs[name]):
            used |= {name, *made_of}
    funcs = []
    for name in in_order:
        shape, func = names.shapes.get(name), draft.funcs[name]
        if shape is not None and name in used:
            funcs.append(ScheduledFunc(name, ByIndex(names.shape.index[shape.name])))
        elif func.origin is not None and (name in used or name in made):
            funcs.append(ScheduledFunc(name, func.origin))
    return Schedule(function_name, tuple(funcs), variables, tuple(stages), None, parameters)


def _in_order(draft: Draft, names: PipelineNames) -> list[str]:
    """The pipeline's Funcs, producers first, then what is made of them, then what each rfactor makes, and of that."""
    found = [name for name in names.shapes if name in draft.funcs]
    left = [name for name in draft.funcs if name not in names.shapes]

    def take(is_next: Callable[[FuncDraft], bool]) -> None:
        while (name := next((each for each in left if is_next(draft.funcs[each])), None)) is not None:
            left.remove(name)
            found.append(name)

    def is_of_known(func: FuncDraft) -> bool:
        return bool(_made_of(func)) and set(_made_of(func)) <= {*found}

    take(is_of_known)
    for name in found:  # it grows
        for directive in (each for stage in draft.funcs[name].factoring for each in stage.directives):
            if isinstance(directive, RFactor) and directive.intermediate in left:
                left.remove(directive.intermediate)
                found.append(directive.intermediate)
                take(is_of_known)
    return [*found, *left]


def _made_of(func: FuncDraft) -> tuple[str, ...]:
    """The Funcs that a wrapper or a clone names."""
    return (func.origin.of, *func.origin.consumers) if isinstance(func.origin, Wrapper | Clone) else ()


def _stages(name: str, func: FuncDraft) -> Iterator[StageSchedule]:
    if func.frozen:
        yield from func.frozen
        return
    if func.compute is None and len(func.stages) == 1:
        return
    for index, stage in enumerate(func.stages):
        of_func = tuple(_of_func(func)) if index == 0 else ()
        directives = (*of_func, *_of_stage(stage, is_update=index > 0))
        if directives:
            yield StageSchedule(name, index - 1 if index else None, directives)


def _of_func(func: FuncDraft) -> Iterator[Directive]:
    if func.compute is not None:
        yield ComputeAt(func.compute)
    if func.store is not None:
        yield StoreAt(func.store)
    yield from func.storage


def _of_stage(stage: StageDraft, *, is_update: bool) -> Iterator[Directive]:
    yield from stage.transforms
    if len(stage.order) > 1:
        yield Reorder(stage.order)
    never = [PartitionLoop(loop, Partition.NEVER) for loop in whole_loops(stage)]
    if is_update and len(stage.order) <= 1 and not (stage.transforms or stage.kinds or stage.also or never):
        yield Unscheduled()
    last = [each for each in stage.also if isinstance(each, ComputeWith)]
    yield from (each for each in stage.also if not isinstance(each, ComputeWith))
    yield from never
    for loop in stage.order:
        if loop in stage.kinds:
            yield _MARKS[stage.kinds[loop]](loop)
    yield from last


def _funcs_in(stage: StageSchedule) -> Iterator[str]:
    """The Funcs that a stage names."""
    for directive in stage.directives:
        for field in fields(directive):
            match getattr(directive, field.name):
                case LoopLevel(str(func)):
                    yield func
                case Stage(func):
                    yield func
                case Source(identifier):
                    yield identifier


def _variables(draft: Draft, stages: list[StageSchedule], names: PipelineNames) -> tuple[Variable, ...]:
    """Every variable that the stages name: Vars, then RVars, by identifier."""
    known = {**names.original}
    known.update((each.identifier, each) for func in draft.funcs.values() for each in func.variables)
    for func in draft.funcs.values():
        for stage in func.stages:
            for transform in stage.transforms:
                reductions = [
                    known[root].is_reduction for root in stage.root_of(made_by(transform)[0]) if root in known
                ]
                for loop in made_by(transform):
                    known.setdefault(loop, Variable(loop, any(reductions), loop))
    used: set[str] = set()
    for each in stages:
        for directive in each.directives:
            used.update(variables_of(directive))
            if isinstance(directive, ComputeWith):
                used.update((directive.variable, *(name for name, _ in directive.alignments)))
            if isinstance(directive, OfFunc):
                used.update(
                    value.variable
                    for field in fields(directive)
                    if isinstance(value := getattr(directive, field.name), LoopLevel) and value.variable is not None
                )
    found = [known.get(name, Variable(name, False, name)) for name in used - {OUTERMOST}]
    return tuple(sorted(found, key=lambda each: (each.is_reduction, each.identifier)))
