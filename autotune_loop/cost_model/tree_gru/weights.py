"""The weights of the network that walks loops, and what it says of schedules."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from halide_autotune.autotune_loop.cost_model.tree_gru.loop_paths import LoopPaths
from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.autotune_loop.lowered.loop_rows import LOOP_ROW_NAMES, SCALE, WORK

Tensor = npt.NDArray[np.float32]
# What is known of a loop and those around it, and how many units make a cost of it.
STATE, HIDDEN = 16, 24


@dataclass(frozen=True)
class TreeGruWeights:
    """Several networks side by side, each trained on another draw of the samples; the first axis is theirs.

    Attributes:
        of_row: loop's numbers × gates: how much is forgotten, how much of what is known is read, and what is new.
        of_state: what is known × the first two gates.
        of_read: what is read × what is new.
        gate_bias: of all three.
        hidden, hidden_bias, cost: from what is known of a loop to the logarithm of what it costs.
        cost_of_row: a loop's numbers to the same.
        prior_share: how much of what other pipelines say is taken.
    """

    of_row: Tensor
    of_state: Tensor
    of_read: Tensor
    gate_bias: Tensor
    hidden: Tensor
    hidden_bias: Tensor
    cost: Tensor
    cost_of_row: Tensor
    prior_share: Tensor

    def tensors(self) -> tuple[Tensor, ...]:
        """All of them, in their order."""
        return tuple(getattr(self, each.name) for each in fields(self))


def random_weights(members: int, seed: int) -> TreeGruWeights:
    """Weights to start from: a loop costs as many operations as it has."""
    source, numbers = np.random.default_rng(seed), len(LOOP_ROW_NAMES)

    def drawn(inputs: int, outputs: int, deviation: float = 1.0) -> Tensor:
        return (deviation * source.normal(0.0, 1.0 / math.sqrt(inputs), (members, inputs, outputs))).astype(np.float32)

    def zeros(inputs: int, outputs: int) -> Tensor:
        return np.zeros((members, inputs, outputs), dtype=np.float32)

    cost_of_row = zeros(numbers, 1)
    cost_of_row[:, LOOP_ROW_NAMES.index(WORK)] = SCALE * math.log(2.0)
    return TreeGruWeights(
        of_row=drawn(numbers, 3 * STATE, math.sqrt(3.0)),
        of_state=drawn(STATE, 2 * STATE),
        of_read=drawn(STATE, STATE),
        gate_bias=zeros(1, 3 * STATE),
        hidden=drawn(STATE, HIDDEN),
        hidden_bias=zeros(1, HIDDEN),
        cost=drawn(HIDDEN, 1, 0.1),
        cost_of_row=cost_of_row,
        prior_share=np.full((members, 1, 1), 0.5, dtype=np.float32),
    )


def tree_gru_scores(weights: TreeGruWeights, paths: LoopPaths, foreseen: Array) -> Array:
    """What each member says of each schedule: the logarithm of the sum of what its loops cost.

    Args:
        foreseen: what other pipelines say of each schedule.

    Returns:
        Member × schedule.
    """
    states: list[Tensor] = []
    for rows, parents in zip(paths.rows, paths.parents, strict=True):
        around = states[-1][:, parents] if states else np.zeros((len(weights.cost), len(rows), STATE), dtype=np.float32)
        gates = rows @ weights.of_row + weights.gate_bias
        both = _sigmoid(gates[..., : 2 * STATE] + around @ weights.of_state)
        forgotten, read = both[..., :STATE], both[..., STATE:]
        new = np.tanh(gates[..., 2 * STATE :] + (read * around) @ weights.of_read)
        states.append((1.0 - forgotten) * around + forgotten * new)
    hidden = np.maximum(np.concatenate(states, axis=1) @ weights.hidden + weights.hidden_bias, 0.0)
    costs = (hidden @ weights.cost + np.concatenate(paths.rows) @ weights.cost_of_row)[..., 0]
    each = costs[:, paths.loops] + np.log(paths.counts)
    sums = np.full((len(costs), paths.schedules), -np.inf, dtype=np.float32)
    for member, values in enumerate(each):
        np.logaddexp.at(sums[member], paths.owners, values)
    return np.asarray(sums + weights.prior_share[:, :, 0] * foreseen, dtype=np.float64)


def _sigmoid(values: Tensor) -> Tensor:
    return np.asarray(1.0 / (1.0 + np.exp(-values)))
