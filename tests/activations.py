"""What activations do, in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.network.operators import Activation

ACTIVATIONS: dict[Activation, Callable[[Any], Any]] = {
    Activation.NONE: lambda value: value,
    Activation.RELU: lambda value: np.maximum(value, 0),
    Activation.RELU6: lambda value: np.clip(value, 0, 6),
    Activation.SIGMOID: lambda value: 1 / (1 + np.exp(-value)),
    Activation.TANH: np.tanh,
    Activation.SILU: lambda value: value / (1 + np.exp(-value)),
}
