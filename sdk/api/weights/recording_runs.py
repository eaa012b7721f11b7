"""Runs of a training: they only record what random programs' schedules take, to be learnt from or judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.events import Listener
from halide_autotune.autotune_loop.run.result import Outcome
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_record import FILE_NAME as RUN_FILE_NAME
from halide_autotune.autotune_loop.training.programs import PROGRAM_FILE, program_sets
from halide_autotune.autotune_loop.training.training_folder import TrainingFolder
from halide_autotune.autotune_loop.training.training_options import TrainingOptions
from halide_autotune.sdk.api.tuned_run import Call, tune_further, tune_new
from halide_autotune.sdk.options.generator_spec import GeneratorSpec
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.loader import load_profile


@dataclass(frozen=True)
class Batches:
    """What is timed of each program.

    Attributes:
        techniques: that find the schedules.
    """

    techniques: tuple[str, ...]
    size: int


def options_of_runs(options: TrainingOptions) -> RunOptions:
    """The options that a training shares with its runs."""
    return RunOptions(devices=options.devices, farm=options.farm)


@dataclass
class RecordingRuns:
    """Times schedules of random programs on a training's devices.

    Attributes:
        listen: gets the events of the runs.
    """

    training: TrainingFolder
    settings: Settings
    listen: Listener
    stop: StopSignal

    def time(self, folder: Path, seeds: Sequence[int], weights: str, batches: Batches, budget_s: float) -> bool:
        """Time schedules of the programs, or go on with that; whether it came to its end.

        Args:
            folder: of the run.
            seeds: of the programs.
            weights: a file, or a name: what guides Halide's search.

        Raises:
            BudgetError: nothing was timed.
            SdkError: a subclass, for everything that a user can fix.
        """
        call = Call(self.listen, self.stop, self.settings, only_records=True)
        if (folder / RUN_FILE_NAME).is_file():
            _, result = tune_further(folder, {"budget_s": budget_s}, call)
        else:
            record = self.training.record
            profile = load_profile(record.profile, self.settings.profile_folder)
            size_px = (record.width_px, record.height_px)
            sets = program_sets(seeds, size_px, for_dsp="hvx" in profile.halide_target)
            options = options_of_runs(record.options).with_values(
                {
                    "budget_s": budget_s,
                    "target": record.options.devices.target or record.profile,
                    "rounds": 1,
                    "batch_size": batches.size,
                    "technique": batches.techniques,
                    # Schedules of every quality: what is learnt must hold for bad ones, too.
                    "pool_factor": 1.0,
                    "random_share": 1.0,
                    # Schedules differ by much more than this, and more of them teach more.
                    "max_time_s": 0.15,
                    "precision": 0.015,
                    "search_limit_s": 20.0,
                    "no_history": True,
                    "weights": weights,
                }
            )
            _, result = tune_new((GeneratorSpec(str(PROGRAM_FILE), argsets=sets),), options, folder, call)
        if result.outcome is Outcome.DEVICES_LOST:
            raise DeviceError(
                "All devices were lost. Everything measured is saved.",
                next_step="Repair one, then give the same command again.",
            )
        return result.outcome is not Outcome.INTERRUPTED
