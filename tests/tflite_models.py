"""TensorFlow Lite models made of Keras's, what the interpreter computes of them, and what the generators do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.network.operator_generators import operator_generators
from halide_autotune.autotune_loop.network.operators import (
    REDUCTIONS,
    ElementType,
    Network,
    Operator,
    OperatorKind,
    as_rows,
)
from halide_autotune.autotune_loop.network.packed_floats import in_blocks, with_blocks
from halide_autotune.autotune_loop.network.tasks import tasks_of
from tests.generator_files import generator_file

Array = Any
_WORDS: dict[str, object] = {"true": True, "false": False}


def randomized(model: Any) -> Any:
    """With weights and biases that nothing is equal to 0 or to one another in."""
    source = np.random.default_rng(1)
    model.set_weights([source.normal(0, 0.3, each.shape) for each in model.get_weights()])
    return model


def write_tflite(model: Any, path: Path, *, is_int8: bool, one_scale: bool = False, ends: str = "float32") -> Path:
    """Convert a model, and quantise it by random pictures; `ends` is the type of its inputs and outputs then."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if is_int8:
        source = np.random.default_rng(2)

        def pictures() -> Iterator[list[Array]]:
            for _ in range(4):
                yield [source.normal(0.2, 1, (1, *each.shape[1:])).astype(np.float32) for each in model.inputs]

        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = pictures
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = getattr(tf, ends)
        converter._experimental_disable_per_channel = one_scale
        converter._experimental_disable_per_channel_quantization_for_dense_layers = one_scale
    with warnings.catch_warnings():
        # Of the statistics that older converters were given.
        warnings.simplefilter("ignore")
        path.write_bytes(converter.convert())
    return path


def with_other_scales(path: Path, output: Path, seed: int) -> Path:
    """A model of bytes whose tensors, constants excepted, have other scales and zero points, and leaky_relu another
    slope."""
    from tensorflow.lite.python import schema_py_generated as schema
    from tensorflow.lite.tools import flatbuffer_utils

    source, model = np.random.default_rng(seed), flatbuffer_utils.read_model(str(path))
    (graph,) = model.subgraphs
    for tensor in graph.tensors:
        if tensor.type == schema.TensorType.INT8 and model.buffers[tensor.buffer].data is None:
            tensor.quantization.scale = [float(2.0 ** source.uniform(-7, -1))]
            tensor.quantization.zeroPoint = [int(source.integers(-128, 128))]
    for operator in graph.operators:
        if isinstance(operator.builtinOptions, schema.LeakyReluOptionsT):
            operator.builtinOptions.alpha = float(source.normal())
    flatbuffer_utils.write_model(model, str(output))
    return output


def with_output_scale(path: Path, scale: float) -> None:
    """Give a model's output another scale, which may be one that no kernel can compute with."""
    from tensorflow.lite.tools import flatbuffer_utils

    model = flatbuffer_utils.read_model(str(path))
    (graph,) = model.subgraphs
    graph.tensors[graph.outputs[0]].quantization.scale = [scale]
    flatbuffer_utils.write_model(model, str(path))


class Interpreted:
    """All tensors that TensorFlow Lite's reference kernels compute of random pictures, by their names in a network.

    Args:
        has_elu: which the reference has no kernel for; others are taken then.
    """

    def __init__(self, path: Path, has_elu: bool = False) -> None:
        import tensorflow as tf

        types = tf.lite.experimental.OpResolverType
        reference = types.BUILTIN_WITHOUT_DEFAULT_DELEGATES if has_elu else types.BUILTIN_REF
        with warnings.catch_warnings():
            # Of the package that will have the interpreter.
            warnings.simplefilter("ignore")
            self._interpreter = tf.lite.Interpreter(
                model_path=str(path), experimental_op_resolver_type=reference, experimental_preserve_all_tensors=True
            )
        self._interpreter.allocate_tensors()
        source = np.random.default_rng(3)
        for each in self._interpreter.get_input_details():
            is_of_bytes = each["dtype"] is np.int8
            self._interpreter.set_tensor(
                each["index"],
                source.integers(-128, 128, each["shape"], np.int8)
                if is_of_bytes
                else source.normal(0.2, 1, each["shape"]).astype(np.float32),
            )
        self._interpreter.invoke()

    def tensor(self, name: str, shape: Sequence[int]) -> Array:
        """One that operators pass on; 't5_as_1x1x6' is t5 in another shape."""
        return self._interpreter.get_tensor(int(name[1:].partition("_")[0])).reshape(shape)


