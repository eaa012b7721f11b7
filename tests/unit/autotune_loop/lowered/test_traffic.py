"""What comes from beyond a cache: what is touched again is fetched again where too much was touched in between."""

from __future__ import annotations

import math

import pytest

from halide_autotune.autotune_loop.lowered.traffic import touching
from halide_autotune.targets.lowering.loop_nest import Access, Computation, Loop

KIB = 2**10


def read(buffer: str, *strides: float, copies: tuple[tuple[float, int], ...] = ()) -> Access:
    return Access(buffer, math.prod(steps for _, steps in copies), copies, False, False, 16, 4, 1, strides)


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


ROLLED = root(loop(256, loop(64, read("picture", 1024, 16))))
UNROLLED = {
    "along rows": root(loop(256, loop(8, read("picture", 1024, 128, copies=((16, 8),))))),
    "across rows": root(loop(32, loop(64, read("picture", 8192, 16, copies=((1024, 8),))))),
    "as a block": root(loop(64, loop(16, read("picture", 4096, 64, copies=((16, 4), (1024, 4)))))),
}


@pytest.mark.parametrize("unrolled", UNROLLED.values(), ids=UNROLLED)
@pytest.mark.parametrize("cache_bytes", [KIB // 2, 16 * KIB, 2048 * KIB])
def test_a_loop_that_is_unrolled_fetches_what_it_did(unrolled: Loop, cache_bytes: float) -> None:
    assert touching(unrolled).fetched_bytes(cache_bytes) == touching(ROLLED).fetched_bytes(cache_bytes) == 1024 * KIB


def test_taps_of_a_stencil_find_each_others_lines() -> None:
    """Three rows of three columns, as three loops would read them."""
    taps = root(loop(100, loop(64, read("picture", 1024, 16, copies=((1, 3), (1024, 3))))))
    rolled = root(loop(100, loop(64, loop(3, loop(3, read("picture", 1024, 16, 1024, 1))))))
    for cache_bytes in (8 * KIB, 64 * KIB):
        assert touching(taps).fetched_bytes(cache_bytes) == touching(rolled).fetched_bytes(cache_bytes)


def test_a_branch_fetches_as_often_as_it_is_taken() -> None:
    """A row that is read in each fourth of ten iterations, and does not fit beside what the others read."""
    picture = loop(64, read("picture", 100_000, 2048))
    sometimes = root(loop(10, loop(0.25, loop(64, read("row", 0, 0, 16)), kind="branch"), picture))
    fetched_bytes = touching(sometimes).fetched_bytes(6 * KIB)
    assert fetched_bytes == 0.25 * 10 * 4 * KIB + 10 * 4 * KIB


def test_a_loop_whose_length_data_decide_has_some_steps() -> None:
    assert 64 < touching(root(loop(None, read("a", 16)))).fetched_bytes(KIB) < 64 * KIB


def test_where_data_decide_the_place_it_counts_as_one() -> None:
    """That of each copy is another."""
    once, thrice = (Access("table", count, (), False, False, 1, 4, 0, None) for count in (1, 3))
    assert touching(root(loop(50, loop(50, once)))).fetched_bytes(KIB) == 64
    assert touching(root(loop(50, loop(50, thrice)))).fetched_bytes(KIB) == 3 * 64
