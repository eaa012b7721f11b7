"""What limits a schedule is told by the shares of what its device can do."""

from __future__ import annotations

from halide_autotune.autotune_loop.explain.explained import ExplainedFunc, ExplainedSchedule, Explanation, MachineLimits
from halide_autotune.autotune_loop.explain.limit import what_limits
from tests.explained_schedules import counts, func, schedule

FAR = MachineLimits(1e12, 1e15)
OUT = counts("out", tasks=3)


def told(one: ExplainedSchedule, limits: MachineLimits | None = FAR) -> str:
    return what_limits(Explanation("pi", "wall", 4, (one, one), limits))


def test_cores_that_wait() -> None:
    assert told(schedule("tuned", func(OUT, 1e-3, threads=1.5))).startswith(
        "Cores wait: 1.5 of 4 compute on average. Most of the waiting is in out, which runs in 3 parallel tasks."
    )
    waiting = ExplainedFunc("waiting for parallel tasks to finish", time_s=1e-3, threads=0.5)
    assert "for parallel tasks to finish: out runs in 3 parallel tasks." in told(
        schedule("tuned", func(OUT, 1e-3, threads=4.0), waiting)
    )


def test_the_memory() -> None:
    one = schedule("tuned", func(OUT, 1e-3), argument_bytes=9_000_000)
    assert "Memory: at least 9 GB a second go between memory and the caches, and pi was seen to do 10 GB." in told(
        one, MachineLimits(10e9, 1e15)
    )


def test_what_is_stored_at_the_root_and_fits_no_cache_goes_to_memory_twice() -> None:
    out, large = func(OUT, is_output=True), func(counts("large", points=500, extents=(500,)))
    inside = func(counts("inside", within="out", points=500, extents=(500,)))
    one = schedule("tuned", out, large, inside, argument_bytes=100)
    assert one.least_traffic_bytes(400) == 100 + 2 * 500
    assert one.least_traffic_bytes(600) == one.least_traffic_bytes(None) == 100
    assert ExplainedSchedule("tuned").least_traffic_bytes(400) is None


def test_the_arithmetic() -> None:
    one = schedule("tuned", func(OUT, 1e-3, operations=6e6))
    assert "Arithmetic: 6 billion operations a second, and pi was seen to do 10 billion" in told(
        one, MachineLimits(1e12, 10e9)
    )


def test_neither_and_what_the_slowest_func_does() -> None:
    slow = func(counts("slow", points=3000, lanes=1), 2e-3)
    text = told(schedule("tuned", slow, func(OUT, 1e-3)))
    assert text.startswith("Neither memory nor arithmetic: of what pi can do it uses")
    assert "slow takes 67 % of the time: each point is computed 3 times, it stores one value at a time" in text


def test_what_is_computed_again_in_another_slow_func_is_told() -> None:
    again = func(counts("again", points=2500), 1e-3)
    assert "Each point of again is computed 2.5 times." in told(schedule("tuned", func(OUT, 2e-3), again))
    fast = func(counts("again", points=2500), 1e-6)
    assert "again" not in told(schedule("tuned", func(OUT, 2e-3), fast))


def test_without_times_only_what_was_counted_is_told() -> None:
    assert told(schedule("tuned", func(OUT)), None).startswith("out loads most: it stores 8 values at a time")
    assert told(ExplainedSchedule("tuned", missing=("its Funcs are not timed: no.",)), None) == ""
