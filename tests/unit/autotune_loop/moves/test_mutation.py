"""Children of schedules: consistent, legal as far as can be told without compiling, and the same for equal seeds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import pytest

from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.draft.work import work_of
from halide_autotune.autotune_loop.moves.mutation import CROSSOVER, MOVES, Child, Mutation
from halide_autotune.autotune_loop.schedule.as_json import parse_json, print_json
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import Atomic, Split
from halide_autotune.autotune_loop.schedule.model import Clone, Wrapper
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.values import TailStrategy
from halide_autotune.autotune_loop.sketches.sketches import sketches
from tests.drafted_pipelines import (
    RECORDED,
    by_rows,
    chain,
    channels,
    for_target,
    func,
    lookups,
    pipeline,
    plain_draft,
    read,
    recorded,
    staged,
    starting_drafts,
    with_vectors,
)

COUNT = 200
VECTOR, UNROLLED, PARALLEL = LoopKind.VECTORIZED, LoopKind.UNROLLED, LoopKind.PARALLEL


@cache
def children(name: str) -> tuple[tuple[Draft, Child], ...]:
    """A few hundred parents and children, children of children among them, as in a run."""
    return tuple(breed(name, COUNT, seed=11))


@cache
def structures(name: str) -> dict[int, DraftStructure]:
    return {id(child): DraftStructure(child.draft, recorded(name)) for _, child in children(name)}


def structure_of(name: str, child: Child) -> DraftStructure:
    return structures(name)[id(child)]


def breed(name: str, count: int, seed: int) -> list[tuple[Draft, Child]]:
    mutation, source = Mutation(recorded(name)), Random(seed)
    population = list(starting_drafts(name))
    made = []
    for _ in range(count):
        parent = source.choice(population)
        child = None
        if source.random() < 0.2:  # of parents that are alike it gives none
            child = mutation.crossed(parent, source.choice(population), source)
        if child is None:
            child = mutation.child(parent, source, {}, source.choice((1, 1, 2, 4)))
        if child is not None:
            made.append((parent, child))
            population[source.randrange(len(population))] = child.draft
    return made


def order_of_calls(structure: DraftStructure, site: Site) -> list[str]:
    """The loops that a stage's splits and fusions leave of the pipeline's, in the order in which those are."""
    order = [each.identifier for each in structure.loops(site)]
    for made in structure.draft.funcs[site.func].stages[site.stage].transforms:
        if isinstance(made, Split):
            place = order.index(made.old)
            order[place : place + 1] = [made.inner, made.outer]
        else:
            order[order.index(made.inner)] = made.fused
            order.remove(made.outer)
    return order


def stages_with_loops(structure: DraftStructure) -> list[tuple[Site, StageDraft]]:
    return [
        (Site(name, index), stage)
        for name, func in structure.draft.funcs.items()
        if not structure.is_inlined(name)
        for index, stage in enumerate(func.stages)
    ]


@pytest.mark.parametrize("name", RECORDED)
def test_nearly_every_try_gives_a_child_that_is_another_draft(name: str) -> None:
    made = children(name)
    assert len(made) > 0.9 * COUNT
    assert all(child.draft != parent and child.moves for parent, child in made)


@pytest.mark.parametrize("name", RECORDED)
def test_every_child_is_a_consistent_schedule_that_prints_and_parses_back(name: str) -> None:
    names = recorded(name)
    for _, child in children(name):
        made = schedule_of(child.draft, names, "f")
        check_schedule(made)
        assert parse_json(print_json(made)) == made
        assert parse_schedule(print_header(made, "f")) == made
        again = draft_of(made, names)
        # Names may be simpler; from then on they stay.
        assert draft_of(schedule_of(again, names, "f"), names) == again


@pytest.mark.parametrize("name", RECORDED)
def test_no_loop_is_lost_and_none_is_made_up(name: str) -> None:
    for _, child in children(name):
        structure = structure_of(name, child)
        for site, stage in stages_with_loops(structure):
            assert sorted(stage.order) == sorted(order_of_calls(structure, site)), child.moves
            assert set(stage.kinds) <= set(stage.order)


@pytest.mark.parametrize("name", RECORDED)
def test_iterations_that_have_an_order_keep_it(name: str) -> None:
    for _, child in children(name):
        structure = structure_of(name, child)
        for site, stage in stages_with_loops(structure):
            shape = structure.shape(site.func)
            assert shape is not None
            ordered = set(structure.ordered_loops(site))
            is_ordered = {each: not ordered.isdisjoint(stage.root_of(each)) for each in stage.order}
            assert not any(is_ordered[loop] for loop, kind in stage.kinds.items() if kind is PARALLEL), child.moves
            merged = any(isinstance(each, Atomic) for each in stage.also)
            vectors = [loop for loop, kind in stage.kinds.items() if kind is VECTOR and is_ordered[loop]]
            assert not vectors or merged, child.moves
            if not shape.stages[site.stage].is_associative:
                wanted = [loop for loop in order_of_calls(structure, site) if is_ordered[loop]]
                assert [loop for loop in stage.order if is_ordered[loop]] == wanted, child.moves
                assert not vectors


@pytest.mark.parametrize("name", RECORDED)
def test_only_loops_of_a_constant_extent_are_vectors_or_unrolled(name: str) -> None:
    for _, child in children(name):
        structure = structure_of(name, child)
        for site, stage in stages_with_loops(structure):
            marked = [loop for loop, kind in stage.kinds.items() if kind is not PARALLEL]
            assert all(structure.is_constant(site, loop) for loop in marked), (site, child.moves)
            factors = {made.inner for made in stage.transforms if isinstance(made, Split)}
            if site == Site("output", 0):
                # Nothing but a split by a number can make one of an output that promises nothing.
                of_numbers = [any(each in loop for each in factors) for loop in marked]
                assert all(of_numbers) or recorded(name).shapes["output"].bounded


@pytest.mark.parametrize("name", RECORDED)
def test_every_func_is_computed_around_all_its_uses(name: str) -> None:
    for _, child in children(name):
        structure = structure_of(name, child)
        for name_of, draft in child.draft.funcs.items():
            if not (structure.is_inlined(name_of) or draft.frozen):
                assert draft.compute in structure.around_all_uses(name_of), (name_of, child.moves)
            if draft.store is not None:
                assert draft.store in structure.stores(name_of), (name_of, child.moves)


def test_reductions_are_never_rounded_up() -> None:
    names, parent = recorded("matrix_product"), starting_drafts("matrix_product")[0]
    source = Random(3)
    weights = {move.name: 0.0 for move in MOVES} | {"split": 1.0, "tail": 3.0}
    made = [Mutation(names).child(parent, source, weights, 4) for _ in range(300)]
    rounded = [
        any(names.original[root].is_reduction for root in stage.root_of(each.old))
        for child in made
        if child is not None
        for func in child.draft.funcs.values()
        for stage in func.stages
        for each in stage.transforms
        if isinstance(each, Split) and each.tail is TailStrategy.ROUND_UP
    ]
    assert rounded and not any(rounded)


@pytest.mark.parametrize("name", RECORDED)
def test_no_child_does_far_more_work_than_its_parent(name: str) -> None:
    def work(draft: Draft) -> float:
        return sum(work_of(DraftStructure(draft, recorded(name))).values())

    for parent, child in children(name):
        moves = len(child.moves)
        assert work(child.draft) <= 4.0**moves * work(parent) * (1 + 1e-9), child.moves


def test_some_children_are_crossed() -> None:
    assert any(child.moves == (CROSSOVER,) for name in RECORDED for _, child in children(name))


@pytest.mark.parametrize("move", [move.name for move in MOVES])
def test_every_move_is_made(move: str) -> None:
    alone = {each.name: 0.0 for each in MOVES} | {move: 1.0}
    drafts = [(chain(), by_rows(plain_draft(chain())))] * 20  # a draw may be of more rows than it has
    drafts += [(lookups(), plain_draft(lookups())), (channels(), plain_draft(channels(), colour=None))]
    drafts += [(recorded(name), draft) for name in RECORDED for draft in starting_drafts(name)]
    drafts += [(recorded(name), child.draft) for name in RECORDED for _, child in children(name)]
    made = (Mutation(names).child(draft, Random(seed), alone, 1) for seed, (names, draft) in enumerate(drafts))
    assert next(child.moves for child in made if child is not None) == (move,)


@pytest.mark.parametrize("move", ["vectorize", "tile", "factors"])
def test_splits_of_an_output_are_no_longer_than_it(move: str) -> None:
    """A last step that is moved inwards would write before the output."""
    point = (("x", 1), ("y", 1), ("z", 1))
    names = pipeline(func("first", (40, 12, 3)), func("output", (40, 12, 3), read("first", *point)))
    mutation, weights = Mutation(names), {each.name: float(each.name == move) for each in MOVES}
    made = 0
    for parent in [plain_draft(names), *(sketch.draft for sketch in sketches(names, 4))]:
        for seed in range(40):
            child = mutation.child(parent, Random(seed), weights, 1)
            if child is None or child.draft.funcs["output"] == parent.funcs["output"]:
                continue
            made += 1
            extents = DraftStructure(child.draft, names).loop_extents(Site("output", 0))
            for each in child.draft.funcs["output"].stages[0].transforms:
                if isinstance(each, Split) and each not in parent.funcs["output"].stages[0].transforms:
                    assert isinstance(each.factor, int)
                    is_guarded = each.tail is TailStrategy.GUARD_WITH_IF and move != "vectorize"
                    assert is_guarded or each.factor <= extents[each.old]
    assert made


def test_no_child_has_a_copy_of_an_extern_func() -> None:
    """Its loops would be those of a Func that has none."""
    names = staged()
    mutation, source, draft = Mutation(names), Random(3), plain_draft(names)
    made = [mutation.child(draft, source, {"in": 20.0, "clone_in": 20.0}, 2) for _ in range(200)]
    found = [child.draft for child in made if child is not None]
    copies = [func.origin for each in found for func in each.funcs.values() if isinstance(func.origin, Wrapper | Clone)]
    assert copies and all(origin.of != "foreign" for origin in copies)
    for each in found:
        check_schedule(schedule_of(each, names, "f"))


@pytest.mark.parametrize("name", ["camera_pipeline", "scan"])
def test_equal_seeds_give_equal_children(name: str) -> None:
    def texts(seed: int) -> list[str]:
        bred = breed(name, 40, seed)
        return [f"{child.moves} {print_json(schedule_of(child.draft, recorded(name), 'f'))}" for _, child in bred]

    assert texts(5) == texts(5) != texts(6)


def test_a_child_is_of_as_many_moves_as_are_asked_for() -> None:
    parent = starting_drafts("corner_detector")[0]
    mutation, source = Mutation(recorded("corner_detector")), Random(2)
    for count in (1, 3):
        made = [mutation.child(parent, source, {}, count) for _ in range(30)]
        assert {len(child.moves) for child in made if child is not None} == {count}


def test_only_moves_with_a_weight_are_tried() -> None:
    parent = starting_drafts("separable_filter")[0]
    mutation, source = Mutation(recorded("separable_filter")), Random(2)
    weights = {move.name: 0.0 for move in MOVES} | {"factor": 1.0, "reorder": 3.0}
    moves = [
        move for _ in range(60) for move in (mutation.child(parent, source, weights, 1) or Child(parent, ())).moves
    ]
    assert set(moves) == {"factor", "reorder"} and moves.count("reorder") > moves.count("factor")


def test_a_draft_that_no_move_fits_has_no_child() -> None:
    weights = {move.name: 0.0 for move in MOVES} | {"factor": 1.0}
    assert Mutation(chain()).child(plain_draft(chain()), Random(1), weights, 3) is None, "it has no split"


def test_busy_funcs_are_changed_more_often() -> None:
    names, parent = recorded("camera_pipeline"), starting_drafts("camera_pipeline")[0]
    busy = {"output": 0.9, "corrected": 0.1}

    def changed(mutation: Mutation) -> int:
        source = Random(4)
        weights = {move.name: 0.0 for move in MOVES} | {"unroll": 1.0, "split": 1.0}
        made = [mutation.child(parent, source, weights, 1) for _ in range(80)]
        return sum(child is not None and child.draft.funcs["output"] != parent.funcs["output"] for child in made)

    assert changed(Mutation(names, busy=busy)) > 2 * changed(Mutation(names, busy={"corrected": 1.0}))


def test_the_moves_of_a_child_are_made_in_one_region() -> None:
    names = recorded("stencil_chain")
    parent = plain_draft(names)
    structure, mutation, source = DraftStructure(parent, names), Mutation(names), Random(4)
    only = {move.name: 0.0 for move in MOVES} | {"vectorize": 1.0, "unroll": 1.0}
    children = [mutation.child(parent, source, only, 4) for _ in range(40)]
    changed = [
        {name for name, func in child.draft.funcs.items() if func != parent.funcs[name]}
        for child in children
        if child is not None
    ]
    regions = [structure.with_neighbours({name}) for name in names.shapes]
    assert all(any(each <= region for region in regions) for each in changed)
    assert any(len(each) > 1 for each in changed) and max(map(len, regions)) < len(names.shapes) / 2


def test_neighbours_are_found_through_what_is_inlined() -> None:
    names = chain()
    apart, inlined = DraftStructure(plain_draft(names), names), DraftStructure(plain_draft(names, second=None), names)
    assert apart.with_neighbours({"first"}) == {"first", "second"}
    assert apart.with_neighbours({"second"}) == {"first", "second", "output"}
    assert inlined.with_neighbours({"first"}) == {"first", "output"}
    assert inlined.with_neighbours({"output"}) == {"first", "second", "output"}


def test_without_vectors_of_floats_none_is_made() -> None:
    names = recorded("scan")
    without = PipelineNames(replace(names.shape, has_float_vectors=False))

    def vectors(mutation: Mutation) -> int:
        source, parent = Random(9), plain_draft(names)
        weights = {move.name: 0.0 for move in MOVES} | {"vectorize": 1.0, "stop inlining": 1.0, "inline": 1.0}
        made = [mutation.child(parent, source, weights, 3) for _ in range(30)]
        return sum(
            kind is VECTOR
            for child in made
            if child is not None
            for func in child.draft.funcs.values()
            for stage in func.stages
            for kind in stage.kinds.values()
        )

    assert vectors(Mutation(without)) == 0 < vectors(Mutation(names))


def test_vectors_that_the_target_gets_wrong_are_made_nowhere() -> None:
    names = recorded("stencil_chain")
    wrong = for_target(names, is_wrong_in_vectors=True, is_wrong_if_inlined=True)
    described = for_target(names, is_wrong_if_inlined=True).shape
    narrow = tuple(replace(func, is_narrow=True) for func in described.funcs)
    if_inlined = PipelineNames(replace(described, funcs=narrow))
    only = {move.name: 0.0 for move in MOVES} | {"vectorize": 1.0, "inline": 1.0, "stop inlining": 1.0}

    def made(of: PipelineNames) -> list[DraftStructure]:
        mutation, source = Mutation(of), Random(9)
        children = [mutation.child(plain_draft(of), source, only, 4) for _ in range(60)]
        return [DraftStructure(child.draft, of) for child in children if child is not None]

    def vectors(of: PipelineNames) -> list[tuple[DraftStructure, str]]:
        return [(structure, name) for structure in made(of) for name in with_vectors(structure.draft)]

    assert not vectors(wrong) and vectors(names)
    some = vectors(if_inlined)
    assert some and not any(structure.inlined_into(name) for structure, name in some)


def test_vectors_have_as_many_elements_as_the_target_needs() -> None:
    names = for_target(recorded("stencil_chain"), least_lanes=64)
    mutation, source = Mutation(names), Random(9)
    only = {move.name: 0.0 for move in MOVES} | {"vectorize": 1.0}
    children = [mutation.child(plain_draft(names), source, only, 2) for _ in range(40)]
    lanes = {
        made.factor
        for child in children
        if child is not None
        for _, stage in stages_with_loops(DraftStructure(child.draft, names))
        for made in stage.transforms
        if isinstance(made, Split) and stage.kinds.get(made.inner) is VECTOR
    }
    assert lanes == {64, 128}
