"""Children are of the fastest, of several families, by moves that have brought something."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest

from halide_autotune.autotune_loop.candidate import Origin
from halide_autotune.autotune_loop.moves.mutation import CROSSOVER, MOVES
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.population import Failed, InUse, Population, Tried
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution, move_weights, parents_of
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from halide_autotune.autotune_loop.search.techniques.technique import Proposal
from tests.drafted_pipelines import header_drafts, recorded, starting_drafts
from tests.timed_drafts import learnt

NAME = "separable_filter"


def tried(symbol: str, time_ms: float, *parents: str, moves: tuple[str, ...] = ()) -> Tried:
    return Tried(symbol, starting_drafts(NAME)[0], time_ms, parents, moves)


def population(*known: Tried, failed: dict[str, int] | None = None) -> Population:
    return Population(recorded(NAME), sorted(known, key=lambda one: one.time_ms), failed or {}, cores=4)


def real(count: int = 6) -> Population:
    drafts = starting_drafts(NAME)[:count]
    return population(*(Tried(f"s{place}", draft, 1.0 + place / 10) for place, draft in enumerate(drafts)))


# Parents

TIMES_MS = (1.0, 1.01, 1.3, 1.4, 1.6, 2.0)


def test_the_fastest_are_parents_and_the_slow_ones_are_not() -> None:
    known = [tried(f"s{place}", time_ms) for place, time_ms in enumerate((1.0, 1.5, 2.4, 2.6, 9.0))]
    assert [one.symbol for one in parents_of(known)] == ["s0", "s1", "s2"]
    assert parents_of([]) == []
    assert parents_of([tried("alone", 5.0)]) == [tried("alone", 5.0)]


def test_parents_near_the_fastest_have_most_children_and_the_others_some() -> None:
    known = replace(real(), tried=[replace(one, time_ms=ms) for one, ms in zip(real().tried, TIMES_MS, strict=True)])
    made = Evolution().propose(known, 200, Random(7))
    children = Counter(proposal.parents[0] for proposal in made)
    assert min(children["s0"], children["s1"]) > 2 * max(children[f"s{place}"] for place in range(2, 6))
    assert len(children) == 6


def test_the_generators_own_schedule_has_children_before_it_is_timed() -> None:
    drafts = starting_drafts(NAME)
    known = replace(population(Tried("reference", drafts[0], 1.0)), in_use=InUse(Origin.OWN_SCHEDULE, drafts[1]))
    parents = Counter(proposal.parents for proposal in Evolution().propose(known, 60, Random(3)))
    assert parents[()] > 30, "it has no symbol yet"
    timed = replace(known, tried=[Tried(f"s{place}", drafts[0], 1.0 + place / 100) for place in range(3)])
    assert all(proposal.parents for proposal in Evolution().propose(timed, 60, Random(3))), "then its time counts"


def test_there_are_not_too_many() -> None:
    known = [tried(f"s{place}", 1.0 + place / 1000) for place in range(40)]
    assert parents_of(known) == known[:24]


def test_one_family_has_at_most_half() -> None:
    line = [tried("founder", 1.0)]
    for place in range(30):
        line.append(tried(f"child{place}", 1.0 + place / 1000, line[-1].symbol))
    others = [tried(f"other{place}", 1.5 + place / 1000) for place in range(5)]
    chosen = parents_of([*line, *others])
    assert sum(not one.symbol.startswith("other") for one in chosen) == 12
    assert [one for one in chosen if one.symbol.startswith("other")] == others


def test_a_family_is_that_of_the_first_parents_as_far_as_they_are_known() -> None:
    """A founder that was slow, or could not be timed, is not in the population: then its children are founders."""
    line = [tried(f"child{place}", 1.0 + place / 1000, "gone") for place in range(20)]
    assert parents_of(line) == line
    second = [tried(f"child{place}", 1.0 + place / 1000, f"own{place}", "founder") for place in range(20)]
    assert parents_of([tried("founder", 0.9), *second]) == [tried("founder", 0.9), *second]
    crossed = [tried(f"child{place}", 1.0 + place / 1000, "founder", f"own{place}") for place in range(20)]
    assert len(parents_of([tried("founder", 0.9), *crossed])) == 12


def test_parents_in_a_circle_do_not_hang() -> None:
    known = [tried("a", 1.0, "b"), tried("b", 1.1, "a")]
    assert parents_of(known) == known


# Moves


def test_without_tries_a_move_counts_as_much_as_elsewhere() -> None:
    weights = move_weights(population(tried("s0", 1.0)))
    assert weights.keys() == {move.name for move in MOVES}
    for move in MOVES:
        assert weights[move.name] / weights["factor"] == pytest.approx(move.weight / 5.0)


def test_what_has_made_children_faster_is_tried_more() -> None:
    children = [tried(f"c{place}", 0.9, "s0", moves=("tile", "tile")) for place in range(3)]
    before, after = (move_weights(population(tried("s0", 1.0), *some)) for some in ([], children))
    assert after["tile"] > 2 * before["tile"]
    assert after["reorder"] == before["reorder"]
    once = move_weights(population(tried("s0", 1.0), *(replace(one, moves=("tile",)) for one in children)))
    assert once == after, "a move that was made twice in one child counts once"


def test_a_gain_is_more_than_what_timing_may_hide() -> None:
    noise = [tried(f"c{place}", 0.985, "s0", moves=("tile",)) for place in range(3)]
    before = move_weights(population(tried("s0", 1.0)))["tile"]
    assert move_weights(population(tried("s0", 1.0), *noise))["tile"] < before


def test_only_the_first_parent_counts() -> None:
    slow, fast = tried("slow", 2.0), tried("fast", 1.0)
    better = tried("c", 1.5, "slow", "fast", moves=("tile",))
    worse = tried("c", 1.5, "fast", "slow", moves=("tile",))
    assert move_weights(population(slow, fast, better))["tile"] > move_weights(population(slow, fast, worse))["tile"]


def test_what_makes_children_slower_or_fail_is_tried_less() -> None:
    before = move_weights(population(tried("s0", 1.0)))
    slower = [tried(f"c{place}", 1.2, "s0", moves=("unroll",)) for place in range(12)]
    after = move_weights(population(tried("s0", 1.0), *slower))
    assert after["unroll"] == pytest.approx(before["unroll"] / 2)
    failing = move_weights(population(tried("s0", 1.0), failed={"unroll": 12}))
    assert failing["unroll"] == pytest.approx(before["unroll"] / 2) and failing["tile"] == before["tile"]


def test_a_sketchs_name_is_no_move() -> None:
    sketch = tried("s0", 1.0, moves=("rows",))
    orphan = tried("s1", 0.5, "unknown", moves=("tile",))
    assert move_weights(population(sketch, orphan)) == move_weights(population())


# Proposals


def test_children_have_their_parents_and_moves() -> None:
    known = real()
    proposals = list(Evolution().propose(known, 20, Random(5)))
    assert len(proposals) > 20, "some may be known already"
    drafts = {one.symbol: one.draft for one in known.tried}
    for proposal in proposals:
        assert 1 <= len(proposal.parents) <= 2 and set(proposal.parents) <= set(drafts)
        assert proposal.draft != drafts[proposal.parents[0]]
        assert (proposal.moves == (CROSSOVER,)) is (len(proposal.parents) == 2)
        assert set(proposal.moves) <= {move.name for move in MOVES} | {CROSSOVER}
        assert len(set(proposal.parents)) == len(proposal.parents)
    counts = Counter(len(proposal.parents) for proposal in proposals)
    assert counts[1] > counts[2] > 0
    lengths = Counter(len(proposal.moves) for proposal in proposals)
    assert lengths[1] > lengths[2] > 0 and max(lengths) <= 5


def test_the_fastest_have_most_children() -> None:
    proposals = (each for seed in range(3) for each in Evolution().propose(real(), 60, Random(seed)))
    first = Counter(proposal.parents[0] for proposal in proposals)
    assert first["s0"] > 2 * first["s5"] > 0


def test_equal_chances_give_equal_proposals() -> None:
    one, again, other = (list(Evolution().propose(real(), 8, Random(seed))) for seed in (1, 1, 2))
    assert one == again != other


def test_before_anything_is_timed_children_are_those_of_sketches() -> None:
    unborn = list(Evolution().propose(population(), 8, Random(1)))
    assert unborn and not any(proposal.parents for proposal in unborn)


@pytest.mark.parametrize("count", [6, 40])
def test_every_third_child_is_of_another_family_than_the_fastest(count: int) -> None:
    """A person's schedule may be the best that its family has, and far ahead of all others."""
    drafts = starting_drafts(NAME)
    own = [Tried("own", drafts[0], 1.0)]
    own += [Tried(f"child{place}", drafts[0], 1.0 + place / 1000, ("own",)) for place in range(1, count)]
    behind = [Tried(f"other{place}", draft, 1.6 + place / 2) for place, draft in enumerate(drafts[1:3])]
    made = list(itertools.islice(Evolution().propose(population(*own, *behind), 24, Random(3)), 24))
    others = [child for child in made if child.parents[0].startswith("other")]
    assert all(child in others for child in made[2::3])
    assert len(others) < 12, "else the fastest's are changed"
    assert Counter(child.parents[0] for child in others).most_common(1)[0][0] == "other0", "the fastest of them"


