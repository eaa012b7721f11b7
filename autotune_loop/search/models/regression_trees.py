"""Boosted regression trees as arrays: what LightGBM has learnt once is used without it, and read from any file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.targets.errors import UsageError

# The same samples give the same trees; and all but one core are for building and timing.
REPEATABLE = {"deterministic": True, "force_col_wise": True, "num_threads": 1, "verbosity": -1}
_LEAVES, _ROUNDS = 15, 400
_PARAMETERS = {
    "objective": "regression",
    "num_leaves": _LEAVES,
    "min_data_in_leaf": 10,
    "learning_rate": 0.05,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "seed": 1,
}
_NODES = _LEAVES - 1
_NAMES = ("columns", "thresholds", "next_nodes", "values")


Places: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True)
class RegressionTrees:
    """A sum of trees.

    Attributes:
        columns: trees × nodes: the feature that a node asks for; a tree begins at node 0.
        thresholds: trees × nodes: of that feature.
        next_nodes: trees × nodes × 2: where to go on if it is at most the threshold, and if not. Nodes come after those
            that lead to them; -1 - leaf is a leaf.
        values: trees × leaves.
    """

    columns: Places
    thresholds: Array
    next_nodes: Places
    values: Array

    def predict(self, rows: Array) -> Array:
        """The sum of the trees' values for each row of features."""
        trees = np.arange(len(self.columns))[None, :]
        nodes = np.zeros((len(rows), len(self.columns)), dtype=np.int64)
        for _ in range(self.columns.shape[1]):
            if (nodes < 0).all():
                break
            inner = np.maximum(nodes, 0)
            values = np.take_along_axis(rows, self.columns[trees, inner], axis=1)
            is_more = (values > self.thresholds[trees, inner]).astype(np.int64)
            nodes = np.where(nodes < 0, nodes, self.next_nodes[trees, inner, is_more])
        return np.asarray(self.values[trees, -1 - nodes].sum(axis=1))

    def arrays(self) -> dict[str, Any]:
        """What `read_trees` reads."""
        return {
            "trees_columns": self.columns.astype(np.int16),
            "trees_thresholds": self.thresholds,
            "trees_next_nodes": self.next_nodes.astype(np.int8),
            "trees_values": self.values,
        }


def read_trees(arrays: Mapping[str, Any], features_count: int) -> RegressionTrees | None:
    """The trees of a file; None if it has none.

    Raises:
        ValueError: they are not what `RegressionTrees.arrays` gives.
    """
    if "trees_columns" not in arrays:
        return None
    columns, thresholds, next_nodes, values = (np.asarray(arrays[f"trees_{name}"]) for name in _NAMES)
    (count, nodes), (_, leaves) = columns.shape, values.shape
    own = np.arange(nodes)[None, :, None]
    is_whole = (
        thresholds.shape == (count, nodes)
        and next_nodes.shape == (count, nodes, 2)
        and len(values) == count
        and np.issubdtype(columns.dtype, np.integer)
        and np.issubdtype(next_nodes.dtype, np.integer)
        and bool(((columns >= 0) & (columns < features_count)).all())
        and bool(((next_nodes > own) | (next_nodes < 0)).all())
        and bool(((next_nodes < nodes) & (next_nodes >= -leaves)).all())
        and bool(np.isfinite(thresholds).all() and np.isfinite(values).all())
    )
    if not is_whole:
        raise ValueError("its trees are damaged")
    return RegressionTrees(
        columns.astype(np.int64), thresholds.astype(np.float64), next_nodes.astype(np.int64), values.astype(np.float64)
    )


def fit_trees(rows: Array, targets: Array) -> RegressionTrees:
    """Learn targets from rows of features.

    Raises:
        UsageError: LightGBM is not there.
    """
    lightgbm = load_lightgbm()
    booster = lightgbm.train({**_PARAMETERS, **REPEATABLE}, lightgbm.Dataset(rows, targets), _ROUNDS)
    roots = [tree["tree_structure"] for tree in booster.dump_model()["tree_info"]]
    shape = (len(roots), _NODES)
    columns, thresholds = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    # A tree without a decision goes to its only leaf.
    next_nodes, values = np.full((*shape, 2), -1, dtype=np.int64), np.zeros((len(roots), _LEAVES))
    for tree, root in enumerate(roots):
        _write(root, (columns[tree], thresholds[tree], next_nodes[tree], values[tree]))
    return RegressionTrees(columns, thresholds, next_nodes, values)


def _write(root: Mapping[str, Any], into: tuple[Places, Array, Places, Array]) -> None:
    """Write a tree as LightGBM tells it into its rows of the arrays."""
    columns, thresholds, next_nodes, values = into
    if "split_feature" not in root:
        values[0] = root["leaf_value"]
        return
    inner = [root]  # grows while it is walked, so that nodes come after those that lead to them
    for node, told in enumerate(inner):
        columns[node], thresholds[node] = told["split_feature"], told["threshold"]
        for side, name in enumerate(("left_child", "right_child")):
            child = told[name]
            if "split_feature" in child:
                inner.append(child)
                next_nodes[node, side] = len(inner) - 1
            else:
                values[child["leaf_index"]] = child["leaf_value"]
                next_nodes[node, side] = -1 - child["leaf_index"]


def load_lightgbm() -> Any:
    """The package.

    Raises:
        UsageError: it cannot be loaded.
    """
    try:
        import lightgbm
    except (ImportError, OSError) as error:  # the second one if the system has no libgomp
        raise UsageError(
            f"LightGBM cannot be loaded, which boosted trees need: {error}.",
            next_step="Install it with: pip install lightgbm (on Debian it needs libgomp1), or leave out --model.",
        ) from error
    return lightgbm
