"""The numbers of a draft: the factors of its splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from halide_autotune.autotune_loop.draft.edit import with_factor, with_stage
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.directives import Split

_LARGEST_VECTOR = 64
LARGEST_UNROLLED = 16


@dataclass(frozen=True)
class FactorPlace:
    """Where a factor is.

    Attributes:
        transform: the split's place among the stage's.
    """

    site: Site
    transform: int

    def split_in(self, draft: Draft) -> Split:
        """The split of a draft that has one there."""
        made = draft.funcs[self.site.func].stages[self.site.stage].transforms[self.transform]
        assert isinstance(made, Split), "only splits have factors"
        return made


def factors_of(draft: Draft) -> dict[FactorPlace, int]:
    """Every factor that is a number."""
    return {
        FactorPlace(Site(name, index), place): made.factor
        for name, func in draft.funcs.items()
        for index, stage in enumerate(func.stages)
        for place, made in enumerate(stage.transforms)
        if isinstance(made, Split) and isinstance(made.factor, int)
    }


def with_factors(draft: Draft, factors: Mapping[FactorPlace, int]) -> Draft:
    """The draft with other factors in some places, not yet repaired."""
    for place, factor in factors.items():
        func, index = place.site.func, place.site.stage
        stage = with_factor(draft.funcs[func].stages[index], place.split_in(draft), factor)
        draft = with_stage(draft, func, index, stage)
    return draft


def is_within_output(structure: DraftStructure, site: Site, loop: str, factor: int) -> bool:
    """Whether a split leaves alone what lies before an output: its last step is moved inwards, as far as it is long."""
    shape = structure.shape(site.func)
    is_output = shape is not None and shape.is_output and site.stage == 0
    return not is_output or factor <= structure.loop_extents(site)[loop]


def largest_factor(structure: DraftStructure, site: Site, made: Split) -> int:
    """The largest factor of a split that makes sense: as long as the loop, less where it becomes code or a vector."""
    extent = structure.loop_extents(site)[made.old]
    stage = structure.draft.funcs[site.func].stages[site.stage]
    match stage.kind(made.inner):
        case LoopKind.VECTORIZED:
            return min(extent, _LARGEST_VECTOR)
        case LoopKind.UNROLLED:
            return min(extent, LARGEST_UNROLLED)
    return extent
