"""What a technique must keep to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from random import Random

from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.techniques.registry import TECHNIQUES, checked_proposal
from halide_autotune.autotune_loop.search.techniques.technique import Proposal, Technique
from halide_autotune.sdk.contracts.require import require
from halide_autotune.sdk.contracts.sample_population import sample_population
from halide_autotune.targets.extension_point import told

_WANTED, _MOST_LOOKED_AT = 8, 200
_KNOWN = (0, 4, 60)


def check_technique(technique: str | Callable[[], Technique]) -> None:
    """Check that a technique can be used in a run.

    Args:
        technique: the name of its entry point; or the class or function that the entry point leads to.

    Raises:
        AssertionError: it does not keep to something; the message says to what.
        UsageError: there is none of that name, or it cannot be imported or made.
    """
    name, make = ("it", technique) if callable(technique) else (technique, TECHNIQUES.load(technique))
    proposed_new = False
    for count in _KNOWN:
        population = sample_population(count)
        made = _proposals(TECHNIQUES.checked(name, make), population, 3)
        known = [one.draft for one in population.tried]
        symbols = {one.symbol for one in population.tried}
        for proposal in made:
            _check_draft(proposal, population)
            strangers = {*proposal.parents} - symbols
            require(not strangers, "The parents of a proposal must be symbols of population.tried", strangers)
        proposed_new = proposed_new or any(proposal.draft not in known for proposal in made)
        require(sample_population(count) == population, "propose must leave the population as it is")
        again = TECHNIQUES.checked(name, make)
        for _ in range(2):
            equal = _proposals(again, population, 3) == made
            require(equal, "propose must give the same for the same population and an equal source of chance")
    require(proposed_new, f"propose must yield a schedule that was not timed, with {_KNOWN} schedules known")


def _proposals(technique: Technique, population: Population, seed: int) -> Sequence[Proposal]:
    try:
        proposals = islice(technique.propose(population, _WANTED, Random(seed)), _MOST_LOOKED_AT)
        return [checked_proposal(proposal) for proposal in proposals]
    except Exception as error:
        known = len(population.tried)
        raise AssertionError(f"propose must not fail with {known} schedules known; it does: {told(error)}") from error


def _check_draft(proposal: Proposal, population: Population) -> None:
    lacking = {*population.names.shapes} - {*proposal.draft.funcs}
    require(not lacking, "Each draft must have every Func of population.names", f"without {', '.join(sorted(lacking))}")
    try:
        print_json(schedule_of(proposal.draft, population.names, "sample"))
    except Exception as error:
        moves = ", ".join(proposal.moves) or "without moves"
        raise AssertionError(
            f"Each draft must be a schedule of population.names; that of a proposal ({moves}) is not: {told(error)}"
        ) from error
