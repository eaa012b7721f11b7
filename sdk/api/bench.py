"""`sdk.bench`: check and time schedules side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from autotune_loop.comparison import ComparedSchedule, compare_schedules
from autotune_loop.tune_request import Folders
from devices.measure_settings import KernelInputs, MeasureSettings
from sdk.chosen_devices import device_names, find_devices
from sdk.preparation import open_named_generator, open_workbench
from sdk.settings import Settings, read_settings
from targets.artifacts import BuildTools, KernelRecipe
from targets.open_toolchain import open_toolchain
from targets.schedule_choice import OWN_SCHEDULE, ScheduleChoice, resolve_schedule


def bench(
    generator: str,
    schedules: Sequence[str] = (OWN_SCHEDULE,),
    *,
    target: str | None = None,
    device: str | Sequence[str] | None = None,
    inventory: Path | None = None,
    parameters: Iterable[str] = (),
    parallelism: int | None = None,
    turns: int = 5,
    inputs: KernelInputs | None = None,
    measuring: MeasureSettings | None = None,
    progress: Callable[[str], None] = lambda text: None,
    settings: Settings | None = None,
) -> list[ComparedSchedule]:
    """Time schedules of one generator in turns, each output first compared with an independent schedule's.

    Args:
        schedules: each as in `sdk.build`.
        target, device, inventory: as in `sdk.autotune`; several devices time one after the other.
        turns: how often each schedule is timed; they alternate, so that a drift meets all alike.
        progress: called with a phrase at every step.

    Raises:
        SdkError: one of its children, for everything that a user can mend.
    """
    settings = settings or read_settings()
    chosen = find_devices(target, device_names(device), parallelism, inventory, settings, progress)
    profile, threads = chosen.choice.profile, chosen.choice.parallelism
    if chosen.choice.note:
        progress(chosen.choice.note)
    runs_here = any(device.remote is None for device in chosen.choice.devices)
    toolchain = open_toolchain(profile, settings.cache_folder, None if runs_here else settings.ndk_root)
    toolchain.version()  # a broken one is found out before anything is built
    tools = open_workbench(settings)
    progress("opening the generator")
    reference, program = open_named_generator(generator, parameters, tools, settings)
    with contextlib.closing(program):
        assert reference.name is not None
        choices = [resolve_schedule(s, profile, threads, tools.halide, tools.compiler) for s in schedules]
        own = ScheduleChoice(OWN_SCHEDULE, None)
        recipe = KernelRecipe(program, reference.name, reference.name, reference.parameters, profile, own)
        return compare_schedules(
            recipe,
            choices,
            chosen.choice.devices,
            inputs or KernelInputs(),
            measuring or MeasureSettings(),
            turns,
            BuildTools(tools.halide, tools.cache, toolchain),
            Folders(settings.cache_folder, settings.cache_folder / "locks", settings.environment),
            chosen.connections,
            progress,
        )
