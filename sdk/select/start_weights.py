"""Chooses the weights that a run starts from, and saves those that it has trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from halide_autotune.autotune_loop.candidate import Measured
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun, read_recorded_run
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.autotune_loop.specification.prepared_run import PreparedRun
from halide_autotune.devices.device import Clock, Device
from halide_autotune.sdk.display.quantities import count_text, share_text
from halide_autotune.sdk.select.named_weights import find_weights, open_registry
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.profile.profile import BASELINE_WEIGHTS, TargetProfile
from halide_autotune.weights.lineage import Lineage, Training
from halide_autotune.weights.network import Network
from halide_autotune.weights.registry import (
    RegisteredWeights,
    WeightsRegistry,
    entry_name,
    nearest_weights,
    nest_prior_beside,
)
from halide_autotune.weights.weights_file import read_weights, weights_sha256

# Processor and bits of a Halide target → the profile whose weights stand in for those of others of the kind.
_GENERAL = {
    "x86-64": "x86-64",
    "arm-64": "arm64",
    "arm-32": "arm32",
    "riscv-64": "riscv64-rvv",
    "hexagon-32": "hexagon-v66",
}
# Weights that have seen fewer schedules are no better than those they come from.
_FEWEST_KEPT = 64


@dataclass(frozen=True)
class StartWeights:
    """The weights that a run starts from.

    Attributes:
        profile: the run's; without its own start weights if the user wants Halide's.
        path: a weights file; None takes the profile's, else Halide's own.
        is_transferred: the user did not name them; they are the nearest known ones.
        nest_prior: the file of what loop nests say, which comes with the weights, else with those of the profile or its
            kind; None takes the SDK's own.
        message: a message for the user; may be empty.
    """

    profile: TargetProfile
    path: Path | None = None
    is_transferred: bool = False
    message: str = ""
    nest_prior: Path | None = None


def choose_start_weights(
    wanted: str | None, profile: TargetProfile, devices: tuple[Device, ...], settings: Settings
) -> StartWeights:
    """The weights that the user names, else the nearest that are known, for a new run.

    Args:
        wanted: a registered name, a path that ends in .weights, or `baseline`.

    Raises:
        WeightsError: there are none of that name, or they are damaged.
    """
    registry, profiles = open_registry(settings), _as_good_as(profile)
    of_kind = nest_prior_of(profile, settings)
    if wanted == BASELINE_WEIGHTS:
        return StartWeights(replace(profile, start_weights=BASELINE_WEIGHTS), nest_prior=of_kind)
    if wanted is not None:
        source = find_weights(wanted, settings).source
        beside = nest_prior_beside(source)
        return StartWeights(profile, source, nest_prior=beside if beside.is_file() else of_kind)
    if profile.start_weights != BASELINE_WEIGHTS:
        return StartWeights(profile, nest_prior=of_kind)
    entries, damaged = registry.entries()
    found = nearest_weights(
        entries, profiles, _device_name(devices), profile.autoscheduler.name, devices[0].clock.value
    )
    messages = [
        f"The weights {entry.name} are skipped: {entry.message}"
        for entry in damaged
        if entry.name.partition("@")[0] in profiles
    ]
    if found is None:
        return StartWeights(profile, message=" ".join(messages), nest_prior=of_kind)
    nest_prior = registry.nest_prior(found.name) or of_kind
    if found.sha256 == found.lineage.parent_sha256:  # Halide's own, which come with loop nests alone
        return StartWeights(profile, message=" ".join(messages), nest_prior=nest_prior)
    return StartWeights(
        profile,
        found.path,
        is_transferred=True,
        message=" ".join([*messages, _told(found)]),
        nest_prior=nest_prior,
    )


def nest_prior_of(profile: TargetProfile, settings: Settings) -> Path | None:
    """The file of what loop nests say on processors of a profile, or of its kind; None takes the SDK's own."""
    found = map(open_registry(settings).nest_prior, _as_good_as(profile))
    return next((file for file in found if file is not None), None)


