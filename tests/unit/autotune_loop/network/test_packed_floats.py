"""Weights of convolutions of floats lie in blocks of channels out, which their generator takes."""

from __future__ import annotations

import numpy as np
import pytest

from halide_autotune.autotune_loop.network.operators import Network, Operator, OperatorKind, Tensor
from halide_autotune.autotune_loop.network.packed_floats import blocks_of, in_blocks, with_blocks


def of(kind: OperatorKind, channels_out: int) -> Operator:
    source = Tensor("source", (4, 4, 3))
    return Operator(kind, ("layer",), (source,), Tensor("made", (4, 4, channels_out)), {})


def settled(operator: Operator, block: int | None = None) -> Operator:
    """The operator with its block."""
    network = Network("n", operator.inputs, (operator.output,), (operator,))
    return with_blocks(network, lambda each: block).operators[0]


@pytest.mark.parametrize(("channels_out", "blocks"), [(64, (16, 8, 32, 64)), (24, (8,)), (10, ())])
def test_channels_of_a_block_lie_side_by_side(channels_out: int, blocks: tuple[int, ...]) -> None:
    operator = of(OperatorKind.CONVOLUTION, channels_out)
    assert blocks_of(operator) == blocks
    weights = np.arange(2 * 2 * 3 * channels_out, dtype=np.float32).reshape(2, 2, 3, channels_out)
    bias = np.zeros(channels_out, np.float32)
    for block in blocks:
        packed, same = in_blocks(settled(operator, block), [weights, bias])
        assert same is bias
        assert packed.shape == (channels_out // block, 2, 2, 3, block) and packed.flags.c_contiguous
        assert packed[-1, 0, 1, 2].tolist() == weights[0, 1, 2, -block:].tolist()
    if not blocks:
        assert in_blocks(settled(operator), [weights, bias])[0] is weights


@pytest.mark.parametrize(("chosen", "block"), [(None, 16), (32, 32), (48, 16), (-1, 16)])
def test_what_does_not_divide_the_channels_is_not_chosen(chosen: int | None, block: int) -> None:
    assert settled(of(OperatorKind.CONVOLUTION, 64), chosen).settings == {"block": block}


def test_other_weights_stay_as_they_are() -> None:
    weights = np.zeros((3, 3, 16), np.float32)
    operator = settled(of(OperatorKind.DEPTHWISE_CONVOLUTION, 16))
    assert operator.settings == {} and in_blocks(operator, [weights])[0] is weights
