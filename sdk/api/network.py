"""`sdk.network_tasks`: what is tuned of a neural network."""

from __future__ import annotations

import os
from dataclasses import dataclass

from halide_autotune.autotune_loop.cost_model.process.model_process import tensorflow_environment
from halide_autotune.autotune_loop.network.models import read_model
from halide_autotune.autotune_loop.network.operators import Network, UnsupportedLayer
from halide_autotune.autotune_loop.network.tasks import NetworkTask, tasks_of
from halide_autotune.sdk.output import silent_stderr
from halide_autotune.sdk.settings import export_variables


@dataclass(frozen=True)
class NetworkTasks:
    """The operators of a network that are to be tuned.

    Attributes:
        tasks: each operator of each shape once, those with the most work first.
        unsupported: layers that there is no operator for; empty in a network that can be built.
    """

    network: Network
    tasks: tuple[NetworkTask, ...]

    @property
    def unsupported(self) -> tuple[UnsupportedLayer, ...]:
        """What cannot be tuned, layer by layer."""
        return self.network.unsupported

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form."""
        return {
            "model": self.network.name,
            "tasks": [task.to_dict() for task in self.tasks],
            "unsupported": [{"place": each.place, "reason": each.reason} for each in self.unsupported],
        }


def network_tasks(model: str) -> NetworkTasks:
    """Take a model apart: layers that follow one another become one operator, and equal operators one task.

    Args:
        model: the path of a `.keras` file, the name of a class of `keras.applications`, such as MobileNetV2, or
            `resnet18-convolutions`.

    Raises:
        NetworkError: there is no such model, or it cannot be read.
    """
    export_variables(tensorflow_environment({}, len(os.sched_getaffinity(0))))
    with silent_stderr():
        network = read_model(model)
    return NetworkTasks(network, tuple(tasks_of(network.operators)))
