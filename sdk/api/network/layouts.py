"""With which layout of its weights each operator of a network is fastest on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halide_autotune.autotune_loop.events import Listener
from halide_autotune.autotune_loop.network.operator_generators import OperatorGenerator, operator_generators
from halide_autotune.autotune_loop.network.operators import Network
from halide_autotune.autotune_loop.network.packed_floats import BLOCK, blocks_of
from halide_autotune.autotune_loop.network.tasks import TaskKey, task_key, tasks_of
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.api.autotune import autotune
from halide_autotune.sdk.options.generator_spec import GeneratorSpec
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal


def generator_specs_of(generators: list[OperatorGenerator]) -> list[GeneratorSpec]:
    """What is tuned of some operators."""
    return [GeneratorSpec(f"{each.file}:{each.name}", argsets=each.parameters, calls=each.calls) for each in generators]


def fastest_blocks(
    network: Network, options: RunOptions, listen: Listener, stop: StopSignal | None, settings: Settings | None
) -> Mapping[TaskKey, int]:
    """The block of weights with which each operator is fastest with its generator's own schedule, by its task.

    Each block is an operator of its own in a short run, whose times of the own schedules count.

    Args:
        network: with the usual blocks.

    Raises:
        SdkError: a subclass, for everything that a user can fix.
    """
    usual = {task_key(each): each for each in network.operators if len(blocks_of(each)) > 1}
    if not usual:
        return {}
    others, usual_of = [], {}
    for key, each in usual.items():
        for block in blocks_of(each):
            others.append(replace(each, settings={**each.settings, BLOCK: block}))
            usual_of[task_key(others[-1])] = key, block
    generators, _ = operator_generators(tasks_of(others))
    short = {"budget_s": None, "rounds": 1, "batch_size": 2, "technique": ("sketches",), "no_history": True}
    with scratch_folder("layouts") as folder:
        found = autotune(
            generator_specs_of(generators),
            options=options.with_values(short),
            run_folder=folder / "run",
            listen=listen,
            stop=stop,
            settings=settings,
        )
    fastest: dict[TaskKey, tuple[float, int]] = {}
    tasks = [task for each in generators for task in each.tasks]
    for task, tuned in zip(tasks, found.tuned, strict=True):
        key, block = usual_of[task.key]
        own = tuned.published.own
        # One that could not be timed says nothing: the default is another schedule.
        if own is not None:
            fastest[key] = min(fastest.get(key, (own.median_ms, block)), (own.median_ms, block))
    return {key: block for key, (_, block) in fastest.items()}
