"""Weights of convolutions of floats lie in blocks of channels out, which their generator takes."""

from __future__ import annotations

import numpy as np
import pytest

from halide_autotune.autotune_loop.network.operators import Operator, OperatorKind, Tensor
from halide_autotune.autotune_loop.network.packed_floats import block_of, in_blocks


def of(kind: OperatorKind, channels_out: int) -> Operator:
    source = Tensor("source", (4, 4, 3))
    return Operator(kind, ("layer",), (source,), Tensor("made", (4, 4, channels_out)), {})


@pytest.mark.parametrize(("channels_out", "block"), [(64, 16), (24, 8), (10, 0)])
def test_channels_of_a_block_lie_side_by_side(channels_out: int, block: int) -> None:
    assert block_of(channels_out) == block
    weights = np.arange(2 * 2 * 3 * channels_out, dtype=np.float32).reshape(2, 2, 3, channels_out)
    bias = np.zeros(channels_out, np.float32)
    packed, same = in_blocks(of(OperatorKind.CONVOLUTION, channels_out), [weights, bias])
    assert same is bias
    if not block:
        assert packed is weights
        return
    assert packed.shape == (channels_out // block, 2, 2, 3, block) and packed.flags.c_contiguous
    assert packed[1, 0, 1, 2].tolist() == weights[0, 1, 2, block : 2 * block].tolist()


def test_other_weights_stay_as_they_are() -> None:
    weights = np.zeros((3, 3, 16), np.float32)
    assert in_blocks(of(OperatorKind.DEPTHWISE_CONVOLUTION, 16), [weights])[0] is weights