def keep_trained_weights(result: TuneResult, run: PreparedRun, settings: Settings) -> str:
    """Keep what a run has learnt under the name of its device; returns a message, empty where nothing was kept.

    Weights that have the name already and are not those that the run started from stay.

    Raises:
        WeightsError: the folder of the weights cannot be written.
    """
    trained, start = read_weights(result.weights), read_weights(result.run_folder / "samples" / "start.weights")
    if result.totals.samples_timed < _FEWEST_KEPT or weights_sha256(trained) == weights_sha256(start):
        return ""
    recorded = read_recorded_run(result.run_folder)
    if len(_learnt_from(recorded)) < _FEWEST_KEPT:
        return ""
    registry = open_registry(settings)
    name = entry_name(run.spec.profile.name, _device_name(run.devices))
    held = _held(registry, name)
    if held is not None and held.sha256 != weights_sha256(start):
        if held.sha256 == weights_sha256(trained):
            return ""
        return (
            f"Other weights named {name} already exist and are kept. To replace them: "
            f"sdk weights import {result.weights} --target {run.spec.profile.name}"
            f"{f' --device {_device_name(run.devices)}' if _device_name(run.devices) else ''} --replace"
        )
    parent = None if held is None else held.lineage
    nests = nest_prior_beside(registry.folder / f"{name}.weights")  # learnt by a training, and by no run
    kept_nests = nests if nests.is_file() else None
    registry.add(name, trained, _lineage(recorded, run, weights_sha256(start), parent), kept_nests)
    return f"The trained weights are kept as {name}: later runs on this device start from them."


def _lineage(recorded: RecordedRun, run: PreparedRun, parent_sha256: str, parent: Lineage | None) -> Lineage:
    judged = [training for training in recorded.trainings if training.accepted and training.accuracy_after is not None]
    before = Training() if parent is None else parent.training
    return Lineage(
        profile=run.spec.profile.name,
        device=_device_name(run.devices),
        clock=run.clock.value,
        parallelism=run.spec.parallelism,
        network=Network(run.spec.profile.autoscheduler.name).value,
        halide_version=find_halide_install().version,
        parent_sha256=parent_sha256,
        training=Training(
            pipelines=len(run.spec.tasks) + before.pipelines,
            samples=len(_learnt_from(recorded)) + before.samples,
            rounds=len(recorded.trainings) + before.rounds,
            pairwise_accuracy=judged[-1].accuracy_after if judged else None,
        ),
        created=datetime.now(UTC).date().isoformat(),
    )


def _learnt_from(recorded: RecordedRun) -> list[Measured]:
    """What Halide's search found; of schedules that others made the network knows nothing."""
    return [sample for sample in recorded.samples if sample.candidate.has_features]


def _held(registry: WeightsRegistry, name: str) -> RegisteredWeights | None:
    """A user's own entry; a shipped one is no obstacle."""
    entries, damaged = registry.entries()
    if any(entry.name == name for entry in damaged):
        return None
    return next((entry for entry in entries if entry.name == name and not entry.is_shipped), None)


def _device_name(devices: tuple[Device, ...]) -> str:
    """One device's name; several are a profile's."""
    return devices[0].name if len(devices) == 1 else ""


def _as_good_as(profile: TargetProfile) -> list[str]:
    """The profile, and the general one of its kind of processor."""
    general = _GENERAL.get("-".join(profile.halide_target.split("-")[:2]), profile.name)
    return [*dict.fromkeys([profile.name, general])]


def _told(entry: RegisteredWeights) -> str:
    training = entry.lineage.training
    known = [count_text(training.samples, "schedule")] if training.samples else []
    if training.pairwise_accuracy is not None:
        known.append(f"{share_text(training.pairwise_accuracy)} of held-out pairs in order")
    if entry.lineage.clock == Clock.SIMULATED.value:
        known.append("by a simulated clock")
    facts = f" ({', '.join(known)})" if known else ""
    return f"The search starts from the weights {entry.name}{facts}; --weights {BASELINE_WEIGHTS} starts from Halide's."
