"""What is done in a build slot: search for schedules, generate code, link."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from halide_autotune.autotune_loop.candidate import BuiltObject, Origin, SearchedSchedule, SearchFailure, SearchPoint
from halide_autotune.autotune_loop.execute.tasks.task import BuildTask, FileKey, R_co, key_of
from halide_autotune.autotune_loop.execute.worker_state import BuildHold, WorkerState
from halide_autotune.autotune_loop.parameters.space import set_sha256
from halide_autotune.autotune_loop.schedule.apply import apply_header
from halide_autotune.autotune_loop.schedule.print_header import mend_header
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.store.featurization import read_featurization
from halide_autotune.targets.build.executable import BuildTools, Executable, KernelObject, link_executable
from halide_autotune.targets.build.kernel_sources import KernelSources
from halide_autotune.targets.cuda.device_code import run_checked_generator
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.generator.run import (
    EMITTED_SUFFIXES,
    AutoschedulerRequest,
    GeneratedFiles,
    GeneratorFailure,
    GeneratorFailureReason,
    GeneratorRequest,
    plain_folder,
)
from halide_autotune.targets.lowering.lower import described
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from halide_autotune.targets.profile.target_features import kernel_target
from halide_autotune.targets.schedule.autoschedulers import profile_autoscheduler, reference_autoschedulers
from halide_autotune.targets.schedule.header import read_schedule
from halide_autotune.targets.schedule.plugins import ALL_AT_ROOT, schedule_autoscheduler, search_only
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import read_weights, write_weights

_WITH_CODE = ("object", "schedule", "featurization")
_FROM_HEADER = ("object", "schedule")
NEST_NAME = "schedule.nest"
# Behind every autoscheduler: the own schedule is a reference where nothing independent runs.
_OWN_POSITION = 99
_OWN_REFERENCE = ("object", "schedule", "stmt")
# Of a lowered statement: types and constants.
_FLOAT = re.compile(r"\bb?float(16|32|64)|[0-9]\.[0-9]+(e[+-]?[0-9]+)?[fh]?\b")


@dataclass(frozen=True)
class BuiltReference:
    """The independent schedule that outputs are compared with.

    Attributes:
        autoscheduler: which one made it.
        ships: its schedule header can be shipped, after what Halide 21 leaves out of it is added.
        position: its place among those that may.
        duration_s: what building it took.
        uses_float: whether it computes with floats; None if nobody has looked.
    """

    autoscheduler: str
    kernel: KernelObject
    schedule_path: Path
    ships: bool
    position: int
    duration_s: float
    uses_float: bool | None = None

    @property
    def title(self) -> str:
        """What messages call it."""
        return reference_title(self.autoscheduler)

    @property
    def is_plain(self) -> bool:
        """Whether it is in plain loops, which the other autoschedulers' are independent of."""
        return self.autoscheduler == ALL_AT_ROOT


