"""The move that decides which loops Halide compiles in parts, with and without boundary conditions."""

from __future__ import annotations

from halide_autotune.autotune_loop.draft.edit import with_stage
from halide_autotune.autotune_loop.draft.model import Draft, Partitioning
from halide_autotune.autotune_loop.draft.partitioning import with_partitioning, with_short_code
from halide_autotune.autotune_loop.moves.move import MoveContext

# So often all Funcs are changed, where no loop is forbidden yet: it is what makes the code of large pipelines short.
_SHARE_OF_ALL = 0.5


def change_partitioning(context: MoveContext) -> Draft | None:
    """Other loops of a stage that must stay in one part; or of all Funcs those that need no parts, as in sketches."""
    stages = [stage for func in context.draft.funcs.values() for stage in func.stages]
    is_as_halide_has_it = all(stage.partitioning is Partitioning.AUTO for stage in stages)
    if is_as_halide_has_it and context.region is None and context.source.random() < _SHARE_OF_ALL:
        return with_short_code(context.structure)
    site = context.pick_site()
    if site is None:
        return None
    stage = context.draft.funcs[site.func].stages[site.stage]
    others = [with_partitioning(stage, each) for each in Partitioning]
    changed = context.pick([each for each in others if each.partitioning is not stage.partitioning])
    return None if changed is None else with_stage(context.draft, site.func, site.stage, changed)
