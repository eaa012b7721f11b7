"""What a budget leaves for each step, what is asked instead, and how a step that is too slow is told."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.specification.build_limits import BuildLimits
from halide_autotune.autotune_loop.specification.options import RunOptions

MEMORY_BYTES = 2**30


def limits(tasks: int = 1, **asked: object) -> BuildLimits:
    return BuildLimits.of_run(RunOptions.of(**asked).limits, tasks, MEMORY_BYTES)


def test_without_a_budget_nothing_is_implied() -> None:
    assert limits() == BuildLimits(memory_bytes=MEMORY_BYTES)
    assert limits(memory_limit_bytes="4G").memory_bytes == 4 * 2**30


def test_a_budget_leaves_shares_and_says_so() -> None:
    given = limits(budget_s=60)
    assert (given.search_s, given.full_search_s, given.reference_s, given.reference_run_s) == (15, 6, 30, 30)
    assert given.advice("search_s") == (
        " The budget of 60 s leaves 15 s for one search; raise --budget or set --search-limit."
    )
    assert " 6 s for the full beam search; raise --budget or set --full-search-limit." in given.advice("full_search_s")
    assert "30 s for building the reference; raise --budget or set --search-limit." in given.advice("reference_s")
    assert given.advice("reference_run_s").endswith("30 s for one run of the reference; raise --budget.")


def test_tasks_share_a_budget() -> None:
    assert limits(tasks=2, budget_s=120).search_s == limits(budget_s=60).search_s
    assert "The budget of 120 s" in limits(tasks=2, budget_s=120).advice("search_s")


def test_what_is_asked_wins_over_the_budget() -> None:
    given = limits(budget_s=60, search_limit_s=90, full_search_limit_s=40)
    assert (given.search_s, given.full_search_s) == (90, 40)
    assert given.reference_s == BuildLimits().reference_s, "a slow generator is slow in the reference, too"
    assert limits(budget_s=60, search_limit_s=300).reference_s == 300
    assert given.implied == ("reference_run_s",)
    assert given.advice("search_s") == given.advice("full_search_s") == given.advice("reference_s") == ""
    assert limits(search_limit_s=5).search_s == 5


@pytest.mark.parametrize("budget_s", [0.01, 1, 10])
def test_the_shortest_budget_leaves_what_most_generators_need(budget_s: float) -> None:
    given = limits(budget_s=budget_s)
    assert given.search_s == given.reference_s == given.reference_run_s == 10
    assert given.full_search_s == 2


def test_an_ample_budget_implies_nothing() -> None:
    assert limits(budget_s="2h").implied == ()
    assert limits(budget_s="2h").search_s == BuildLimits().search_s