def computed(operator: Operator, inputs: Sequence[Array], weights: Sequence[Array]) -> Array:
    """What an operator's generator computes; what has none is done here."""
    if operator.kind is OperatorKind.RESHAPE:
        return inputs[0].reshape(operator.output.shape)
    if operator.kind is OperatorKind.CONCATENATE:
        return np.concatenate(inputs, -1)
    if operator.kind is OperatorKind.PAD:
        pads = [[operator.settings[f"pad_{axis}_{end}"] for end in ("before", "after")] for axis in ("rows", "columns")]
        return np.pad(inputs[0], [*pads, (0, 0)], constant_values=weights[0] if weights else 0)
    first, *others = (_as_taken(operator, each) for each in inputs)
    # What is added to a sum of products comes after its weights.
    packed = in_blocks(operator, weights)
    taken = [first, *packed, *others] if operator.kind in REDUCTIONS else [first, *others, *packed]
    return _generated(operator, taken)


def _as_taken(operator: Operator, value: Array) -> Array:
    """In the dimensions that the generator has."""
    if operator.kind is OperatorKind.SOFTMAX:
        return value.reshape(-1, value.shape[-1])
    if operator.kind is OperatorKind.DENSE:
        return value
    return value.reshape(as_rows(operator.kind, [each.shape for each in operator.inputs], value.shape))


def _generated(operator: Operator, inputs: Sequence[Array]) -> Array:
    import halide as hl

    ((generator,), _) = operator_generators(tasks_of([operator]))
    texts = dict(text.split("=") for text in generator.parameters[0])
    parameters = {name: _WORDS.get(text, int(text) if text.isdecimal() else text) for name, text in texts.items()}
    made = getattr(
        generator_file(generator.file.stem), "".join(part.capitalize() for part in generator.name.split("_"))
    )
    arrays = [np.array(each, order="C") for each in inputs]
    with hl.GeneratorContext(hl.get_host_target()):
        taken = (hl.Buffer(each) if each.ndim else each.item() for each in arrays)
        func = made.call(*taken, generator_params=parameters)
        shape = operator.output.shape
        extents = [*as_rows(operator.kind, [each.shape for each in operator.inputs], shape)]
        if func.dimensions() < 3:
            extents = [math.prod(shape[:-1]), shape[-1]][-func.dimensions() :]
        return np.array(func.realize([*reversed(extents)])).reshape(shape)


def check_operators(network: Network, weights: Sequence[Sequence[Array]], wanted: Interpreted) -> None:
    """Each operator computes what the interpreter does of the same input; bytes bit for bit. What comes before an
    activation that the file has fused, the interpreter does not tell."""
    before: dict[str, Array] = {}
    for operator, of_it in zip(with_blocks(network).operators, weights, strict=True):
        inputs = [
            before[each.name] if each.name in before else wanted.tensor(each.name, each.shape)
            for each in operator.inputs
        ]
        if operator.output.name.endswith("_before"):
            before[operator.output.name] = computed(operator, inputs, of_it)
            continue
        expected = wanted.tensor(operator.output.name, operator.output.shape)
        found, words = computed(operator, inputs, of_it), f"{operator.kind} {operator.places}"
        if operator.output.element is ElementType.INT8:
            assert expected.dtype == np.int8 and len(np.unique(expected)) > 1, words
            np.testing.assert_array_equal(found, expected, err_msg=words)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=words)