@dataclass(frozen=True)
class GeneratorTask(BuildTask[R_co]):
    """Runs a generator.

    Attributes:
        task_index: the place of its pipeline among the run's tuning tasks.
    """

    task_index: int

    def apply(
        self,
        state: WorkerState,
        choice: AutoschedulerRequest | None,
        symbol: str,
        emit: tuple[str, ...] = _FROM_HEADER,
    ) -> GeneratedFiles | GeneratorFailure:
        """Generate the code of a schedule that needs no search; None is the generator's own."""
        with state.building() as hold:
            return self._generate(state, choice, symbol, emit, "reference_s", hold)

    def _values(self) -> Mapping[str, str]:
        """Of parameters that are tuned."""
        return {}

    def _prepared_as(self, task: TuningTask) -> TuningTask:
        """The task whose estimates the pipeline gets."""
        return task

    def _features(self) -> tuple[str, ...]:
        """Of Halide's target, beside the profile's."""
        return ()

    def _limit_s(self, state: WorkerState, step: str) -> float:
        """How long the generator may run."""
        limit_s: float = getattr(state.context.limits, step)
        return limit_s

    def _generate(
        self,
        state: WorkerState,
        autoscheduler: AutoschedulerRequest | None,
        symbol: str,
        emit: tuple[str, ...],
        step: str,
        hold: BuildHold,
    ) -> GeneratedFiles | GeneratorFailure:
        """Run the generator within the limit of that name."""
        context = state.context
        task = context.tasks[self.task_index]
        request = GeneratorRequest(
            generator_name=task.generator_name,
            function_name=symbol,
            base_name=context.sample_file_name,
            output_folder=self.output_folder,
            emit=emit,
            # The runtime is linked once, beside the kernels.
            halide_target="-".join((kernel_target(context.profile.halide_target), *self._features())),
            parameters={**task.parameters, **self._values()},
            autoscheduler=None if autoscheduler is None else state.prepared(self._prepared_as(task), autoscheduler),
        )
        time_s = self._limit_s(state, step)
        limits = ProcessLimits(time_s, context.limits.memory_bytes, context.workspace.cores.build, hold.pause)
        made = run_checked_generator(state.program(task.reference), request, limits, state.card_check, hold.stop)
        is_of_step = time_s == getattr(context.limits, step)  # else it follows from what others took
        if is_of_step and isinstance(made, GeneratorFailure) and made.reason is GeneratorFailureReason.TIMED_OUT:
            return replace(made, message=made.message + context.limits.advice(step))
        return made


@dataclass(frozen=True)
class _SearchTask(GeneratorTask[R_co]):
    """Runs the autoscheduler's search."""

    point: SearchPoint

    def _values(self) -> Mapping[str, str]:
        return self.point.values

    def _identity(self, state: WorkerState, featurization: Path) -> str:
        """By which a schedule is known: of its features, and of the parameters that it was found with."""
        sha256 = read_featurization(featurization, state.context.network).schedule_sha256
        return set_sha256({"": sha256, **self.point.values}) if self.point.values else sha256

    def inputs(self) -> dict[Path, FileKey]:
        """See `Task.inputs`."""
        return {self.point.weights_path: key_of(self.point.weights_path)}

    def _search(
        self,
        state: WorkerState,
        symbol: str,
        emit: tuple[str, ...],
        *,
        explains: bool = False,
        describes: bool = False,
    ) -> GeneratedFiles | GeneratorFailure:
        context, point, folder = state.context, self.point, self.output_folder
        with state.building() as hold:
            folder.mkdir(parents=True, exist_ok=True)
            weights_path = point.weights_path
            if point.weights_noise > 0:
                weights_path = folder / "noisy.weights"
                noisy = perturb_weights(read_weights(point.weights_path), point.weights_noise, point.seed)
                write_weights(noisy, weights_path)
            step = "full_search_s" if point.origin is Origin.FULL_BEAM else "search_s"
            with plain_folder(weights_path.parent) as weights_folder, plain_folder(folder) as output_folder:
                parameters = {
                    "beam_size": str(point.beam_size),
                    "random_dropout": str(point.random_dropout),
                    "random_dropout_seed": str(point.seed),
                    "weights_path": str(weights_folder / weights_path.name),
                }
                if point.origin is Origin.RANDOM and context.network is Network.ANDERSON2021:
                    # Dropout alone gives the same few schedules again and again, at several times the cost.
                    parameters["randomize_tilings"] = "1"
                autoscheduler = profile_autoscheduler(state.halide, context.profile, context.parallelism, parameters)
                if emit == ("featurization",) and state.search_plugin is not None:
                    path = output_folder / (context.sample_file_name + EMITTED_SUFFIXES["featurization"])
                    autoscheduler = search_only(autoscheduler, state.search_plugin, path, explains=explains)
                if describes:
                    autoscheduler = described(autoscheduler, output_folder / NEST_NAME, state.compiler)
                return self._generate(state, autoscheduler, symbol, emit, step, hold)


