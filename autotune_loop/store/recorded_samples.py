"""The samples of recorded runs, for training without a device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.store.run_record import FILE_NAME, read_run_record
from halide_autotune.autotune_loop.store.sample_file import Sample, read_sample
from halide_autotune.targets.errors import RunFolderError, WeightsError
from halide_autotune.weights.network import Network


@dataclass(frozen=True)
class RecordedSamples:
    """Samples that may be trained on together.

    Attributes:
        samples: all that could be read.
        unreadable: one message for each that could not.
        parallelism: cores of the device they were timed on; None if no run says.
        clock: what they were timed with; None if no run says.
        profile, device: what they were timed for and on; None if no run says.
    """

    samples: tuple[Sample, ...]
    unreadable: tuple[str, ...]
    parallelism: int | None
    clock: str | None
    profile: str | None = None
    device: str | None = None


def load_recorded_samples(
    folders: Sequence[Path], profile_name: str | None, network: Network = Network.ADAMS2019
) -> RecordedSamples:
    """Every `.sample` below the folders: run folders, folders in or above them, or samples from Halide's loop.

    What was timed how is said by the run that a sample lies in.

    Args:
        profile_name: the profile that the runs must be for; None takes any.
        network: the cost model that the samples are for; bare samples for another are unreadable.

    Raises:
        RunFolderError: a folder has no sample, a run is for another network, or the runs are of different
            profiles, devices, clocks or numbers of cores: times of different clocks or machines are never mixed in
            one training.
    """
    found = {folder: _sample_files(folder) for folder in folders}
    for folder, paths in found.items():
        if not paths:
            raise RunFolderError(
                f"{folder} has no .sample files.",
                next_step="Pass the folder of a run, or its samples/ folder.",
            )
    known = _told(path for paths in found.values() for path in paths)
    _check_alike(known, profile_name, network)
    samples: list[Sample] = []
    unreadable: list[str] = []
    for path in (path for folder in folders for path in found[folder]):
        try:
            samples.append(read_sample(path, network))
        except WeightsError as error:
            unreadable.append(str(error))
    common = next(iter(known.values()), {})
    return RecordedSamples(
        tuple(samples),
        tuple(unreadable),
        parallelism=common.get("parallelism"),
        clock=common.get("clock"),
        profile=common.get("profile"),
        device=common.get("device"),
    )


def recorded_network(folders: Sequence[Path]) -> Network:
    """The cost model that the runs' samples are for; Adams2019's if none says.

    Raises:
        RunFolderError: a run's record is damaged.
    """
    told = _told(path for folder in folders for path in _sample_files(folder))
    named = [facts["autoscheduler"] for facts in told.values()]
    return next((network for text in named for network in Network if network.value == text), Network.ADAMS2019)


def _sample_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.sample")) if folder.is_dir() else []


def _told(paths: Iterable[Path]) -> dict[Path, dict[str, Any]]:
    """What the runs that samples lie in say of their times, by the runs' folders; bare samples lie in none."""
    runs = dict.fromkeys(_run_around(folder.resolve()) for folder in dict.fromkeys(path.parent for path in paths))
    return {run: _facts(run) for run in runs if run is not None}


def _run_around(folder: Path) -> Path | None:
    """The folder itself or the nearest above it that is a run's."""
    return next((each for each in (folder, *folder.parents) if (each / FILE_NAME).exists()), None)


def _facts(folder: Path) -> dict[str, Any]:
    run = read_run_record(folder)
    return {
        "profile": run.spec.profile.name,
        "autoscheduler": run.spec.profile.autoscheduler.name,
        "parallelism": run.spec.parallelism,
        # A run may be resumed on other boards of the inventory, but two boards have each a scale of its own.
        "device": ", ".join(run.made_with.devices),
        "clock": run.made_with.clock,
        "clock_model": run.made_with.clock_model,
    }


def _check_alike(told: Mapping[Path, Mapping[str, Any]], profile_name: str | None, network: Network) -> None:
    for folder, facts in told.items():
        if facts["autoscheduler"] != network.value:
            raise RunFolderError(
                f"The samples in {folder} are for the cost model of {facts['autoscheduler']}, but the weights are for "
                f"{network}.",
                next_step=f"Pass weights for {facts['autoscheduler']}, or none to use Halide's own.",
            )
        if profile_name not in (None, facts["profile"]):
            raise RunFolderError(
                f"{folder} is a run for profile {facts['profile']}, not {profile_name}.",
                next_step=f"Leave it out, or use --target {facts['profile']}.",
            )
        first = next(iter(told))
        for key, value in told[first].items():
            if facts[key] != value:
                raise RunFolderError(
                    f"{folder} was timed with {key} {facts[key]}, {first} with {value}; "
                    "their times cannot be trained on together.",
                    next_step="Retrain from runs of one kind at a time.",
                )
