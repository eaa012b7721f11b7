"""`sdk.bench`: check and time schedules side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence

from autotune_loop.comparison import ComparedSchedule, compare_schedules
from autotune_loop.tune_request import Folders
from devices.measure_settings import KernelInputs, MeasureSettings
from sdk.preparation import open_named_generator, open_workbench, pick_device
from sdk.settings import Settings, read_settings
from targets.artifacts import BuildTools, KernelRecipe
from targets.profile_loader import load_profile
from targets.schedule_choice import OWN_SCHEDULE, ScheduleChoice, resolve_schedule
from targets.zig_toolchain import ZigToolchain


def bench(
    generator: str,
    schedules: Sequence[str] = (OWN_SCHEDULE,),
    *,
    target: str = "host",
    device: str | None = None,
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
        device: 'local' or 'qemu'; None takes the profile's default.
        turns: how often each schedule is timed; they alternate, so that a drift meets all alike.
        progress: called with a phrase at every step.

    Raises:
        SdkError: one of its children, for everything that a user can mend.
    """
    settings = settings or read_settings()
    profile = load_profile(target, settings.profile_folder)
    chosen, threads = pick_device(profile, device, parallelism)
    tools = open_workbench(settings)
    progress("opening the generator")
    reference, program = open_named_generator(generator, parameters, tools, settings)
    with contextlib.closing(program):
        assert reference.name is not None
        choices = [resolve_schedule(s, profile, threads, tools.halide, tools.compiler) for s in schedules]
        own = ScheduleChoice(OWN_SCHEDULE, None)
        recipe = KernelRecipe(program, reference.name, reference.name, reference.parameters, profile, own)
        toolchain = ZigToolchain(profile.toolchain.triple, settings.cache_folder / "zig")
        return compare_schedules(
            recipe,
            choices,
            chosen,
            inputs or KernelInputs(),
            measuring or MeasureSettings(),
            turns,
            BuildTools(tools.halide, tools.cache, toolchain),
            Folders(settings.cache_folder, settings.cache_folder / "locks", settings.environment),
            progress,
        )
