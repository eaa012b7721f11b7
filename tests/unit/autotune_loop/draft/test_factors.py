"""The numbers of a draft can be read, changed together, and have a largest value that makes sense."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.draft.factors import FactorPlace, factors_of, largest_factor, with_factors
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from tests.drafted_pipelines import EXAMPLES, recorded, starting_drafts

DRAFTS = [(name, draft) for name in EXAMPLES for draft in starting_drafts(name)]


@pytest.mark.parametrize(("name", "draft"), DRAFTS)
def test_what_is_changed_and_changed_back_is_as_it_was(name: str, draft: Draft) -> None:
    factors = factors_of(draft)
    doubled = {place: 2 * factor for place, factor in factors.items()}
    changed = with_factors(draft, doubled)
    assert factors_of(changed) == doubled
    assert with_factors(changed, factors) == draft == with_factors(draft, {})


def test_one_is_changed_and_the_others_stay() -> None:
    draft = next(draft for _, draft in DRAFTS if len(factors_of(draft)) > 3)
    first, *others = factors_of(draft)
    changed = with_factors(draft, {first: 7})
    assert first.split_in(changed).factor == 7
    assert all(place.split_in(changed) == place.split_in(draft) for place in others)


@pytest.mark.parametrize(("kind", "largest"), [(None, 1920), (LoopKind.VECTORIZED, 64), (LoopKind.UNROLLED, 16)])
def test_a_loop_may_be_as_long_as_it_is_and_code_and_vectors_only_so_long(kind: LoopKind | None, largest: int) -> None:
    names, site = recorded("separable_filter"), Site("output", 0)
    draft = max(starting_drafts("separable_filter"), key=lambda each: len(factors_of(each)))
    made = FactorPlace(site, 0).split_in(draft)
    func = draft.funcs[site.func]
    changed = draft.with_func(site.func, func.with_stage(0, func.stages[0].with_kind(made.inner, kind)))
    structure = DraftStructure(changed, names)
    assert structure.loop_extents(site)[made.old] == 1920
    assert largest_factor(structure, site, made) == largest
