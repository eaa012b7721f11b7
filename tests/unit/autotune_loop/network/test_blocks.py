"""Blocks of sums fit registers, and are the ones that were measured to be fast."""

from __future__ import annotations

import pytest

from tests.generator_files import generator_file

pytestmark = pytest.mark.toolchain
AVX2 = "x86-64-linux-avx-avx2-f16c-fma-sse41"
AVX512 = f"{AVX2}-avx512-avx512_skylake-avx512_zen4"
# Registers of vectors, and how many of them hold a pixel's number.
REGISTERS = {AVX2: (16, 1), AVX512: (32, 0), "arm-64-linux": (32, 1)}


@pytest.mark.parametrize("target", REGISTERS)
@pytest.mark.parametrize(
    ("size", "channels"), [((56, 56), 64), ((14, 14), 256), ((7, 7), 512), ((1, 5), 3), ((1, 1), 1)]
)
def test_sums_weights_and_a_pixels_number_fit_registers(target: str, size: tuple[int, int], channels: int) -> None:
    import halide as hl

    found = generator_file("blocks").block_in_registers(hl.Target(target), (2, 4), size, 4 * channels)
    registers, spread = REGISTERS[target]
    assert found.vectors in (2, 4) and 1 <= found.columns <= size[0] and 1 <= found.rows <= size[1]
    assert found.vectors * (found.pixels + 1) + spread <= registers


@pytest.mark.parametrize(
    ("target", "extent", "channels", "wanted"),
    [
        # ResNet-18's C2, C9 and C12; C12's pixels are 2 KiB apart, of which a set of the first cache holds few.
        (AVX512, 56, 64, (2, 14, 1)),
        (AVX512, 14, 256, (2, 14, 1)),
        (AVX512, 7, 512, (4, 7, 1)),
        (AVX2, 56, 64, (2, 3, 2)),
        (AVX2, 14, 256, (2, 3, 2)),
        (AVX2, 7, 512, (2, 4, 1)),
    ],
)
def test_the_block_is_the_fastest_of_those_that_were_measured(
    target: str, extent: int, channels: int, wanted: tuple[int, int, int]
) -> None:
    import halide as hl

    vectors = (1, 2, 4) if target == AVX512 else (2, 4)
    found = generator_file("blocks").block_in_registers(hl.Target(target), vectors, (extent, extent), 4 * channels)
    assert (found.vectors, found.columns, found.rows) == wanted
