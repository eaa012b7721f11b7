"""Blocks of sums: what registers hold, in the order of promise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.sketches.block import Block, blocks_of

extents = st.integers(1, 64)


@given(extents, extents, extents, st.sampled_from((16, 32)))
def test_every_block_fits_registers_and_loops(vectors: int, points: int, rows: int, registers: int) -> None:
    found = blocks_of(vectors, points, rows, registers)
    assert found
    assert len({(block.vectors, block.sums) for block in found}) == len(found)
    for block in found:
        assert block.sums + 1 <= registers
        assert vectors % block.vectors == 0 and block.points <= points and block.rows <= rows


def test_the_first_block_divides_what_it_covers() -> None:
    assert blocks_of(32, 14, 14, registers=16)[0] == Block(2, 2, 2), "14 columns and rows of 32 vectors"
    assert blocks_of(64, 7, 7, registers=16)[0] == Block(2, 1, 4)
    assert blocks_of(128, 1, 1024, registers=16)[0] == Block(2, 1, 6), "a product of matrices with AVX2"
    assert blocks_of(64, 1, 1024, registers=32)[0].sums > 16, "and with twice as many registers"


def test_a_vector_by_a_matrix_is_summed_in_vectors_alone() -> None:
    assert blocks_of(128, 1, 1, registers=16)[0] == Block(8, 1, 1)
