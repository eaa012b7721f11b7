"""The operators' generators compute what TensorFlow does, for every setting."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.network import generators
from halide_autotune.autotune_loop.network.operators import Activation

pytestmark = pytest.mark.toolchain
FOLDER = Path(generators.__file__).parent
ACTIVATIONS: dict[Activation, Callable[[Any], Any]] = {
    Activation.NONE: lambda value: value,
    Activation.RELU: lambda value: np.maximum(value, 0),
    Activation.RELU6: lambda value: np.clip(value, 0, 6),
    Activation.SIGMOID: lambda value: 1 / (1 + np.exp(-value)),
    Activation.TANH: np.tanh,
    Activation.SILU: lambda value: value / (1 + np.exp(-value)),
}
SMALL = {"rows": 11, "columns": 9, "channels_in": 8, "channels_out": 12}
SAME = {f"pad_{axis}_{end}": 1 for axis in ("rows", "columns") for end in ("before", "after")}


@functools.cache
def generator(name: str) -> ModuleType:
    """The module of a generator, as Halide's process runs it."""
    spec = importlib.util.spec_from_file_location(f"generator_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "settings",
    [
        {},
        SAME,
        {**SAME, "stride_rows": 2, "stride_columns": 2, "pad_rows_after": 0},
        {"dilation_rows": 2, "kernel_columns": 1, "has_bias": False},
        {**SAME, "groups": 4, "activation": "relu"},
        {**SAME, "block": 4, "activation": "relu6", "adds": True},
        {"kernel_rows": 1, "kernel_columns": 1, "block": 6, "groups": 2},
        *({"activation": each.value, "adds": True, "has_bias": False} for each in Activation),
    ],
)
def test_a_convolution_computes_what_tensorflow_does(settings: dict[str, Any], tensorflow_ready: None) -> None:
    import halide as hl
    import tensorflow as tf

    known: dict[str, Any] = {
        "kernel_rows": 3,
        "kernel_columns": 3,
        "groups": 1,
        "has_bias": True,
        "adds": False,
        "block": 0,
    }
    known |= {"activation": "none", **SMALL, **settings}
    source = np.random.default_rng(1)
    picture = source.normal(size=(known["rows"], known["columns"], known["channels_in"])).astype(np.float32)
    each_in = known["channels_in"] // known["groups"]
    shape = (known["kernel_rows"], known["kernel_columns"], each_in, known["channels_out"])
    weights = source.normal(size=shape).astype(np.float32)
    pads = [[known.get(f"pad_{axis}_{end}", 0) for end in ("before", "after")] for axis in ("rows", "columns")]
    strides = [known.get("stride_rows", 1), known.get("stride_columns", 1)]
    dilations = [known.get("dilation_rows", 1), known.get("dilation_columns", 1)]
    padded = tf.pad(picture[None], [[0, 0], *pads, [0, 0]])
    parts = zip(tf.split(padded, known["groups"], -1), tf.split(weights, known["groups"], -1), strict=True)
    found = [tf.nn.conv2d(part, kernel, strides, "VALID", dilations=dilations) for part, kernel in parts]
    wanted = np.asarray(tf.concat(found, -1))[0]
    block = known["block"]
    packed = weights
    if block:  # channels out of a block side by side
        packed = np.moveaxis(weights.reshape(*shape[:3], shape[3] // block, block), 3, 0)
    inputs = [picture, np.ascontiguousarray(packed)]
    if known["has_bias"]:
        inputs.append(source.normal(size=shape[3]).astype(np.float32))
        wanted = wanted + inputs[-1]
    if known["adds"]:
        inputs.append(source.normal(size=wanted.shape).astype(np.float32))
        wanted = wanted + inputs[-1]
    wanted = ACTIVATIONS[Activation(known["activation"])](wanted)
    with hl.GeneratorContext(hl.get_host_target()):
        made = generator("convolution").Convolution.call(*map(hl.Buffer, inputs), generator_params=known)
        output = np.asarray(made.realize([*reversed(wanted.shape)]))
    np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-4)
