"""The lines that an access touches, against those that are counted one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.lowered.footprint import LINE_BYTES, lines_touched
from halide_autotune.targets.lowering.loop_nest import Access

Loops = list[tuple[float, float]]


def access(
    lanes: int = 1, element_bytes: int = 4, lane_stride: int | None = 1, spread: tuple[tuple[float, float], ...] = ()
) -> Access:
    return Access("f", 1, (), False, False, lanes, element_bytes, lane_stride, (), spread)


def counted(one: Access, loops: Loops) -> int:
    """The lines of every element, from the beginning of a line."""
    assert one.lane_stride is not None
    lanes = [one.lane_stride * lane for lane in range(one.lanes)]
    moves = [[stride * step for step in range(int(steps))] for stride, steps in loops]
    elements = {sum(each) for each in itertools.product(lanes, *moves)}
    return len({element * one.element_bytes // LINE_BYTES for element in elements})


@pytest.mark.parametrize(
    ("one", "loops"),
    [
        (access(), []),
        (access(8), []),
        (access(32), [(32, 4)]),
        (access(8, lane_stride=0), [(0, 100)]),
        # A tile of 8 rows of 64 elements in a picture 1024 wide, and windows of 3 rows and 3 columns in it.
        (access(16), [(16, 4), (1024, 8)]),
        (access(16), [(16, 4), (1024, 8), (1, 3), (1024, 3)]),
        # Two planes of it.
        (access(16), [(16, 4), (1024, 8), (1024 * 512, 2)]),
        # Vectors of four planes, along a row; and of eight rows, which the next columns find in the same lines.
        (access(4, lane_stride=1024 * 512), [(1, 64)]),
        (access(8, lane_stride=1024), [(1, 64), (8 * 1024, 3)]),
        # Every other element.
        (access(16, lane_stride=2), [(32, 4)]),
        # Columns of a picture: a line for each element.
        (access(1), [(1024, 100)]),
        (access(1, 1), [(3, 64)]),
    ],
)
def test_it_counts_tiles_and_windows(one: Access, loops: Loops) -> None:
    assert lines_touched(one, loops) == counted(one, loops)


@given(st.integers(1, 8), st.sampled_from([1, 2, 4, 8]), st.integers(0, 6), st.integers(1, 6))
def test_one_loop_is_counted(lanes: int, element_bytes: int, lines_apart: int, steps: int) -> None:
    one, stride = access(lanes, element_bytes), lines_apart * LINE_BYTES / element_bytes
    assert lines_touched(one, [(stride, steps)]) == counted(one, [(stride, steps)])


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 9)), max_size=4), st.integers(1, 16))
def test_there_are_never_more_than_there_are_accesses_with_their_lines(
    loops: list[tuple[int, int]], lanes: int
) -> None:
    found = lines_touched(access(lanes), [(float(stride), float(steps)) for stride, steps in loops])
    accesses = 1
    for _, steps in loops:
        accesses *= steps
    assert 1 <= found <= 2 * accesses


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 9)), max_size=4), st.integers(2, 16), st.integers(0, 5000)
)
def test_lanes_count_as_a_loop_does(loops: list[tuple[int, int]], lanes: int, lane_stride: int) -> None:
    moves = [(float(stride), float(steps)) for stride, steps in loops]
    as_lanes = lines_touched(access(lanes, lane_stride=lane_stride), moves)
    assert as_lanes == lines_touched(access(), [*moves, (float(lane_stride), float(lanes))])


def test_lanes_that_lie_anywhere_have_a_line_each() -> None:
    assert lines_touched(access(8, lane_stride=None), []) == 8


@pytest.mark.parametrize(
    ("one", "loops", "lines"),
    [
        # A table of 256 numbers: four values, and those of a picture.
        (access(1, spread=((1.0, 256.0),)), [(0.0, 4.0)], 4),
        (access(1, spread=((1.0, 256.0),)), [(0.0, 1024.0), (0.0, 512.0)], 16),
        # Eight at once.
        (access(8, lane_stride=None, spread=((1.0, 256.0),)), [], 8),
        # Histograms of 64 rows whose bins are 64 numbers apart, of eight rows at once: one value, a row, all rows.
        (access(8, lane_stride=None, spread=((1.0, 8.0), (64.0, 256.0))), [], 8),
        (access(8, lane_stride=None, spread=((1.0, 8.0), (64.0, 256.0))), [(0.0, 1024.0)], 256),
        (access(8, lane_stride=None, spread=((1.0, 8.0), (64.0, 256.0))), [(8.0, 8.0), (0.0, 1024.0)], 1024),
        # Lanes that are kept within the picture lie in the same lines as if they were not.
        (access(16, lane_stride=None, spread=((1.0, 16.0),)), [(16.0, 4.0)], 4),
    ],
)
def test_where_data_decide_there_are_no_more_than_accesses(one: Access, loops: Loops, lines: int) -> None:
    assert lines_touched(one, loops) == lines


def test_a_loop_that_moves_nothing_costs_nothing() -> None:
    assert lines_touched(access(8), [(0.0, 1000.0)]) == lines_touched(access(8), []) == 1
