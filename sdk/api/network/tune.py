"""`sdk.network_tasks` and `sdk.tune_network`: what is tuned of a neural network, and tuning it under one budget."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.cost_model.process.model_process import tensorflow_environment
from halide_autotune.autotune_loop.events import Listener, ignore
from halide_autotune.autotune_loop.network.int8.int8_weights import PackedLayout, packed_layout
from halide_autotune.autotune_loop.network.models import read_model
from halide_autotune.autotune_loop.network.operator_generators import operator_generators
from halide_autotune.autotune_loop.network.operators import ElementType, Network, UnsupportedLayer
from halide_autotune.autotune_loop.network.packed_floats import with_blocks
from halide_autotune.autotune_loop.network.tasks import NetworkTask, task_key, tasks_of
from halide_autotune.autotune_loop.run.result import TunedSchedule, TuneResult
from halide_autotune.autotune_loop.specification.options import DeviceOptions, RunOptions
from halide_autotune.sdk.api.autotune import autotune
from halide_autotune.sdk.api.network.layouts import fastest_blocks, generator_specs_of
from halide_autotune.sdk.inventory.lookup import open_inventory
from halide_autotune.sdk.output import silent_stderr
from halide_autotune.sdk.select.chosen_devices import asked_profile
from halide_autotune.sdk.settings import Settings, export_variables, read_settings
from halide_autotune.targets.errors import NetworkError
from halide_autotune.targets.process.stop_signal import StopSignal


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
        model: the path of a `.keras` or `.tflite` file, or of a `.toml` list of operators; the name of a class of
            `keras.applications`, such as MobileNetV2; or `resnet18-convolutions`.

    Raises:
        NetworkError: there is no such model, or it cannot be read.
    """
    export_variables(tensorflow_environment({}, len(os.sched_getaffinity(0))))
    with silent_stderr():
        network = read_model(model)
    network = with_blocks(network)
    return NetworkTasks(network, tuple(tasks_of(network.operators)))


def check_is_supported(network: Network) -> None:
    """Check that there is an operator for each layer.

    Raises:
        NetworkError: there are layers without one; they are named.
    """
    if network.unsupported:
        layers = "; ".join(f"{each.place}: {each.reason}" for each in network.unsupported)
        raise NetworkError(
            f"{network.name} has layers that there is no operator for ({layers}).",
            next_step="Replace them in the model, or tune its operators as generators of your own.",
        )


@dataclass(frozen=True)
class TunedOperator:
    """A task of a network, and what was found for it."""

    task: NetworkTask
    found: TunedSchedule

    @property
    def untuned_ms(self) -> float | None:
        """Of one call with the schedule of a build without a run; None if that could not be timed."""
        return self.found.untuned_ms

    @property
    def tuned_ms(self) -> float | None:
        """Of one call."""
        return self.found.tuned_ms


@dataclass(frozen=True)
class TunedNetwork:
    """A network whose operators were tuned.

    Attributes:
        operators: with the most work first.
        rest: what is not tuned, because it only moves numbers.
        result: of the run.
    """

    network: Network
    operators: tuple[TunedOperator, ...]
    rest: tuple[NetworkTask, ...]
    result: TuneResult

    @property
    def untuned_ms(self) -> float | None:
        """Of all calls of what was tuned, with the schedules of a build without a run; None if one has no time."""
        return _total([(each.task.count, each.untuned_ms) for each in self.operators])

    @property
    def tuned_ms(self) -> float | None:
        """The same with the tuned ones."""
        return _total([(each.task.count, each.tuned_ms) for each in self.operators])

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form."""
        return {
            "model": self.network.name,
            "run_folder": str(self.result.run_folder),
            "outcome": self.result.outcome.value,
            "untuned_ms": self.untuned_ms,
            "tuned_ms": self.tuned_ms,
            "operators": [
                {**each.task.to_dict(), "untuned_ms": each.untuned_ms, **each.found.to_dict()}
                for each in self.operators
            ],
            "not_tuned": [task.to_dict() for task in self.rest],
        }


def tune_network(
    model: str,
    *,
    options: RunOptions | None = None,
    run_folder: Path | None = None,
    listen: Listener = ignore,
    stop: StopSignal | None = None,
    settings: Settings | None = None,
    tries_layouts: bool = False,
) -> TunedNetwork:
    """Tune all operators of a network in one run, under one budget: where the network's time falls most gets the most.

    Args:
        model: as for `network_tasks`.
        options: as for `sdk.autotune`, such as `RunOptions.of(target="arm64", budget_s=1800)`.
        run_folder, listen, stop: as for `sdk.autotune`. A run that was killed is resumed as any other.
        tries_layouts: first time the operators' own schedules with other layouts of their weights, and keep the fastest
            of each; the time that it takes is not the budget's.

    Raises:
        NetworkError: the model cannot be read, or has layers that there is no operator for.
        SdkError: a subclass, for everything else that a user can fix.
    """
    network = network_tasks(model).network
    check_is_supported(network)
    asked = options or RunOptions()
    if tries_layouts:
        blocks = fastest_blocks(network, asked, listen, stop, settings)
        network = with_blocks(network, lambda operator: blocks.get(task_key(operator)))
    found = tasks_of(network.operators)
    has_bytes = any(task.element is ElementType.INT8 for task in found)
    layout = _layout(asked.devices, settings or read_settings()) if has_bytes else PackedLayout()
    operators, rest = operator_generators(found, layout)
    if not operators:
        raise NetworkError(f"There is nothing to tune in {network.name}.")
    specs = generator_specs_of(operators)
    result = autotune(specs, options=asked, run_folder=run_folder, listen=listen, stop=stop, settings=settings)
    tasks = [task for each in operators for task in each.tasks]
    tuned = [TunedOperator(task, one) for task, one in zip(tasks, result.tuned, strict=True)]
    ordered = sorted(tuned, key=lambda each: -each.task.count * each.task.operations)
    return TunedNetwork(network, tuple(ordered), tuple(rest), result)


def _layout(asked: DeviceOptions, settings: Settings) -> PackedLayout:
    """Of the weights of bytes, as the target's instructions take them."""
    profile = asked_profile(asked, open_inventory(asked.inventory, settings), settings)
    return packed_layout(profile.halide_target)


def _total(times: Sequence[tuple[int, float | None]]) -> float | None:
    known = [count * time_ms for count, time_ms in times if time_ms is not None]
    return sum(known) if len(known) == len(times) else None
