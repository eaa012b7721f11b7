"""What makes schedules fail is found out from those that did, and left out of others; what is good stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest

from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.schedule.directives import Split
from halide_autotune.autotune_loop.search.models.vector_faults import VectorFaults, causes_of
from tests.drafted_pipelines import plain_draft, recorded, with_split, with_vectors

NAME = "stencil_chain"
NAMES = recorded(NAME)
FUNCS = tuple(name for name, func in plain_draft(NAMES).funcs.items() if len(func.stages) == 1)


def at_root(*vectors: str, lanes: int = 16, inlined: str = "") -> Draft:
    """Every Func at the root but one that may be inlined; the others of these have vectors of the first loop."""
    draft = plain_draft(NAMES, **({inlined: None} if inlined else {}))
    for name in {*vectors} - {inlined}:
        stage = draft.funcs[name].stages[0]
        stage = with_split(stage, stage.order[0], lanes, LoopKind.VECTORIZED)
        draft = draft.with_func(name, draft.funcs[name].with_stage(0, stage))
    return draft


def faults_of(good: Sequence[Draft], failed: Sequence[Draft]) -> VectorFaults:
    return VectorFaults(NAMES, *((causes_of(draft, NAMES) for draft in drafts) for drafts in (good, failed)))


def lanes_of(draft: Draft, name: str) -> object:
    (made,) = (each for each in draft.funcs[name].stages[0].transforms if isinstance(each, Split))
    return made.factor


def failures(
    fails: Callable[[Draft], bool], proposed: Callable[[Random], Draft], count: int
) -> tuple[int, list[Draft]]:
    """How many of so many proposals fail where each is mended by what became of those before; and the good ones."""
    source, good, failed = Random(5), list[Draft](), list[Draft]()
    for _ in range(count):
        draft = faults_of(good, failed).mended(proposed(source), source)
        (failed if fails(draft) else good).append(draft)
    return len(failed), good


def anything(source: Random) -> Draft:
    return at_root(*source.sample(FUNCS, source.randint(len(FUNCS) - 2, len(FUNCS))), lanes=source.choice((8, 16, 32)))


def test_nothing_is_changed_where_nothing_failed() -> None:
    draft = at_root(*FUNCS)
    assert faults_of([draft], []).mended(draft, Random(1)) is draft
    assert faults_of([], []).mended(draft, Random(1)) is draft


def test_vectors_that_fail_become_loops_and_all_others_stay() -> None:
    failed, good = failures(lambda draft: FUNCS[1] in with_vectors(draft), anything, 60)
    assert failed <= 6
    assert all(len(with_vectors(draft)) >= len(FUNCS) - 3 for draft in good[-20:]), "and nearly all of the good ones"


def test_every_vector_may_fail() -> None:
    failed, good = failures(lambda draft: bool(with_vectors(draft)), anything, 60)
    assert failed <= 15 and not any(map(with_vectors, good))


def test_all_vectors_of_so_many_elements_may_fail() -> None:
    failed, good = failures(
        lambda draft: any(lanes_of(draft, name) == 32 for name in with_vectors(draft)), anything, 60
    )
    assert failed <= 8 and {lanes_of(draft, name) for draft in good[-20:] for name in with_vectors(draft)} == {8, 16}


def test_only_vectors_of_that_many_elements_may_fail() -> None:
    failed, good = failures(
        lambda draft: any(lanes_of(draft, name) == 32 for name in with_vectors(draft) & {FUNCS[2]}), anything, 90
    )
    assert failed <= 8
    assert {lanes_of(draft, FUNCS[2]) for draft in good[-40:] if FUNCS[2] in with_vectors(draft)} == {8, 16}


def test_vectors_may_fail_only_where_a_func_is_inlined_into_them() -> None:
    reads = DraftStructure(plain_draft(NAMES), NAMES).reads
    reader, inlined = next((site.func, each) for site, called in reads.items() for each in called if each in FUNCS)

    def proposed(source: Random) -> Draft:
        return at_root(*FUNCS, inlined=source.choice(("", inlined)))

    def fails(draft: Draft) -> bool:
        return reader in with_vectors(draft) and draft.funcs[inlined].is_inlined

    failed, good = failures(fails, proposed, 60)
    assert failed <= 6
    kept = [draft for draft in good[-30:] if not draft.funcs[inlined].is_inlined]
    assert kept and all(reader in with_vectors(draft) for draft in kept)


def test_failures_of_what_good_schedules_have_too_blame_no_vectors() -> None:
    draft = at_root(*FUNCS)
    faults = faults_of([draft] * 8, [draft] * 4)
    assert faults.mended(draft, Random(1)) is draft


@pytest.mark.parametrize("times", [1, 2])
def test_a_new_vector_is_given_up_after_its_second_failure(times: int) -> None:
    known, new = at_root(FUNCS[0]), at_root(FUNCS[0], FUNCS[1])
    faults = faults_of([known] * 5, [new] * times)
    assert with_vectors(faults.mended(new, Random(1))) == ({FUNCS[0], FUNCS[1]} if times == 1 else {FUNCS[0]})


def test_equal_sources_of_chance_mend_alike() -> None:
    draft = at_root(*FUNCS)
    faults = faults_of([], [draft] * 3)
    mended = [with_vectors(faults.mended(draft, Random(seed))) for seed in (1, 1, 2, 3, 4, 5)]
    assert mended[0] == mended[1] and len({frozenset(each) for each in mended}) > 1, "what is to blame is not known yet"