@dataclass(frozen=True)
class Search(_SearchTask[SearchedSchedule | SearchFailure], kind="search"):
    """Sample one schedule.

    Attributes:
        symbol: its code is generated at once under this name, for a search that would be too dear to repeat; empty for
            none.
        explains: log where it comes to a dead end; for a search without code.
        tells_schedule: give the schedule as well, for which Halide lowers it; for a search without code.
        describes: its loop nest is written, too; for a search with code.
    """

    symbol: str = ""
    explains: bool = False
    tells_schedule: bool = False
    describes: bool = False

    def run(self, state: WorkerState) -> SearchedSchedule | SearchFailure:
        """See `Task.run`."""
        told = ("featurization", "schedule") if self.tells_schedule else ("featurization",)
        emit = _WITH_CODE if self.symbol else told
        generated = self._search(state, self.symbol or "search", emit, explains=self.explains, describes=self.describes)
        if isinstance(generated, GeneratorFailure):
            shutil.rmtree(self.output_folder, ignore_errors=True)
            return SearchFailure(self.point, generated)
        path = generated.files["featurization"]
        sha256 = self._identity(state, path)
        built = built_object(self.symbol, generated, written_nest(self.output_folder)) if self.symbol else None
        schedule = generated.files.get("schedule") if self.tells_schedule else None
        return SearchedSchedule(self.point, self.output_folder, path, sha256, generated.duration_s, built, schedule)


@dataclass(frozen=True)
class BuildObject(_SearchTask[BuiltObject | GeneratorFailure], kind="build_object"):
    """Generate a candidate's code by repeating its search, and make sure that it is the same schedule.

    Attributes:
        describes: its loop nest is written, too.
    """

    symbol: str
    schedule_sha256: str
    describes: bool = False

    def run(self, state: WorkerState) -> BuiltObject | GeneratorFailure:
        """See `Task.run`."""
        generated = self._search(state, self.symbol, _WITH_CODE, describes=self.describes)
        if isinstance(generated, GeneratorFailure):
            shutil.rmtree(self.output_folder, ignore_errors=True)
            return generated
        again = self._identity(state, generated.files["featurization"])
        if again != self.schedule_sha256:
            shutil.rmtree(self.output_folder, ignore_errors=True)
            message = "The search gave another schedule when it was repeated with the same seed."
            return GeneratorFailure(GeneratorFailureReason.FAILED, message, "", generated.duration_s)
        return built_object(self.symbol, generated, written_nest(self.output_folder))


@dataclass(frozen=True)
class HasHvxFloats(_SearchTask[bool | GeneratorFailure], kind="has_hvx_floats"):
    """Compile one schedule for Hexagon; returns whether it has HVX's instructions for floats."""

    def run(self, state: WorkerState) -> bool | GeneratorFailure:
        """See `Task.run`."""
        generated = self._search(state, "floats_probe", ("object", "assembly"))
        try:
            if isinstance(generated, GeneratorFailure):
                return generated
            assembly = generated.files["assembly"].read_text(encoding="utf-8", errors="replace")
            return re.search(r"\.(qf16|qf32|hf|sf)\b", assembly) is not None
        finally:
            shutil.rmtree(self.output_folder, ignore_errors=True)


def reference_title(autoscheduler: str) -> str:
    """What messages call a reference, as in "Mullapudi2016's schedule"."""
    whose = "the generator's own" if autoscheduler == OWN_SCHEDULE else f"{autoscheduler}'s"
    return f"{whose} schedule"


