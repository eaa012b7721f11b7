"""`sdk.train_weights`: weights for a kind of device, from random programs that are timed on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from halide_autotune.autotune_loop.cost_model.process.model_process import tensorflow_environment
from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import Listener, ignore
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.run.result import Outcome
from halide_autotune.autotune_loop.search.techniques.nest_prior import read_prior, write_prior
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_record import FILE_NAME as RUN_FILE_NAME
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.autotune_loop.training.lowered_samples import LoweringTools, lower_samples
from halide_autotune.autotune_loop.training.programs import PROGRAM_FILE, program_sets
from halide_autotune.autotune_loop.training.recorded_programs import RecordedProgram, recorded_programs
from halide_autotune.autotune_loop.training.trained_weights import Scores, TrainedWeights, counts_of
from halide_autotune.autotune_loop.training.training_folder import (
    TrainingFolder,
    TrainingRecord,
    begin_training,
    open_training,
)
from halide_autotune.autotune_loop.training.training_options import TrainingOptions
from halide_autotune.sdk.api.tuned_run import Call, devices_of_run, tune_further, tune_new
from halide_autotune.sdk.inventory.lookup import open_inventory
from halide_autotune.sdk.options.generator_spec import GeneratorSpec
from halide_autotune.sdk.output import silent_stderr
from halide_autotune.sdk.project.preparation import open_workbench
from halide_autotune.sdk.select.chosen_devices import DEFAULT_TARGET
from halide_autotune.sdk.select.device_choice import profile_of_devices
from halide_autotune.sdk.select.named_weights import find_weights, open_registry
from halide_autotune.sdk.settings import Settings, export_variables, read_settings
from halide_autotune.targets.errors import (
    BudgetError,
    DeviceError,
    GeneratorError,
    RunFolderError,
    UsageError,
)
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.process.file_lock import file_lock
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import BASELINE_WEIGHTS, TargetProfile
from halide_autotune.weights.lineage import Lineage, Training, write_lineage
from halide_autotune.weights.network import Network
from halide_autotune.weights.registry import nest_prior_beside
from halide_autotune.weights.weights_file import read_weights, weights_sha256, write_weights

_REAL_SIZE_PX, _EMULATED_SIZE_PX = (1024, 768), (256, 192)
# An iteration that has less time than this times nothing.
_SHORTEST_ITERATION_S = 30.0
# So many in a row that fail say that something else is wrong than a program.
_MOST_FAILURES = 3
_SAMPLED = (TechniqueName.SAMPLING.value, TechniqueName.SKETCHES.value)
_NOTE = "random programs (sdk weights train); scores are of programs that were never trained on"


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
    than Halide's are kept under the profile's name, and searches for it start from them.

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
        return _Session(training, settings, listen, tell, stop, deadline).run()


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
    choice = devices_of_run(_run_options(options), "random programs", settings, listen).choice
    clock = choice.devices[0].clock
    width_px, height_px = options.programs.size_px or (_REAL_SIZE_PX if clock.is_device_time else _EMULATED_SIZE_PX)
    return begin_training(folder, TrainingRecord(choice.profile.name, clock.value, width_px, height_px, options))


def _run_options(options: TrainingOptions) -> RunOptions:
    return RunOptions(devices=options.devices, farm=options.farm)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    try:
        with file_lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield
    except BlockingIOError as error:
        raise RunFolderError(
            f"Another process trains in {folder}.", next_step="Wait for it, or choose another folder with --run-dir."
        ) from error


@dataclass
class _Session:
    """One call of `train_weights`."""

    training: TrainingFolder
    settings: Settings
    listen: Listener
    tell: Callable[[str], None]
    stop: StopSignal
    deadline: Deadline

    def __post_init__(self) -> None:
        self._start = find_weights(BASELINE_WEIGHTS, self.settings).weights
        self._cores = 1

    def run(self) -> TrainedWeights:
        failures = 0
        while not (self.stop.is_set() or self.deadline.within(_SHORTEST_ITERATION_S)):
            iteration = self.training.iterations
            try:
                if not self._time_programs(iteration):
                    break
                failures = 0
            except BudgetError:
                break
            except GeneratorError as error:
                # One program that cannot be timed ends its iteration; what was timed before counts.
                failures += 1
                if failures == _MOST_FAILURES:
                    raise
                self.tell(f"Iteration {iteration + 1} ended early: {error.message}")
            self._learn(iteration)
        return self._result()

    def _time_programs(self, iteration: int) -> bool:
        """Time the programs of an iteration; whether it came to its end."""
        record, folder = self.training.record, self.training.run_of(iteration)
        call = Call(self.listen, self.stop, self.settings)
        left = {"budget_s": self.deadline.left_s}
        if (folder / RUN_FILE_NAME).is_file():
            _, result = tune_further(folder, left, call)
        else:
            sets = program_sets(
                record.options.programs,
                (record.width_px, record.height_px),
                iteration,
                integers_only="hvx" in load_profile(record.profile, self.settings.profile_folder).halide_target,
            )
            before = self.training.weights_after(iteration - 1) if iteration else BASELINE_WEIGHTS
            options = _run_options(record.options).with_values(
                {
                    **left,
                    "target": record.options.devices.target or record.profile,
                    "rounds": 1,
                    "batch_size": record.options.programs.batch_size,
                    "technique": _SAMPLED,
                    # Schedules of every quality: what is learnt must hold for bad ones, too.
                    "pool_factor": 1.0,
                    "random_share": 1.0,
                    # It takes as long as many schedules, and gives one.
                    "full_search_limit_s": 6.0,
                    "no_history": True,
                    "weights": str(before),
                    # The iteration trains, not its run.
                    "epochs": 1,
                    "learning_rate": 1e-9,
                }
            )
            _, result = tune_new((GeneratorSpec(str(PROGRAM_FILE), argsets=sets),), options, folder, call)
        if result.outcome is Outcome.DEVICES_LOST:
            raise DeviceError(
                "All devices were lost. Everything measured is saved.",
                next_step="Repair one, then give the same command again.",
            )
        return result.outcome is not Outcome.INTERRUPTED

    def _learn(self, iteration: int) -> None:
        self._lower(iteration)
        programs = self._programs(iteration + 1)
        from halide_autotune.autotune_loop.training.recipe import judge, teach

        with self._tensorflow():
            taught = teach(self._start, programs, self._cores)
            weights = self._start if taught is None else taught.weights
            before, after = (judge(each, programs, self._cores) for each in (self._start, weights))
        write_weights(weights, self.training.weights_after(iteration))
        if taught is None or not after.pairs:
            said = "There are too few schedules to learn from, or to judge by, so far."
        else:
            said = f"Of programs that were never trained on, {after.accuracy_text} are in order"
            said += f" (Halide's weights: {before.accuracy_text.partition(' of ')[0]})."
        self.tell(f"Iteration {iteration + 1}: {_schedules(programs)}. {said}")

    def _lower(self, iteration: int) -> None:
        """The loop nests of what was timed: a model of them learns from the same programs."""
        folder = self.training.run_of(iteration)
        if not (folder / RUN_FILE_NAME).is_file():
            return
        run, bench = read_recorded_run(folder), open_workbench(self.settings)
        tools = LoweringTools(bench.halide, bench.compiler, self.settings.environment)

        def lower(task_index: int) -> None:
            try:
                lower_samples(run, task_index, tools, self.stop)
            except GeneratorError as error:
                self.tell(error.message)

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(lower, [task.task_index for task in run.tasks]))

    def _programs(self, iterations: int) -> list[RecordedProgram]:
        runs = [*self.training.runs(iterations)]
        for run in runs[:1]:
            self._cores = read_run_record(run).spec.parallelism
        return recorded_programs(runs, self._start.network)

    @contextlib.contextmanager
    def _tensorflow(self) -> Iterator[None]:
        export_variables(tensorflow_environment({}, len(os.sched_getaffinity(0))))
        with silent_stderr():
            yield

    def _result(self) -> TrainedWeights:
        iterations = self.training.iterations
        if not iterations:
            raise BudgetError(
                f"The training in {self.training.path} has not come to the end of its first iteration.",
                next_step="Give the same command again: it goes on from here.",
            )
        from halide_autotune.autotune_loop.training.recipe import (
            are_better,
            judge,
            judge_prior,
            teach_prior,
        )

        last = self.training.weights_after(iterations - 1)
        weights, programs = read_weights(last), self._programs(iterations)
        with self._tensorflow():
            before, after = (judge(each, programs, self._cores) for each in (self._start, weights))
        shipped, prior = read_prior(), teach_prior(programs)
        scores = Scores(before, after, judge_prior(shipped, programs), judge_prior(prior, programs))
        better, counts = are_better(after, before), counts_of(programs)
        file = self.training.path / f"{self.training.record.profile}.weights"
        shutil.copyfile(last, file)
        lineage = self._lineage(scores, counts.programs, len([s for p in programs if not p.judges for s in p.samples]))
        write_lineage(lineage, file)
        nests = nest_prior_beside(file)
        if (
            prior is not None
            and scores.nests_after is not None
            and (scores.nests_before or (0.0,)) < scores.nests_after
        ):
            write_prior(prior, nests)
        else:
            nests.unlink(missing_ok=True)
        found = TrainedWeights(self.training.path, file, iterations, counts, scores, better)
        found = replace(found, nest_prior=nests if nests.is_file() else None, was_interrupted=self.stop.is_set())
        return replace(found, kept_as=self._kept(found, lineage)) if better else found

    def _lineage(self, scores: Scores, programs: int, samples: int) -> Lineage:
        return Lineage(
            profile=self.training.record.profile,
            clock=self.training.record.clock,
            parallelism=self._cores,
            network=self._start.network.value,
            halide_version=find_halide_install().version,
            parent_sha256=weights_sha256(self._start),
            training=Training(
                pipelines=programs,
                samples=samples,
                rounds=self.training.iterations,
                held_out_samples=scores.after.samples,
                pairwise_accuracy=scores.after.told_accuracy,
                best_in_top_8=scores.after.best_in_top_8,
            ),
            created=datetime.now(UTC).date().isoformat(),
            note=_NOTE,
        )

    def _kept(self, found: TrainedWeights, lineage: Lineage) -> str:
        """Keep weights by name; others that have the name, and are none of this training's, stay."""
        registry, name = open_registry(self.settings), self.training.record.profile
        held = next((entry for entry in registry.entries()[0] if entry.name == name and not entry.is_shipped), None)
        own = {weights_sha256(read_weights(path)) for path in self.training.path.glob("*.weights")}
        if held is not None and held.sha256 not in own:
            command = f"sdk weights import {found.weights} --target {name} --replace"
            self.tell(f"Other weights named {name} exist and are kept. To replace them: {command}")
            return ""
        registry.add(name, read_weights(found.weights), lineage, found.nest_prior)
        return name


def _schedules(programs: list[RecordedProgram]) -> str:
    return f"{sum(program.timed for program in programs):,} schedules of {len(programs)} programs"
