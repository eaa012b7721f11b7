"""What differs between two schedules is told by Func, in words, the largest difference first."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.explain.changes import changes
from halide_autotune.autotune_loop.explain.words import bytes_words, time_words
from tests.explained_schedules import counts, func, schedule

OUT = counts("out", tasks=10)


def test_a_func_that_is_no_longer_inlined() -> None:
    blur = counts("blur", within="out", pieces=40, extents=(32, 10), points=1280)
    before = schedule("the default", func(OUT, 4e-3))
    after = schedule("the tuned schedule", func(OUT, 1e-3), func(blur, 0.5e-3))
    assert changes(before, after) == (
        "blur: computed within out in 40 pieces of 32x10 (was inlined); each point 1.3 times: 0.5 ms.",
    )
    assert changes(after, before) == ("blur: inlined (was within out in 40 pieces of 32x10): it took 0.5 ms.",)


def test_every_difference_of_a_func_is_told_and_the_slowest_comes_first() -> None:
    whole, strips = counts("blur", lanes=1), counts("blur", within="out", pieces=10, loaded_bytes=3000, points=2000)
    other = counts("out", tasks=40)
    before = schedule("before", func(whole, 3e-3), func(OUT, 1e-3))
    after = schedule("after", func(strips, 1.5e-3), func(other, 1e-3))
    first, second = changes(before, after)
    assert first == (
        "blur: computed within out in 10 pieces of 100x10 (was whole); each point 2 times (was 1);"
        " 8 values at a time (was one value at a time); loads 3 kB (was 9 kB): 3 ms to 1.5 ms."
    )
    assert second == "out: in 40 parallel tasks (was in 10 parallel tasks): 1 ms to 1 ms."


def test_equal_schedules_and_small_differences_are_not_told() -> None:
    before = schedule("before", func(OUT, 1e-3))
    assert changes(before, before) == ()
    assert changes(before, schedule("after", func(counts("out", tasks=10, loaded_bytes=9900), 0.5e-3))) == ()
    tiny = func(counts("table", lanes=1), 1e-6), func(counts("table", lanes=8), 1e-6)
    assert changes(schedule("a", func(OUT, 1e-3), tiny[0]), schedule("b", func(OUT, 1e-3), tiny[1])) == ()


def test_without_times_what_is_loaded_decides_what_is_told() -> None:
    before = schedule("before", func(OUT), func(counts("table", loaded_bytes=10)))
    after = schedule("after", func(counts("out", tasks=20)), func(counts("table", loaded_bytes=80)))
    assert changes(before, after) == ("out: in 20 parallel tasks (was in 10 parallel tasks).",)


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 bytes"), (999, "999 bytes"), (18_870_000, "18.9 MB"), (4.2e13, "42000 GB")]
)
def test_bytes_in_words(count: float, words: str) -> None:
    assert bytes_words(count) == words


def test_times_in_words() -> None:
    assert [time_words(s) for s in (1.2345, 3.1e-3, 85e-6)] == ["1.23 s", "3.1 ms", "85 us"]