@dataclass(frozen=True)
class BuildReference(GeneratorTask[BuiltReference | GeneratorFailure | None], kind="build_reference"):
    """Build an independent schedule that ends: Mullapudi2016's, else Li2018's, else all at root.

    All at root is the first where vectors are in doubt; behind all of them comes the generator's own. Where parameters
    are tuned, it is the generator's own schedule with its default parameters.

    Attributes:
        skip: leaves out so many of these; the result is None when that leaves none.
    """

    symbol: str
    skip: int = 0

    def run(self, state: WorkerState) -> BuiltReference | GeneratorFailure | None:
        """See `Task.run`."""
        context = state.context
        if context.tasks[self.task_index].space is not None:
            return None if self.skip else self._own(state, 0)
        choices = reference_autoschedulers(state.halide, context.parallelism, context.profile, state.compiler)
        first_failure: GeneratorFailure | None = None
        for position, choice in enumerate(choices):
            if position < self.skip:
                continue
            generated = self.apply(state, choice, self.symbol)
            if isinstance(generated, GeneratedFiles):
                kernel = KernelObject(self.symbol, generated.files["object"])
                header = generated.files["schedule"]
                ships = _ships(state, header)
                return BuiltReference(choice.name, kernel, header, ships, position, generated.duration_s)
            first_failure = first_failure or generated
            if generated.reason.concerns_every_candidate or generated.reason is GeneratorFailureReason.STOPPED:
                break
        if context.tasks[self.task_index].schedules_itself and self.skip <= _OWN_POSITION:
            own = self._own(state, _OWN_POSITION)
            return own if isinstance(own, BuiltReference) else first_failure or own
        return first_failure

    def _own(self, state: WorkerState, position: int) -> BuiltReference | GeneratorFailure:
        generated = self.apply(state, None, self.symbol, _OWN_REFERENCE)
        if isinstance(generated, GeneratorFailure):
            return generated
        statement = generated.files["stmt"].read_text(encoding="utf-8", errors="replace")
        generated.files["stmt"].unlink()  # it can be large, and is not to travel over a farm
        return BuiltReference(
            autoscheduler=OWN_SCHEDULE,
            kernel=KernelObject(self.symbol, generated.files["object"]),
            schedule_path=generated.files["schedule"],
            ships=False,
            position=position,
            duration_s=generated.duration_s,
            uses_float=_FLOAT.search(statement) is not None,
        )


@dataclass(frozen=True)
class BuildWithHeader(GeneratorTask[BuiltObject | GeneratorFailure | SdkError], kind="build_with_header"):
    """Generate the code that a schedule header gives.

    Attributes:
        values: of the tuned parameters that it belongs to.
    """

    symbol: str
    header_text: str
    values: Mapping[str, str] = field(default_factory=dict)

    def _values(self) -> Mapping[str, str]:
        return self.values

    def run(self, state: WorkerState) -> BuiltObject | GeneratorFailure | SdkError:
        """See `Task.run`."""
        try:
            text = mend_header(self.header_text, state.context.sample_file_name)
            choice = apply_header(text, state.compiler, state.cache)
        except SdkError as error:
            return error
        generated = self.apply(state, choice, self.symbol)
        return generated if isinstance(generated, GeneratorFailure) else built_object(self.symbol, generated)


@dataclass(frozen=True)
class Link(BuildTask[Executable], kind="link"):
    """Link kernels, the runner and Halide's runtime into one executable."""

    runs_here = True

    file_name: str
    kernels: tuple[KernelObject, ...]

    def run(self, state: WorkerState) -> Executable:
        """See `Task.run`.

        Raises:
            SdkError: they cannot be linked, or the link is interrupted.
        """
        with state.building() as hold:
            called = KernelSources.of(*(task.reference.build for task in state.context.tasks))
            tools = BuildTools(state.halide, state.cache, state.toolchain, called)
            output = self.output_folder / self.file_name
            return link_executable(self.kernels, state.context.profile.halide_target, tools, output, hold.stop)


def built_object(symbol: str, generated: GeneratedFiles, nest_path: Path | None = None) -> BuiltObject:
    """What a generator has made for a kernel."""
    return BuiltObject(symbol, generated.files["object"], generated.files["schedule"], generated.duration_s, nest_path)


def written_nest(output_folder: Path) -> Path | None:
    """The loop nest that a generator has written into a folder, if it has."""
    path = output_folder / NEST_NAME
    return path if path.is_file() else None


def _ships(state: WorkerState, header: Path) -> bool:
    """Whether a schedule header may win: it compiles (a compiler must be there to tell), and on a GPU uses it."""
    if state.context.profile.machine.gpu is not None and ".gpu_" not in header.read_text():
        return False
    try:
        with state.building():
            schedule_autoscheduler(mend_header(read_schedule(header), state.context.sample_file_name), state.compiler)
    except SdkError:
        return False
    return True
