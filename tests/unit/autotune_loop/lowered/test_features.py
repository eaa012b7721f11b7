"""What a loop nest does, as numbers that say what makes it faster or slower."""

from __future__ import annotations

import math
from typing import Any

import pytest

from halide_autotune.autotune_loop.lowered.features import NEST_FEATURE_NAMES, features_of_nest
from halide_autotune.targets.lowering.loop_nest import VERSION, Access, Allocation, Computation, Loop, LoopNest

STORE = Access("f", 1, (), True, False, 8, 4, 1, (1024.0, 8.0))


def loop(extent: float, *inside: Loop, kind: Any = "serial", **body: Any) -> Loop:
    computations = (Computation("f", body.get("operations", {}), body.get("accesses", ())),)
    return Loop("f.x", "f", kind, extent, body.get("branches", 0), computations, body.get("allocations", ()), inside)


def features(*loops: Loop, cores: int = 4, vector_bytes: int = 32) -> dict[str, float]:
    nest = LoopNest(VERSION, vector_bytes, loop(1, *loops, kind="root"))
    numbers = features_of_nest(nest, cores)
    return {name: 2**number - 1 for name, number in zip(NEST_FEATURE_NAMES, numbers, strict=True)}


def rows(count: float = 100, kind: Any = "serial", **body: Any) -> Loop:
    """So many rows of 128 vectors; an addition and a store each."""
    return loop(count, loop(128, **{"operations": {"float_add": 1}, "accesses": (STORE,), **body}), kind=kind)


def test_each_has_a_name_of_its_own() -> None:
    assert len({*NEST_FEATURE_NAMES}) == len(NEST_FEATURE_NAMES)
    empty = features()
    assert empty.keys() == {*NEST_FEATURE_NAMES}
    assert all(math.isfinite(number) for number in empty.values())


def test_operations_count_as_often_as_they_run() -> None:
    found = features(rows())
    assert found["float_add"] == pytest.approx(12800)
    assert found["dense stores"] == pytest.approx(12800)
    assert found["operations"] == pytest.approx(25600)
    assert found["operations in the code"] == pytest.approx(2)
    assert found["iterations"] == pytest.approx(12900)
    assert found["loops run"] == pytest.approx(101)
    assert found["operations of an innermost iteration"] == pytest.approx(2)


def test_tasks_shorten_the_critical_path_as_far_as_they_fill_the_cores() -> None:
    serial, even, uneven = features(rows()), features(rows(kind="parallel")), features(rows(5, kind="parallel"))
    assert serial["operations on the critical path"] == pytest.approx(serial["operations outside tasks"])
    assert even["operations on the critical path"] == pytest.approx(serial["operations"] / 4)
    assert (even["tasks"], even["fewest operations of a task"]) == (pytest.approx(100), pytest.approx(256))
    assert even["idle share"] == pytest.approx(0)
    assert uneven["operations on the critical path"] == pytest.approx(2 * 256), "four tasks, then one alone"
    assert uneven["idle share"] == pytest.approx(8 / 5 - 1)


def test_a_parallel_loop_inside_a_task_gives_no_more_cores() -> None:
    nested = features(loop(8, rows(10, kind="parallel", accesses=()), kind="parallel"))
    alone = features(loop(8, rows(10, accesses=()), kind="parallel"))
    assert nested["operations on the critical path"] == pytest.approx(alone["operations on the critical path"])
    assert (alone["parallel loops run"], alone["tasks"]) == (pytest.approx(1), pytest.approx(8))
    assert nested["parallel loops run"] == pytest.approx(1 + 8), "each begins tasks"
    assert nested["tasks"] == pytest.approx(8 + 8 * 10)


@pytest.mark.parametrize(
    ("lanes", "stride", "name", "instructions"),
    [
        (8, 1, "dense loads", 1),
        (32, 1, "dense loads", 4),
        (8, -1, "dense loads", 1),
        (1, 0, "single loads", 1),
        (8, 0, "single loads", 1),
        (8, 2, "strided loads", 2),
        (8, 100, "strided loads", 8),
        (8, None, "gather loads", 8),
    ],
)
def test_accesses_cost_what_vectors_they_need(lanes: int, stride: int | None, name: str, instructions: int) -> None:
    load = Access("g", 3, (), False, True, lanes, 4, stride, (0.0,))
    found = features(loop(10, accesses=(load,)))
    assert found[name] == found["predicated accesses"] == pytest.approx(30 * instructions)


@pytest.mark.parametrize(
    ("loaded", "stored", "waits"), [(0.0, 0.0, True), (0.0, 1.0, False), (1.0, 0.0, False), (1.0, 1.0, False)]
)
def test_iterations_wait_for_what_the_one_before_has_written(loaded: float, stored: float, waits: bool) -> None:
    accesses = [
        Access("sum", 1, (), is_store, False, 8, 4, 1, (stride,))
        for is_store, stride in ((False, loaded), (True, stored))
    ]
    assert features(loop(10, accesses=accesses))["iterations that wait"] == pytest.approx(10 * waits)
    assert features(loop(10, kind="parallel", accesses=accesses))["iterations that wait"] == 0
    elsewhere = [accesses[0], Access("other", 1, (), True, False, 8, 4, 1, (0.0,))]
    assert features(loop(10, accesses=elsewhere))["iterations that wait"] == 0


def test_memory_is_told_by_where_it_is() -> None:
    heap, stack = Allocation("g", 1000.0, False, "heap"), Allocation("h", 500.0, True, "stack")
    found = features(loop(10, loop(5, allocations=(heap, Allocation("i", None, False, "heap"), stack))))
    assert found["heap allocations"] == pytest.approx(100)
    assert found["heap bytes"] == pytest.approx(1000)
    assert found["largest stack bytes"] == pytest.approx(500)
    assert found["heap bytes from fresh pages"] == 0, "they are kept when they are freed"


def test_large_blocks_have_fresh_pages_each_time() -> None:
    large, small = Allocation("g", 2.0**26, False, "heap"), Allocation("h", 2.0**24, False, "heap")
    found = features(loop(3, allocations=(large, small)))
    assert found["heap bytes from fresh pages"] == pytest.approx(3 * 2**26)


def test_what_a_branch_does_counts_by_its_share() -> None:
    half = loop(0.5, kind="branch", operations={"float_add": 4})
    found = features(loop(10, half))
    assert found["float_add"] == pytest.approx(20)
    assert found["iterations"] == pytest.approx(10), "it is no loop"
    assert found["operations of an innermost iteration"] == pytest.approx(2)


def test_branches_count_as_often_as_they_run() -> None:
    assert features(loop(10, branches=2))["branches"] == pytest.approx(20)
