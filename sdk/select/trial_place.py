"""Finds the place where a run's schedule is tried at sizes: the run's device, or one that the user names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from autotune_loop.shipping.confirmation import TrialPlace
from autotune_loop.shipping.provenance import device_names
from autotune_loop.shipping.run_schedule import RunSchedule
from autotune_loop.specification.tune_request import Folders
from devices.device import Clock
from sdk.project.preparation import Workbench
from sdk.select.chosen_devices import ChosenDevices, find_devices
from sdk.settings import Settings
from targets.build.executable import BuildTools
from targets.cuda.ptxas import find_ptxas
from targets.errors import UsageError

_THREADS = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)


def open_trial_place(
    run: RunSchedule,
    devices: Sequence[str],
    inventory: Path | None,
    target: str | None,
    workbench: Workbench,
    settings: Settings,
    progress: Callable[[str], None],
) -> TrialPlace:
    """Return the place for one run's schedule.

    Args:
        devices: as the user names them; empty for what the run was timed on.
        target: the profile; None takes the one that the run names.

    Raises:
        SdkError: one of its children: the device or the profile cannot be used, or has another Halide target.
    """
    if devices:
        chosen = find_devices(target or run.profile_name, devices, None, inventory, settings, progress)
    else:
        chosen = _devices_of_run(run, inventory, target, settings, progress)
    profile = chosen.choice.profile
    tuned_for = run.record.identity["halide_target"]
    if profile.halide_target != tuned_for:
        raise UsageError(
            f"{run.folder} was tuned for {tuned_for}; the profile {profile.name} is now {profile.halide_target}.",
            next_step="Ship where it was tuned, give that profile with --target, or leave sizes out with --no-sizes.",
        )
    toolchain = chosen.open_toolchain(settings)
    return TrialPlace(
        devices=chosen.choice.devices,
        profile=profile,
        tools=BuildTools(workbench.halide, workbench.cache, toolchain),
        compiler=workbench.compiler,
        folders=Folders(settings.cache_folder, settings.cache_folder / "locks", settings.environment),
        connections=chosen.connections,
        ptxas=find_ptxas(settings.environment),
    )


def _devices_of_run(
    run: RunSchedule, inventory: Path | None, target: str | None, settings: Settings, progress: Callable[[str], None]
) -> ChosenDevices:
    """Return the run's devices, with the threads that the schedule was made for and the clock that timed it."""
    identity = run.record.identity
    threads = identity.get("parallelism", "")
    # For a card they are its multiprocessors, which it reports itself.
    parallelism = int(threads) if _THREADS.fullmatch(threads) and "card" not in identity else None
    names = device_names(run.record)
    emulated = names == ["qemu"] and identity.get("clock") == Clock.EMULATED.value
    clock = Clock.EMULATED.value if emulated else None
    return find_devices(target or run.profile_name, names, parallelism, inventory, settings, progress, clock)
