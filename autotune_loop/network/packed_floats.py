"""Where the weights of a sum of products of floats lie: what a core reads for a block of channels out, side by side.

Unpacked, each step of a sum reads a few numbers of another row of memory, of 512 channels 2 KiB further on, which fill
few sets of a cache and ask for many pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from halide_autotune.autotune_loop.network.operators import ElementType, Operator, OperatorKind

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

PACKED = (OperatorKind.CONVOLUTION, OperatorKind.DENSE)
# Two vectors of AVX2, four of NEON.
_BLOCKS = (16, 8)


def block_of(channels_out: int) -> int:
    """How many channels out lie side by side for all of a window; 0 for all of them."""
    return next((block for block in _BLOCKS if channels_out % block == 0), 0)


def in_blocks(operator: Operator, weights: Sequence[Array]) -> list[Array]:
    """An operator's weights as its generator takes them: of a sum of products of floats in blocks of channels out.

    Args:
        weights: of such a sum first those with channels in and out as the last dimensions, then its bias.
    """
    import numpy

    is_packed = operator.kind in PACKED and operator.output.element is ElementType.FLOAT32
    block = block_of(operator.output.shape[-1])
    if not is_packed or not block:
        return [*weights]
    kernel, *others = weights
    parts = kernel.reshape(*kernel.shape[:-1], -1, block)
    return [numpy.ascontiguousarray(numpy.moveaxis(parts, -2, 0)), *others]
