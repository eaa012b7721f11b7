"""`sdk.train_weights`: weights for a kind of device, from random programs that are timed on it."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import Listener, ignore
from halide_autotune.autotune_loop.training.trained_weights import TrainedWeights
from halide_autotune.autotune_loop.training.training_folder import (
    TrainingFolder,
    TrainingRecord,
    begin_training,
    open_training,
)
from halide_autotune.autotune_loop.training.training_options import TrainingOptions
from halide_autotune.sdk.api.tuned_run import devices_of_run
from halide_autotune.sdk.api.weights.recording_runs import options_of_runs
from halide_autotune.sdk.api.weights.training_session import TrainingSession
from halide_autotune.sdk.inventory.lookup import open_inventory
from halide_autotune.sdk.select.chosen_devices import DEFAULT_TARGET
from halide_autotune.sdk.select.device_choice import profile_of_devices
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import RunFolderError, UsageError
from halide_autotune.targets.process.file_lock import file_lock
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.weights.network import Network

_REAL_SIZE_PX, _EMULATED_SIZE_PX = (1024, 768), (256, 192)


def train_weights(
    *,
    options: Mapping[str, object] | None = None,
    folder: Path | None = None,
    budget_s: float = 3600.0,
    listen: Listener = ignore,
    tell: Callable[[str], None] = lambda text: None,
    stop: StopSignal | None = None,
    settings: Settings | None = None,
) -> TrainedWeights:
    """Learn weights for a target from random programs: draw some, time schedules of each on the devices, train, and
    again with the new weights, until the budget is over. A training goes on where it was left.

    A fifth of the programs judge the result, and nothing is learnt from them. Weights that order their schedules better
    than the SDK's for the profile, or Halide's where it has none, are kept under the profile's name, and searches for
    it start from them; so is what is learnt of loop nests, if it orders more than what comes with the SDK.

    Args:
        options: by their keywords, such as `target`, `device` and `programs`; docs/cost-model.md lists them. What is
            timed cannot be changed while a training goes on.
        folder: where everything goes; None takes `tuned/weights-<profile>`.
        listen: called with every event of the iterations' runs, from several threads.
        tell: called with a sentence at the end of each iteration, and whatever else should be known.
        stop: set it, from any thread, to end soon; the training can go on later.

    Raises:
        SdkError: a subclass, for everything that a user can fix.
    """
    settings, stop = settings or read_settings(), stop or StopSignal()
    deadline = Deadline(time.monotonic() + budget_s)
    training = _opened(folder, options or {}, settings, listen)
    with _alone(training.path):
        return TrainingSession(training, settings, listen, tell, stop, deadline).run()


def _opened(folder: Path | None, values: Mapping[str, object], settings: Settings, listen: Listener) -> TrainingFolder:
    begun = None if folder is None else open_training(folder)
    if begun is None:
        asked = TrainingOptions.of(**values)
        profile = _profile(asked, settings)
        folder = folder or Path("tuned") / f"weights-{profile.name}"
        begun = open_training(folder) or _begun(folder, asked, settings, listen)
    options = begun.record.options.continued(values, begun.path)
    return replace(begun, record=replace(begun.record, options=options))


def _profile(options: TrainingOptions, settings: Settings) -> TargetProfile:
    inventory = open_inventory(options.devices.inventory, settings)
    named = options.devices.target or profile_of_devices(options.devices.device, inventory) or DEFAULT_TARGET
    profile = load_profile(named, settings.profile_folder)
    if profile.autoscheduler.name != Network.ADAMS2019.value:
        raise UsageError(
            f"Weights are trained for Adams2019, and {profile.name} is searched by {profile.autoscheduler.name}.",
            next_step="Choose another --target, or train on runs of your own pipelines: sdk retrain.",
        )
    return profile


def _begun(folder: Path, options: TrainingOptions, settings: Settings, listen: Listener) -> TrainingFolder:
    choice = devices_of_run(options_of_runs(options), "random programs", settings, listen).choice
    clock = choice.devices[0].clock
    width_px, height_px = options.programs.size_px or (_REAL_SIZE_PX if clock.is_device_time else _EMULATED_SIZE_PX)
    return begin_training(folder, TrainingRecord(choice.profile.name, clock.value, width_px, height_px, options))


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    try:
        with file_lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield
    except BlockingIOError as error:
        raise RunFolderError(
            f"Another process trains in {folder}.", next_step="Wait for it, or choose another folder with --run-dir."
        ) from error
