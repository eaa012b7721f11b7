"""The numbers of a draft: the factors of its splits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from autotune_loop.draft.model import Draft, LoopKind
from autotune_loop.draft.structure import DraftStructure, Site
from autotune_loop.schedule.directives import Split

_LARGEST_VECTOR = 64
_LARGEST_UNROLLED = 16


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
    of_sites: defaultdict[Site, dict[int, int]] = defaultdict(dict)
    for place, factor in factors.items():
        of_sites[place.site][place.transform] = factor
    funcs = {**draft.funcs}
    for site, changed in of_sites.items():
        func = funcs[site.func]
        stage = func.stages[site.stage]
        transforms = tuple(
            replace(made, factor=changed[place]) if place in changed and isinstance(made, Split) else made
            for place, made in enumerate(stage.transforms)
        )
        funcs[site.func] = func.with_stage(site.stage, replace(stage, transforms=transforms))
    return replace(draft, funcs=funcs)


def largest_factor(structure: DraftStructure, site: Site, made: Split) -> int:
    """The largest factor of a split that makes sense: as long as the loop, less where it becomes code or a vector."""
    extent = structure.loop_extents(site)[made.old]
    stage = structure.draft.funcs[site.func].stages[site.stage]
    match stage.kind(made.inner):
        case LoopKind.VECTORIZED:
            return min(extent, _LARGEST_VECTOR)
        case LoopKind.UNROLLED:
            return min(extent, _LARGEST_UNROLLED)
    return extent
