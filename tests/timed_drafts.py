"""Schedules with times by a rule, for tests of what learns from times."""

from __future__ import annotations

from random import Random

from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.search.models.population import Population, Tried
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from tests.drafted_pipelines import recorded, starting_drafts

NAME = "separable_filter"


def without_vectors_ms(draft: Draft) -> float:
    """A time that follows from a schedule: each Func without vectors takes longer."""
    has_vectors = [any(s.first_of_kind(LoopKind.VECTORIZED) for s in func.stages) for func in draft.funcs.values()]
    return 1.0 + has_vectors.count(False)


def learnt(count: int) -> Population:
    """So many schedules with these times: those that a search starts from, then children of them."""
    drafts = [*starting_drafts(NAME)]
    born = _population([Tried(f"s{place}", draft, 1.0 + place / 10) for place, draft in enumerate(drafts[:6])])
    drafts += [child.draft for child in Evolution().propose(born, count, Random(11))]
    return _population([Tried(f"s{n}", draft, without_vectors_ms(draft)) for n, draft in enumerate(drafts[:count])])


def _population(tried: list[Tried]) -> Population:
    return Population(recorded(NAME), sorted(tried, key=lambda one: one.time_ms), {}, cores=4)
