"""Operators that follow one another made one: what is done where its source is made costs no memory.

An addition and an activation that nothing else needs are done in the operator before them, a scale goes into its
weights, and padding is done in the convolution that it is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from halide_autotune.autotune_loop.network.operators import (
    REDUCTIONS,
    Activation,
    ElementType,
    Operator,
    OperatorKind,
)

# What follows can be done where their result is made.
TAKES_ACTIVATION = (
    *REDUCTIONS,
    OperatorKind.ADD,
    OperatorKind.MULTIPLY,
    OperatorKind.SUBTRACT,
    OperatorKind.SCALE,
)


def fused(operators: list[Operator], kept: set[str]) -> list[Operator]:
    """Do in an operator what follows it alone: scaling, an addition, an activation; in that order. Padding is done in
    the convolution that it is for.

    Args:
        kept: names of tensors that must be there in the end.
    """
    uses = Counter(tensor.name for operator in operators for tensor in operator.inputs)
    made: dict[str, int] = {}
    found: list[Operator] = []
    for operator in operators:
        place = _place_of_fusion(operator, found, made, uses, kept)
        if place is None:
            made[operator.output.name] = len(found)
            found.append(operator)
            continue
        before = found.pop(place)
        made = {name: at - (at > place) for name, at in made.items() if at != place}
        made[operator.output.name] = len(found)
        found.append(_joined(before, operator))
    return found


def _place_of_fusion(
    operator: Operator, found: list[Operator], made: Mapping[str, int], uses: Counter[str], kept: set[str]
) -> int | None:
    """Where the operator is that can do this one, too; the newest, so that all that is added is made before it."""
    places = [made[tensor.name] for tensor in operator.inputs if tensor.name in made]
    for place in sorted(places, reverse=True):
        before = found[place]
        is_alone = uses[before.output.name] == 1 and before.output.name not in kept
        if is_alone and before.activation is Activation.NONE and _can_follow(operator, before):
            return place
    return None


def _can_follow(operator: Operator, before: Operator) -> bool:
    if before.kind is OperatorKind.PAD:
        return operator.kind in (OperatorKind.CONVOLUTION, OperatorKind.DEPTHWISE_CONVOLUTION)
    if before.output.element is ElementType.INT8:
        # Each operator rounds its result, which the next one takes as it is.
        return False
    if operator.kind is OperatorKind.SCALE:
        return before.kind in (*REDUCTIONS, OperatorKind.SCALE) and len(before.inputs) == 1
    if operator.kind is OperatorKind.ADD:
        is_alike = all(tensor.shape == before.output.shape for tensor in operator.inputs)
        return before.kind in REDUCTIONS and len(before.inputs) == 1 and is_alike
    return operator.kind is OperatorKind.ACTIVATION and before.kind in TAKES_ACTIVATION


def _joined(before: Operator, operator: Operator) -> Operator:
    places = (*before.places, *operator.places)
    if before.kind is OperatorKind.PAD:
        pads = {name: pad + operator.settings[name] for name, pad in before.settings.items()}
        inputs = (*before.inputs, *operator.inputs[1:])
        return replace(operator, places=places, inputs=inputs, settings={**operator.settings, **pads})
    joined = replace(
        before, places=places, output=operator.output, activation=operator.activation, slope=operator.slope
    )
    if operator.kind is OperatorKind.SCALE:
        # Its factors go into the weights, its offsets into the bias.
        settings = {**before.settings, "has_bias": 1} if before.kind in REDUCTIONS else before.settings
        return replace(joined, settings=settings)
    if operator.kind is OperatorKind.ADD:
        (other,) = [tensor for tensor in operator.inputs if tensor.name != before.output.name]
        return replace(joined, inputs=(*before.inputs, other))
    return joined
