"""Models by the names that users give: a file, an application of Keras, or a list of operators."""

from __future__ import annotations

import math
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.network.keras_model import KerasModel
from halide_autotune.autotune_loop.network.loaded_model import LoadedModel
from halide_autotune.autotune_loop.network.operator_list import read_operator_list
from halide_autotune.autotune_loop.network.operators import Network
from halide_autotune.autotune_loop.network.read_keras import read_keras
from halide_autotune.autotune_loop.network.tflite.read_tflite import read_tflite
from halide_autotune.autotune_loop.network.tflite.tflite_model import TfliteModel
from halide_autotune.targets.errors import NetworkError
from halide_autotune.targets.values.checks import nearest_hint

_SEED = 1
_PICTURE = (224, 224, 3)
_APPLICATION = re.compile(r"[A-Z][A-Za-z0-9]+")
# Lists of operators that come with the SDK.
LISTS = {"resnet18-convolutions": Path(__file__).parent / "resnet18-convolutions.toml"}


def read_model(text: str) -> Network:
    """The network of a model.

    Args:
        text: the path of a `.keras` or `.tflite` file, or of a `.toml` list of operators; the name of a class of
            `keras.applications`, such as MobileNetV2, which gets random weights, since nothing is downloaded; or
            `resnet18-convolutions`, a list that comes with the SDK.

    Raises:
        NetworkError: there is no such model, or it cannot be read.
    """
    if text.endswith(".tflite"):
        return read_tflite(Path(text))
    if is_list(text):
        return read_operator_list(LISTS.get(text, Path(text)))
    return read_keras(_model(text))


def open_model(text: str) -> LoadedModel:
    """A model with its network and all its weights, to be built and checked.

    Args:
        text: as for `read_model`.

    Raises:
        NetworkError: as `load_model`.
    """
    if text.endswith(".tflite"):
        return TfliteModel(Path(text), read_tflite(Path(text)))
    model = load_model(text)
    network = read_keras(model)
    # Keras's own names are such as functional_3.
    return KerasModel(model, replace(network, name=Path(text).stem) if text.endswith(".keras") else network)


def load_model(text: str) -> Any:
    """A Keras model itself, with all its weights; an application has the same random ones at every call.

    Args:
        text: as for `read_model`, but no `.tflite` file.

    Raises:
        NetworkError: there is no such model, it cannot be read, or it is a list of operators without weights.
    """
    if is_list(text):
        raise NetworkError(
            f"{text} is a list of operators, not a model: there is nothing that it computes as a whole.",
            next_step="Give a .keras or .tflite file, or an application of Keras such as MobileNetV2.",
        )
    model = _model(text)
    return model if text.endswith(".keras") else with_random_weights(model)


def with_random_weights(model: Any) -> Any:
    """Give a model weights that depend on nothing but their shapes, and keep what it computes within bounds."""
    import numpy

    source = numpy.random.default_rng(_SEED)
    for layer in model.layers:
        for variable in layer.weights:
            shape, what = tuple(variable.shape), str(variable.path).rpartition("/")[2]
            if what in ("kernel", "recurrent_kernel"):
                # He et al., Delving Deep into Rectifiers (2015), eq. 10; a depthwise one sums over its window alone.
                summed = math.prod(shape[:2] if hasattr(layer, "depth_multiplier") else shape[:-1])
                variable.assign(source.normal(0.0, math.sqrt(2.0 / summed), shape))
            elif what in ("gamma", "moving_variance"):
                variable.assign(source.uniform(0.5, 1.5, shape))
            elif what in ("beta", "moving_mean", "bias"):
                variable.assign(source.normal(0.0, 0.1, shape))
    return model


def is_list(text: str) -> bool:
    """Whether a model is but a list of operators, which cannot be built as a whole."""
    return text in LISTS or text.endswith(".toml")


def _model(text: str) -> Any:
    if text.endswith(".keras"):
        return _load(Path(text))
    if Path(text).suffix or not _APPLICATION.fullmatch(text):
        raise NetworkError(
            f"{text} is no model that can be read.",
            next_step="Give a .keras or .tflite file, a .toml list of operators, an application of Keras such as "
            f"MobileNetV2, or one of: {', '.join(LISTS)}.",
        )
    return _application(text)


def _load(path: Path) -> Any:
    if not path.is_file():
        raise NetworkError(f"There is no model {path}.", next_step="Check the path.")
    if not zipfile.is_zipfile(path):
        raise NetworkError(
            f"{path} cannot be read as a Keras model: it is no zip file, as a .keras file is.",
            next_step="Save the model again, and check that the file is complete.",
        )
    import keras

    try:
        # Nothing in the file is executed.
        return keras.models.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # whatever Keras makes of a stranger's file
        reason = " ".join(str(error).split())[:300]
        raise NetworkError(
            f"{path} cannot be read as a Keras model: {reason}",
            next_step="Save the model again, and check that the file is complete.",
        ) from error


def _application(name: str) -> Any:
    import keras

    known = [each for each in dir(keras.applications) if _APPLICATION.fullmatch(each)]
    if name not in known:
        raise NetworkError(
            f"Keras has no application {name!r}{nearest_hint(name, known)}.",
            next_step="`keras.applications` lists them.",
        )
    make = getattr(keras.applications, name)
    model = make(weights=None)
    # Some take pictures of any size: they then get that which their weights were made with.
    return make(weights=None, input_shape=_PICTURE) if None in model.inputs[0].shape[1:] else model