def test_the_first_parent_may_be_alone() -> None:
    alone = list(Evolution().propose(real(1), 8, Random(1)))
    assert alone and all(proposal.parents == ("s0",) for proposal in alone)


def test_failing_moves_are_made_less_often() -> None:
    def share(failed: dict[str, int]) -> float:
        made = Evolution().propose(replace(real(), failed_moves=failed), 60, Random(3))
        moves = Counter(move for proposal in made for move in proposal.moves)
        return moves["factor"] / moves.total()

    assert share({"factor": 200}) < share({}) / 2


def test_what_failed_is_proposed_once_more_before_any_child() -> None:
    failed = tuple(Failed(f"f{place}", draft, place == 2) for place, draft in enumerate(starting_drafts(NAME)[:8]))
    made = list(itertools.islice(Evolution().propose(replace(real(), failed=failed), 12, Random(3)), 12))
    again, children = made[:4], made[4:]
    assert {each.parents for each in again} <= {(one.symbol,) for one in failed if not one.has_children}
    assert all(each.draft == failed[int(each.parents[0][1:])].draft and not each.moves for each in again)
    assert len({each.parents for each in again}) == 4, "a third of what is wanted"
    assert all(each.moves and not each.parents[0].startswith("f") for each in children)
    alone = Evolution().propose(replace(real(), tried=(), failed=failed), 12, Random(3))
    assert next(alone).parents[0].startswith("f"), "where nothing is timed yet, too"


