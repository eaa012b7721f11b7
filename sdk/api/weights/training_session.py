"""The iterations of `sdk.train_weights`, and what comes of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from halide_autotune.autotune_loop.cost_model.process.model_process import tensorflow_environment
from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import Listener
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.search.models.nest_prior import read_prior, write_prior
from halide_autotune.autotune_loop.store.run_record import FILE_NAME as RUN_FILE_NAME
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.autotune_loop.training.lowered_samples import LoweringTools, lower_samples
from halide_autotune.autotune_loop.training.programs import seeds_of
from halide_autotune.autotune_loop.training.recorded_programs import RecordedProgram, recorded_programs
from halide_autotune.autotune_loop.training.trained_weights import Scores, TrainedWeights, counts_of
from halide_autotune.autotune_loop.training.training_folder import (
    TrainingFolder,
)
from halide_autotune.sdk.api.weights.recording_runs import Batches, RecordingRuns
from halide_autotune.sdk.api.weights.search_trial import search_gain
from halide_autotune.sdk.output import silent_stderr
from halide_autotune.sdk.project.preparation import open_workbench
from halide_autotune.sdk.select.named_weights import find_weights, open_registry
from halide_autotune.sdk.settings import Settings, export_variables
from halide_autotune.targets.errors import (
    BudgetError,
    GeneratorError,
)
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.profile import BASELINE_WEIGHTS
from halide_autotune.weights.lineage import Lineage, Training, write_lineage
from halide_autotune.weights.registry import nest_prior_beside
from halide_autotune.weights.weights_file import read_weights, weights_sha256, write_weights

# An iteration that has less time than this times nothing.
_SHORTEST_ITERATION_S = 30.0
# So many in a row that fail say that something else is wrong than a program.
_MOST_FAILURES = 3
_SAMPLED = (TechniqueName.SAMPLING.value, TechniqueName.SKETCHES.value)
_JUDGED = "scores are of programs that were never trained on"
_TRAINED = f"random programs (sdk weights train); {_JUDGED}"
_SAME = f"the earlier ones: what was trained on random programs (sdk weights train) orders no more; {_JUDGED}"


@dataclass
class TrainingSession:
    """One call of `train_weights`: iterations until the budget is over, and the result.

    Attributes:
        listen: gets the events of the iterations' runs.
        tell: gets sentences.
    """

    training: TrainingFolder
    settings: Settings
    listen: Listener
    tell: Callable[[str], None]
    stop: StopSignal
    deadline: Deadline

    def __post_init__(self) -> None:
        shipped = open_registry(self.settings).shipped(self.training.record.profile)
        # What they have learnt from counts for what comes of them.
        self._before = Training() if shipped is None else shipped.lineage.training
        if shipped is None:
            self._start = find_weights(BASELINE_WEIGHTS, self.settings).weights
        else:
            self._start = read_weights(shipped.path)
        nests = None if shipped is None else nest_prior_beside(shipped.path)
        self._known_nests = read_prior(nests) if nests is not None and nests.is_file() else read_prior()
        self._recorded: dict[Path, list[RecordedProgram]] = {}
        self._runs = RecordingRuns(self.training, self.settings, self.listen, self.stop)

    def run(self) -> TrainedWeights:
        """Go on with the training.

        Raises:
            BudgetError: no iteration has come to its end yet.
            SdkError: a subclass, for everything that a user can fix.
        """
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
        options = self.training.record.options.programs
        before = str(self.training.weights_after(iteration - 1)) if iteration else BASELINE_WEIGHTS
        batches = Batches(_SAMPLED, options.batch_size)
        folder, left_s = self.training.run_of(iteration), self.deadline.left_s
        return self._runs.time(folder, seeds_of(options, iteration), before, batches, left_s)

    def _learn(self, iteration: int) -> None:
        self._lower(iteration)
        programs = self._programs(iteration + 1)
        from halide_autotune.autotune_loop.training.recipe import USUAL, judge, teach

        with self._tensorflow():
            taught = teach(self._start, programs, self._cores, USUAL)
            weights = self._start if taught is None else taught.weights
            before, after = (judge(each, programs, self._cores) for each in (self._start, weights))
        write_weights(weights, self.training.weights_after(iteration))
        if taught is None or not after.pairs:
            said = "There are too few schedules to learn from, or to judge by, so far."
        else:
            said = f"Of programs that were never trained on, {after.accuracy_text} are in order"
            said += f" (earlier weights: {before.accuracy_text.partition(' of ')[0]})."
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
        """All programs so far; an iteration that is over is read once."""
        runs = [*self.training.runs(iterations)]
        for run in runs:
            if run not in self._recorded:
                self._recorded[run] = recorded_programs([run], self._start.network)
        return [program for run in runs for program in self._recorded[run]]

    @property
    def _cores(self) -> int:
        """That all of them are timed with; 1 where none was."""
        first = next(self.training.runs(self.training.iterations + 1), None)
        return 1 if first is None else read_run_record(first).spec.parallelism

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
            is_no_slower,
            nests_are_better,
            score,
            teach,
            teach_prior,
        )

        programs = self._programs(iterations)
        self.tell(f"Training on {_schedules(programs)}, in each of the ways that are tried.")
        prior = teach_prior(programs)
        with self._tensorflow():
            taught = teach(self._start, programs, self._cores)
            trained = self._start if taught is None else taught.weights
            scores = score(self._start, trained, self._known_nests, prior, programs, self._cores)
        if are_better(scores.after, scores.before) and not self.stop.is_set():
            self.tell("Trying the trained weights in searches of programs that nothing was learnt from.")
            scores = replace(scores, search_gain=search_gain(self._runs, self._start, trained, programs))
        better = scores.search_gain is not None and is_no_slower(scores.search_gain)
        own = {weights_sha256(read_weights(path)) for path in self.training.path.glob("*.weights")}
        if better:
            write_weights(trained, self.training.weights_after(iterations - 1))
        # Where they are no better, the earlier ones stay.
        file = self.training.path / f"{self.training.record.profile}.weights"
        write_weights(trained if better else self._start, file)
        lineage = self._lineage(scores, programs, better=better)
        write_lineage(lineage, file)
        nests = nest_prior_beside(file)
        nests.unlink(missing_ok=True)
        if prior is not None and nests_are_better(scores):
            write_prior(prior, nests)
        found = TrainedWeights(
            self.training.path,
            file,
            iterations,
            counts_of(programs),
            scores,
            better,
            nest_prior=nests if nests.is_file() else None,
            was_interrupted=self.stop.is_set(),
        )
        return replace(found, kept_as=self._kept(found, lineage, own)) if better or found.nest_prior else found

    def _lineage(self, scores: Scores, programs: Sequence[RecordedProgram], *, better: bool) -> Lineage:
        learnt = [program for program in programs if not program.judges]
        ranking, before = scores.after if better else scores.before, self._before
        return Lineage(
            profile=self.training.record.profile,
            clock=self.training.record.clock,
            parallelism=self._cores,
            network=self._start.network.value,
            halide_version=find_halide_install().version,
            parent_sha256=weights_sha256(self._start),
            training=Training(
                pipelines=before.pipelines + (len(learnt) if better else 0),
                samples=before.samples + (sum(len(program.samples) for program in learnt) if better else 0),
                rounds=before.rounds + (self.training.iterations if better else 0),
                held_out_samples=ranking.samples,
                pairwise_accuracy=ranking.told_accuracy,
                best_in_top_8=ranking.best_in_top_8,
            ),
            created=datetime.now(UTC).date().isoformat(),
            note=_TRAINED if better else _SAME,
        )

    def _kept(self, found: TrainedWeights, lineage: Lineage, own: set[str]) -> str:
        """Keep weights by name; others that have the name stay.

        Args:
            own: hashes of what this training had before: that is replaced.
        """
        registry, name = open_registry(self.settings), self.training.record.profile
        held = next((entry for entry in registry.entries()[0] if entry.name == name and not entry.is_shipped), None)
        if held is not None and held.sha256 not in {*own, weights_sha256(self._start)}:
            command = f"sdk weights import {found.weights} --target {name} --replace"
            self.tell(f"Other weights named {name} exist and are kept. To replace them: {command}")
            return ""
        registry.add(name, read_weights(found.weights), lineage, found.nest_prior)
        return name


def _schedules(programs: list[RecordedProgram]) -> str:
    timed, count = sum(program.timed for program in programs), len(programs)
    return f"{timed:,} schedule{'' if timed == 1 else 's'} of {count} program{'' if count == 1 else 's'}"
