"""Where the weights of a sum of products of floats lie: what a core reads for a block of channels out, side by side.

Unpacked, each step of a sum reads a few numbers of another row of memory, of 512 channels 2 KiB further on, which fill
few sets of a cache and ask for many pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from halide_autotune.autotune_loop.network.operators import ElementType, Network, Operator, OperatorKind

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

BLOCK = "block"
_PACKED = (OperatorKind.CONVOLUTION, OperatorKind.DENSE)
# Two vectors of AVX2, four of NEON; and what else there is to try.
_BLOCKS = (16, 8, 32, 64)


def blocks_of(operator: Operator) -> tuple[int, ...]:
    """How many channels out can lie side by side for all of a window, the usual number first; none where weights stay
    as they are."""
    if operator.kind not in _PACKED or operator.output.element is not ElementType.FLOAT32:
        return ()
    return tuple(block for block in _BLOCKS if operator.output.shape[-1] % block == 0)


def with_blocks(network: Network, choose: Callable[[Operator], int | None] = lambda operator: None) -> Network:
    """The network with the block of each operator that has one among its settings.

    Args:
        choose: the block of an operator; the usual one is taken for None, and for what does not divide its channels.
    """

    def of(operator: Operator) -> Operator:
        blocks = blocks_of(operator)
        if not blocks:
            return operator
        chosen = choose(operator)
        return replace(operator, settings={**operator.settings, BLOCK: chosen if chosen in blocks else blocks[0]})

    return replace(network, operators=tuple(map(of, network.operators)))


def in_blocks(operator: Operator, weights: Sequence[Array]) -> list[Array]:
    """An operator's weights as its generator takes them: of a sum of products of floats in blocks of channels out.

    Args:
        weights: of such a sum first those with channels in and out as the last dimensions, then its bias.
    """
    import numpy

    block = operator.settings.get(BLOCK, 0)
    if not block:
        return [*weights]
    kernel, *others = weights
    parts = kernel.reshape(*kernel.shape[:-1], -1, block)
    return [numpy.ascontiguousarray(numpy.moveaxis(parts, -2, 0)), *others]