# The model's choice


def first(known: Population) -> list[Proposal]:
    return list(itertools.islice(Evolution().propose(known, 24, Random(3)), 24))


def test_children_come_in_the_models_order_but_for_one_by_a_move_that_was_hardly_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = learnt(60)
    founder, *others = known.tried
    family = replace(known, tried=[founder, *(replace(one, parents=(founder.symbol,)) for one in others)])
    often = {move.name: 3 for move in MOVES}

    def proposed(step: int, tries: Mapping[str, int], seed: int = 3) -> list[Proposal]:
        monkeypatch.setattr(Expectation, "most_promising", lambda self, *asked: [*range(len(self.means))][::step])
        return list(Evolution().propose(replace(family, failed_moves=tries), 6, Random(seed)))

    assert len(proposed(1, often)) > 12 and proposed(1, often) == proposed(-1, often)[::-1]
    of_unrolled = 0
    for seed in range(8):
        assert repeated(proposed(1, often, seed)) == []
        made = proposed(1, {**often, "unroll": 2, "reorder": 2}, seed)
        once = made[:2] + made[3:]
        if any(child.moves == ("unroll",) for child in once):
            of_unrolled += 1
            assert made[2].moves == ("unroll",), "which gains more elsewhere"
            assert repeated(made) == [made[2]]
    assert of_unrolled > 1


def repeated(made: Sequence[Proposal]) -> list[Proposal]:
    """Those that come again: out of the model's order, and in it."""
    return [child for place, child in enumerate(made) if any(child is other for other in made[:place])]


def test_what_the_model_chooses_are_children_like_others() -> None:
    known = learnt(60)
    symbols = {one.symbol for one in known.tried}
    assert all(child.moves and child.parents and {*child.parents} <= symbols for child in first(known))
    assert first(known) == first(known)


# Where it starts


def test_the_own_schedule_comes_before_the_sketches() -> None:
    own = header_drafts(NAME)[0]
    proposals = list(Starts().propose(replace(population(), in_use=InUse(Origin.OWN_SCHEDULE, own)), 1, Random(1)))
    assert proposals[0].draft == own and proposals[0].moves == (Origin.OWN_SCHEDULE.value,)
    plain = list(Starts().propose(population(), 1, Random(2)))
    assert plain == proposals[1:] and len(plain) > 3
    assert all(not proposal.parents and len(proposal.moves) == 1 for proposal in proposals)
    drafts = [proposal.draft for proposal in plain]
    assert all(draft not in drafts[:place] for place, draft in enumerate(drafts))
