"""Which loops Halide may compile in parts: the middle without boundary conditions, and both ends with them.

Where loops are within loops, each of which is taken apart, there are up to nine copies of the innermost body. What
counts for speed is mostly that of the innermost loop, so people forbid the others (`never_partition`); the code is
compiled up to three times as fast. Unrolled loops make copies, too.
"""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.draft.model import Draft, LoopKind, Partitioning, StageDraft
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.draft.work import work_of
from halide_autotune.autotune_loop.schedule.directives import PartitionLoop
from halide_autotune.autotune_loop.schedule.values import Partition

# A definition that does less of all operations, with what is computed in its loops, has no need of any copies.
_SMALL_SHARE = 0.001


def whole_loops(stage: StageDraft) -> tuple[str, ...]:
    """The loops that must stay in one part, the innermost first."""
    if stage.partitioning is Partitioning.AUTO:
        return ()
    loops = tuple(loop for loop in stage.order if stage.kind(loop) is not LoopKind.VECTORIZED)
    if stage.partitioning is Partitioning.NONE:
        return loops
    vector = stage.first_of_kind(LoopKind.VECTORIZED)
    of_vector = () if vector is None else stage.root_of(vector)
    innermost = next((loop for loop in loops if stage.kind(loop) is not LoopKind.UNROLLED), None)
    return tuple(loop for loop in loops if loop != innermost and not {*stage.root_of(loop)} & {*of_vector})


def with_partitioning(stage: StageDraft, partitioning: Partitioning) -> StageDraft:
    """The stage with that, or the first that forbids the same loops; directives for single loops give way to it."""
    if partitioning is not Partitioning.AUTO:
        stage = replace(stage, also=tuple(each for each in stage.also if not isinstance(each, PartitionLoop)))
    wanted = {*whole_loops(replace(stage, partitioning=partitioning))}
    every = (replace(stage, partitioning=each) for each in Partitioning)
    return next(each for each in every if {*whole_loops(each)} == wanted)


def with_partitioning_read(stage: StageDraft) -> StageDraft:
    """The stage whose directives for single loops are its partitioning, if they are one."""
    said = [each for each in stage.also if isinstance(each, PartitionLoop)]
    never = sorted(each.variable for each in said if each.policy is Partition.NEVER)
    for partitioning in Partitioning:
        made = replace(stage, partitioning=partitioning)
        if len(never) == len(said) and sorted(whole_loops(made)) == never:
            return replace(made, also=tuple(each for each in stage.also if each not in said))
    return stage


def with_short_code(structure: DraftStructure) -> Draft:
    """The draft in which no loop is taken apart that need not be, by what it cost in trials on Halide's apps; and what
    does little is not unrolled, which took a tenth to a quarter of what large pipelines take to compile.

    Updates that do much, and what these are computed in, are left to Halide: their own loops are often short.
    """
    draft, work = structure.draft, work_of(structure)
    within, least = dict(work), _SMALL_SHARE * sum(work.values())
    around_updates: set[str] = set()
    for name, operations in work.items():
        hosts = {level.func for level in structure.outside(name) if level.func in work}
        for host in hosts:
            within[host] += operations
        if len(draft.funcs[name].stages) > 1:
            around_updates |= hosts
    for name in work:
        func = draft.funcs[name]
        if within[name] < least * len(func.stages):
            serial = [stage.without_kind(LoopKind.UNROLLED) for stage in func.stages]
            stages = tuple(with_partitioning(stage, Partitioning.NONE) for stage in serial)
            draft = draft.with_func(name, replace(func, stages=stages))
        elif name not in around_updates:
            draft = draft.with_func(name, func.with_stage(0, with_partitioning(func.stages[0], Partitioning.INNER)))
    return draft
