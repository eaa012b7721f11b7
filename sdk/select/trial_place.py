"""Finds the place where a run's schedule is tried at sizes: the run's device, or one that the user names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from halide_autotune.autotune_loop.shipping.confirmation import TrialPlace
from halide_autotune.autotune_loop.shipping.run_schedule import RunSchedule
from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.devices.device import Clock
from halide_autotune.sdk.project.preparation import Workbench
from halide_autotune.sdk.select.chosen_devices import find_devices
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.executable import BuildTools
from halide_autotune.targets.build.kernel_sources import KernelSources
from halide_autotune.targets.cuda.ptxas import find_ptxas
from halide_autotune.targets.errors import UsageError


def open_trial_place(
    run: RunSchedule,
    asked: DeviceOptions,
    workbench: Workbench,
    settings: Settings,
    progress: Callable[[str], None],
) -> TrialPlace:
    """Return the place for one run's schedule.

    Args:
        asked: without a device for what the run was timed on, without a target for the profile that it was tuned
            for, and without features of the target for the run's.

    Raises:
        SdkError: one of its children: the device or the profile cannot be used, or has another Halide target.
    """
    features = asked.target_features or run.record.spec.options.devices.target_features
    asked = replace(asked, target=asked.target or run.profile_name, target_features=features)
    chosen = find_devices(asked if asked.device else _as_in_run(run, asked), settings, progress)
    profile = chosen.choice.profile
    tuned_for = run.record.spec.profile.halide_target
    if profile.halide_target != tuned_for:
        raise UsageError(
            f"{run.folder} was tuned for {tuned_for}; the profile {profile.name} is now {profile.halide_target}.",
            next_step="Ship where it was tuned, give that profile with --target, or leave sizes out with --no-sizes.",
        )
    toolchain = chosen.open_toolchain(settings)
    return TrialPlace(
        devices=chosen.choice.devices,
        profile=profile,
        tools=BuildTools(workbench.halide, workbench.cache, toolchain, KernelSources.of(run.task.reference.build)),
        compiler=workbench.compiler,
        workspace=chosen.workspace(settings),
        ptxas=find_ptxas(settings.environment),
    )


def _as_in_run(run: RunSchedule, asked: DeviceOptions) -> DeviceOptions:
    """Return the run's devices, with the threads that the schedule was made for and the clock that timed it."""
    spec, made_with = run.record.spec, run.record.made_with
    emulated = made_with.devices == ("qemu",) and made_with.clock == Clock.EMULATED.value
    return replace(
        asked,
        device=made_with.devices,
        # For a card they are its multiprocessors, which it reports itself.
        parallelism=spec.parallelism if spec.profile.machine.gpu is None else None,
        clock=Clock.EMULATED.value if emulated else None,
    )
