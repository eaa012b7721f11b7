"""Blocks of sums that registers hold.

Generators import it as the module beside them, since Halide's process runs each of their files by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import halide as hl

# A core's first cache: what lies so far apart shares a set, of which a block's pixels are to fill half. Fewer pixels
# than the least would cost more than a full set does.
_SET_BYTES, _LINE_BYTES, _HALF_SET, _LEAST_PIXELS = 4096, 64, 4, 8


@dataclass(frozen=True)
class Block:
    """Sums that are in registers at once: vectors of channels, at columns and rows of pixels."""

    vectors: int
    columns: int
    rows: int

    @property
    def pixels(self) -> int:
        """At which each vector is summed."""
        return self.columns * self.rows


def block_in_registers(target: hl.Target, vectors: tuple[int, ...], size: tuple[int, int], pixel_bytes: int) -> Block:
    """The block that takes the least for each sum, with what is computed twice at the ends of rows and columns.

    Args:
        vectors: how many of them a block may have.
        size: columns and rows of the output.
        pixel_bytes: from a pixel of the input that is read to the next one.
    """
    registers, spread = _registers(target)
    most = max(_HALF_SET * _SET_BYTES // max(math.gcd(_SET_BYTES, pixel_bytes), _LINE_BYTES), _LEAST_PIXELS)
    width, height = size

    def cost(block: Block) -> tuple[float, int]:
        twice = -(-width // block.columns) * block.columns * -(-height // block.rows) * block.rows
        sums = block.pixels * block.vectors
        # A step reads the block's vectors, and a number of each pixel, of which some come at once; with few sums it
        # waits for the one before.
        steps = 1.0 + block.vectors + block.pixels / 4 + max(sums, 8)
        return twice * steps / sums, block.rows

    return min(
        (
            Block(count, columns, rows)
            for count in vectors
            for columns in range(1, min(width, most) + 1)
            for rows in range(1, min(height, most // columns) + 1)
            if (columns * rows + 1) * count + spread <= registers
        ),
        key=cost,
    )


def _registers(target: hl.Target) -> tuple[int, int]:
    """How many there are for vectors, and how many of them hold a pixel's number: AVX-512 takes it from memory."""
    if target.arch != hl.TargetArch.X86:
        return 32, 1
    return (32, 0) if target.has_feature(hl.TargetFeature.AVX512) else (16, 1)
