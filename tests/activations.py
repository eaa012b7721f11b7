"""What activations do, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.network.operators import Activation

# Of those that have one.
SLOPE = 0.3
ACTIVATIONS: dict[Activation, Callable[[Any], Any]] = {
    Activation.NONE: lambda value: value,
    Activation.RELU: lambda value: np.maximum(value, 0),
    Activation.RELU6: lambda value: np.clip(value, 0, 6),
    Activation.SIGMOID: lambda value: 1 / (1 + np.exp(-value)),
    Activation.TANH: np.tanh,
    Activation.SILU: lambda value: value / (1 + np.exp(-value)),
    Activation.LEAKY_RELU: lambda value: np.where(value > 0, value, SLOPE * value),
    Activation.ELU: lambda value: np.where(value > 0, value, SLOPE * np.expm1(value)),
    Activation.HARD_SWISH: lambda value: value * np.clip(value + 3, 0, 6) / 6,
    Activation.GELU: lambda value: value * (1 + np.vectorize(math.erf, otypes="f")(value / math.sqrt(2))) / 2,
    Activation.GELU_TANH: lambda value: (
        value * (1 + np.tanh(math.sqrt(2 / math.pi) * (value + 0.044715 * value**3))) / 2
    ),
}
