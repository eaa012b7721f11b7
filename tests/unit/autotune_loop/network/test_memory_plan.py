"""Tensors that are needed at once lie apart, and the workspace is little larger than it must be."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.network.memory_plan import (
    ALIGNMENT_BYTES,
    Block,
    Place,
    Storage,
    aligned,
    arrange,
    least_bytes,
    plan_memory,
)
from halide_autotune.autotune_loop.network.operators import ElementType, Network, Operator, OperatorKind, Tensor

_blocks = st.builds(
    lambda size, first, length: Block(aligned(size), first, first + length),
    st.integers(1, 5000),
    st.integers(0, 20),
    st.integers(0, 6),
)


@given(st.lists(_blocks, max_size=40))
def test_what_is_needed_at_once_lies_apart(blocks: list[Block]) -> None:
    offsets = arrange(blocks)
    placed = list(zip(blocks, offsets, strict=True))
    for (one, at), (other, there) in itertools.combinations(placed, 2):
        if one.first <= other.last and other.first <= one.last:
            assert at + one.size_bytes <= there or there + other.size_bytes <= at
    assert all(offset >= 0 and offset % ALIGNMENT_BYTES == 0 for offset in offsets)
    peak_bytes = max((at + block.size_bytes for block, at in placed), default=0)
    assert least_bytes(blocks) <= peak_bytes <= sum(block.size_bytes for block in blocks)


@given(st.lists(st.integers(1, 5000), min_size=2, max_size=40))
def test_a_chain_takes_what_its_largest_two_neighbours_do(sizes: list[int]) -> None:
    blocks = [Block(aligned(size), place, place + 1) for place, size in enumerate(sizes)]
    offsets = arrange(blocks)
    peak_bytes = max(offset + block.size_bytes for offset, block in zip(offsets, blocks, strict=True))
    assert peak_bytes <= 1.5 * least_bytes(blocks)


def _operator(kind: OperatorKind, output: str, *inputs: str, shape: tuple[int, ...] = (4, 4, 4)) -> Operator:
    return Operator(kind, (output,), tuple(Tensor(name, shape) for name in inputs), Tensor(output, shape))


def test_what_has_another_shape_is_the_same_memory_and_the_caller_has_inputs_and_outputs() -> None:
    relu = OperatorKind.ACTIVATION
    operators = (
        _operator(relu, "a", "in"),
        _operator(OperatorKind.RESHAPE, "flat", "a"),
        _operator(relu, "b", "flat"),
        _operator(OperatorKind.ADD, "out", "a", "b"),
    )
    network = Network("n", (Tensor("in", (4, 4, 4)),), (Tensor("out", (4, 4, 4)),), operators)
    plan = plan_memory(network)
    assert plan.places["in"] == Place(Storage.INPUT) and plan.places["out"] == Place(Storage.OUTPUT)
    assert plan.places["flat"] == plan.places["a"] != plan.places["b"]
    assert plan.workspace_bytes == plan.least_bytes == 2 * 4 * 4 * 4 * 4 and not plan.copies


def test_an_output_that_is_an_input_or_another_output_is_copied() -> None:
    source, made = Tensor("in", (3,)), Tensor("made", (3,))
    operators = (_operator(OperatorKind.ACTIVATION, "made", "in", shape=(3,)),)
    plan = plan_memory(Network("n", (source,), (made, source, made), operators))
    assert plan.places["made"] == Place(Storage.OUTPUT, 0)
    assert plan.copies == ((source, 1), (made, 2)) and plan.workspace_bytes == 0


def test_bytes_take_a_quarter_of_what_floats_do() -> None:
    shape = (4, 4, 8)
    ends, inner = (Tensor("in", shape), Tensor("out", shape)), Tensor("inner", shape, ElementType.INT8)
    operators = (
        Operator(OperatorKind.QUANTIZE, ("first",), ends[:1], inner),
        Operator(OperatorKind.DEQUANTIZE, ("last",), (inner,), ends[1]),
    )
    assert plan_memory(Network("n", ends[:1], ends[1:], operators)).workspace_bytes == 4 * 4 * 8
