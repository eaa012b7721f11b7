"""What comes from beyond a cache: what is touched again is fetched again where too much was touched in between."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.lowered.traffic import touching
from halide_autotune.targets.lowering.loop_nest import Access, Computation, Loop

KIB = 2**10


def read(buffer: str, *strides: float, count: int = 1) -> Access:
    return Access(buffer, count, False, False, 16, 4, 1, strides)


def loop(extent: float | None, *inside: Loop | Access, kind: str = "serial") -> Loop:
    accesses = tuple(each for each in inside if isinstance(each, Access))
    loops = tuple(each for each in inside if isinstance(each, Loop))
    # A kind as text.
    return Loop("f.x", "f", kind, extent, 0, (Computation("f", {}, accesses),), (), loops)  # type: ignore[arg-type]


def root(*inside: Loop) -> Loop:
    return loop(1, *inside, kind="root")


# A row of 4 KiB, read ten times.
TEN_TIMES = root(loop(10, loop(64, read("row", 0, 16))))


@pytest.mark.parametrize(
    ("cache_bytes", "fetched_bytes"), [(8 * KIB, 4 * KIB), (4 * KIB, 4 * KIB), (2 * KIB, 40 * KIB)]
)
def test_what_fits_is_fetched_once(cache_bytes: float, fetched_bytes: float) -> None:
    assert touching(TEN_TIMES).fetched_bytes(cache_bytes) == fetched_bytes


def test_what_else_is_touched_in_between_drives_it_out() -> None:
    """The row is read again and again beside a column of another picture, which takes as much room."""
    both = root(loop(10, loop(64, read("row", 0, 16), read("picture", 100_000, 2048))))
    assert touching(both).fetched_bytes(16 * KIB) == 4 * KIB + 10 * 4 * KIB
    assert touching(both).fetched_bytes(6 * KIB) == 2 * 10 * 4 * KIB


def test_windows_of_one_buffer_overlap() -> None:
    """A stencil of three rows: each row comes once, if three fit."""
    stencil = root(loop(100, loop(3, loop(64, read("picture", 1024, 1024, 16)))))
    assert touching(stencil).fetched_bytes(16 * KIB) == 102 * 4 * KIB
    assert touching(stencil).fetched_bytes(8 * KIB) == 300 * 4 * KIB


def test_accesses_of_one_buffer_count_once_and_of_several_each() -> None:
    alike = root(loop(64, read("a", 16), read("a", 16), read("b", 16)))
    assert touching(alike).fetched_bytes(KIB) == 2 * 4 * KIB


def test_a_loop_whose_length_data_decide_has_some_steps() -> None:
    assert 64 < touching(root(loop(None, read("a", 16)))).fetched_bytes(KIB) < 64 * KIB


def test_where_data_decide_the_place_it_counts_as_one() -> None:
    anywhere = Access("table", 1, False, False, 1, 4, 0, None)
    assert touching(root(loop(50, loop(50, anywhere)))).fetched_bytes(KIB) == 64
