"""A schedule on its way through a run: searched, chosen as a candidate, built, measured, trained on."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from halide_autotune.autotune_loop.run_scale import DISTURBED_NOISE, RunScale, process_error
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.devices.timing.measurement_at_sizes import medians_by_size_s
from halide_autotune.targets.build.executable import Executable, KernelObject
from halide_autotune.targets.generator.run import GeneratorFailure

# Each change of the yardstick adds an error to the run's scale: a little faster is not worth it.
_FASTER = 0.9


class Origin(Enum):
    """What found a schedule, or a set of parameters."""

    FULL_BEAM = "full beam search"
    GREEDY = "greedy search"
    RANDOM = "random search"
    DEFAULT_PARAMETERS = "default parameters"
    PARAMETERS = "parameter search"
    OWN_SCHEDULE = "own schedule"
    INCUMBENT = "incumbent"
    HISTORY = "history"
    SKETCH = "sketch"
    EVOLUTION = "evolution"
    ANNEALING = "annealing"
    PATTERN = "pattern search"
    PLUG_IN = "plug-in"

    @property
    def gives_default(self) -> bool:
        """Whether the first round's is what a user gets without tuning."""
        return self in (Origin.FULL_BEAM, Origin.GREEDY, Origin.DEFAULT_PARAMETERS)


# Of the schedules that techniques make as data, as samples are that had to be edited; those of packages are plug-ins'.
ORIGINS: Mapping[str, Origin] = {
    TechniqueName.SAMPLING: Origin.RANDOM,
    TechniqueName.SKETCHES: Origin.SKETCH,
    TechniqueName.EVOLUTION: Origin.EVOLUTION,
    TechniqueName.ANNEALING: Origin.ANNEALING,
    TechniqueName.PATTERN: Origin.PATTERN,
}


@dataclass(frozen=True)
class SearchPoint:
    """Everything that decides what the autoscheduler returns, beside the generator: equal points give equal schedules.

    Attributes:
        seed: of the dropout and of the weights' noise.
        beam_size: states kept by the beam search.
        random_dropout: chance in percent that nothing at all is dropped; 100 is no dropout.
        weights_path: the cost model that guides the search.
        weights_noise: relative noise added to those weights (standard deviation), 0 for none.
        values: of the tuned parameters; empty where none are tuned.
    """

    origin: Origin
    seed: int
    beam_size: int
    random_dropout: int
    weights_path: Path
    weights_noise: float = 0.0
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ParameterPoint:
    """The generator's own schedule with values of its tuned parameters.

    Attributes:
        values: of every tuned parameter.
    """

    origin: Origin
    values: Mapping[str, str]


@dataclass(frozen=True)
class SchedulePoint:
    """A schedule that was made as data.

    Attributes:
        parents: symbols of the candidates that it was made from; none for one that was made from nothing.
        moves: what was changed, in order; of a sketch its name.
        values: of the tuned parameters; empty where none are tuned.
        plug_in: the technique that made it, if that is one of a plug-in.
    """

    origin: Origin
    parents: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    plug_in: str = ""


Point = SearchPoint | ParameterPoint | SchedulePoint


def technique_of(point: Point) -> str:
    """The name of the technique that found a schedule."""
    if not isinstance(point, SchedulePoint):
        return TechniqueName.SAMPLING
    built_in = (name for name, origin in ORIGINS.items() if origin is point.origin)
    return point.plug_in or next(built_in, TechniqueName.SKETCHES)


def found_by(point: Point) -> str:
    """What found a schedule, as all outputs tell it: a technique by the name that `--technique` takes.

    So a sample of Halide's search, which a model has chosen, is none of a random search.
    """
    if point.origin is Origin.RANDOM or point.origin is Origin.PLUG_IN or point.origin in ORIGINS.values():
        return technique_of(point)
    return str(point.origin.value)


@dataclass(frozen=True)
class BuiltObject:
    """A kernel's object file, and the schedule header that Halide emitted with it, if it did.

    Attributes:
        nest_path: its loop nest, as `targets.lowering.lower.read_nest` reads it, if that was asked for.
    """

    symbol: str
    object_path: Path
    schedule_path: Path | None
    duration_s: float
    nest_path: Path | None = None


@dataclass(frozen=True)
class SearchedSchedule:
    """A schedule before any code is generated for it.

    Attributes:
        schedule_sha256: hash of the schedule's features; equal ones count as duplicates.
        built: its code, if the search takes too long to be repeated for it.
        schedule_path: the schedule itself, if that was asked for.
    """

    point: SearchPoint
    folder: Path
    featurization_path: Path
    schedule_sha256: str
    duration_s: float
    built: BuiltObject | None = None
    schedule_path: Path | None = None


@dataclass(frozen=True)
class SearchFailure:
    """A search that gave no schedule."""

    point: SearchPoint
    failure: GeneratorFailure


@dataclass(frozen=True)
class Candidate:
    """A schedule, or a set of parameters, that was chosen for a batch.

    Attributes:
        symbol: the C symbol of its kernel, unique in the run.
        schedule_sha256: by which duplicates are known: of the schedule's features, of the schedule itself where it was
            made as data, or of the parameters' values.
        search_s: how long its search took.
        predicted_ms: what the model expected when it was chosen; None if it was not asked.
    """

    round_index: int
    task_index: int
    sample_index: int
    symbol: str
    point: Point
    schedule_sha256: str
    search_s: float
    predicted_ms: float | None = None

    @property
    def sample(self) -> str:
        """Its name, and its folder below samples/: batch_<round>_<argset>/<sample>."""
        return sample_name(self.round_index, self.task_index, self.sample_index)

    @property
    def is_default(self) -> bool:
        """Whether it is the schedule that a user gets without tuning."""
        return is_default(self.round_index, self.point.origin)

    @property
    def has_features(self) -> bool:
        """Whether the cost model can learn from it: Halide's own search made it."""
        return isinstance(self.point, SearchPoint)

    @property
    def is_parameter_set(self) -> bool:
        """Whether it is the generator's own schedule with other parameters."""
        return isinstance(self.point, ParameterPoint)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The values of the tuned parameters; empty where none are tuned."""
        return self.point.values

    @property
    def seed(self) -> int | None:
        """Of its search; None without one."""
        return self.point.seed if isinstance(self.point, SearchPoint) else None


def sample_name(round_index: int, task_index: int, sample_index: int) -> str:
    """What a candidate is called, as in Halide's layout of samples."""
    return f"batch_{round_index}_{task_index}/{sample_index}"


def kernel_symbol(function_name: str, round_index: int, task_index: int, sample_index: int) -> str:
    """The C symbol of a candidate's kernel, unique in the run."""
    return f"{function_name}_r{round_index}_a{task_index}_s{sample_index}"


def task_of(symbol: str) -> int | None:
    """The place among the run's argument sets of the one that a kernel is for: a candidate's, or a reference's."""
    found = re.search(r"_a(\d+)(?:_s\d+)?$", symbol)
    return None if found is None else int(found[1])


def is_default(round_index: int, origin: Origin) -> bool:
    """Whether a candidate is the schedule that a user gets without tuning."""
    return round_index == 0 and origin.gives_default


@dataclass(frozen=True)
class Built:
    """A candidate with its code."""

    candidate: Candidate
    kernel: KernelObject


@dataclass(frozen=True)
class Placement:
    """What a timing beside a yardstick says.

    Attributes:
        relative: the schedule's time as a multiple of the reference's.
        reference_ms: what the reference takes at that moment, on that device; None if other load disturbed the timing,
            which changes the ratio of two kernels.
    """

    relative: float
    reference_ms: float | None

    @property
    def is_disturbed(self) -> bool:
        """Whether the ratio may be far off."""
        return self.reference_ms is None


@dataclass(frozen=True)
class Yardstick:
    """The schedule that others are timed beside, which tells their times from the moment at which they were timed.

    The first is the reference. Each later one was the best schedule, timed beside the one before it, so that all times
    of a run are multiples of the reference's. Such a time is taken once more, after the schedule was found to be the
    best: else the luck by which each was chosen would add up along the chain.

    Attributes:
        relative: its time as a multiple of the reference's.
        log_error: standard error of the logarithm of that, along the chain of ratios from the reference.
    """

    kernel: KernelObject
    scale: RunScale
    relative: float = 1.0
    log_error: float = 0.0

    @property
    def time_ms(self) -> float:
        """What it takes, on the run's scale."""
        return self.scale.time_ms(self.relative)

    def is_outdone_by(self, time_ms: float) -> bool:
        """Whether a schedule that takes so long, on the run's scale, is much faster, and the better yardstick."""
        return time_ms <= _FASTER * self.time_ms

    def place(self, measurement: Measurement) -> Placement | None:
        """What a measurement beside this yardstick says; None for one of a kernel that was timed alone."""
        if measurement.ratio is None or measurement.beside_median_s is None:
            return None
        reference_ms = measurement.beside_median_s * 1e3 / self.relative
        relative = self.relative * measurement.ratio
        slow_down = self.scale.slow_down(reference_ms * measurement.factor)
        # In kernels that take long some thread loses its core in most repetitions, on a quiet machine as well.
        if not measurement.is_disturbed or slow_down == 1.0:
            return Placement(relative, reference_ms)
        # Where cores are shared, calls of a few milliseconds and more are slowed down; shorter ones fit between the
        # turns of the others. How much of the yardstick's slow-down this kernel has had, nobody knows.
        return Placement(relative * math.sqrt(slow_down), None)


@dataclass(frozen=True)
class BuiltBatch:
    """A batch that is ready to be pushed.

    Attributes:
        candidates: those in the executable, the full beam search's first.
        yardstick: what they are timed beside, in the same executable; None times each alone.
        executable: None when nothing could be built.
        exhausted: the searches found no new schedule.
        failed: candidates that could not be built.
        full_search_s: how long the full beam search took; None when there was none or it failed.
        stages_s: seconds by stage.
    """

    round_index: int
    task_index: int
    candidates: tuple[Candidate, ...]
    executable: Executable | None
    exhausted: bool
    failed: int
    full_search_s: float | None
    stages_s: dict[str, float]
    yardstick: Yardstick | None = None


@dataclass(frozen=True)
class Measured:
    """A candidate with its time as a sample.

    Attributes:
        median_ms, spread_ms: on the run's scale.
        clock: what the time was measured with.
        canary_s: times of the device's canary before and after.
        at_unix_s: when the time was recorded.
        processes: how many processes the time is the mean of.
        is_relative: it was timed beside a yardstick.
        is_disturbed: other load disturbed the timing, so that its ratio may be far off.
        by_size_ms: size → what it took there; empty if there is one size.
        is_timed_anew: all of these processes came after it was found to be the best.
    """

    candidate: Candidate
    median_ms: float
    spread_ms: float
    clock: str
    device: str = ""
    canary_s: tuple[float, ...] = ()
    at_unix_s: float = 0.0
    processes: int = 1
    is_relative: bool = False
    is_disturbed: bool = False
    by_size_ms: Mapping[str, float] = field(default_factory=dict)
    is_timed_anew: bool = False

    @property
    def log_error(self) -> float:
        """Standard error of the logarithm of its ratio to the yardstick; 0 if it was timed alone."""
        if not self.is_relative:
            return 0.0
        return DISTURBED_NOISE if self.is_disturbed else process_error(self.processes)

    @classmethod
    def of(cls, candidate: Candidate, measurement: Measurement, paired_ms: float | None) -> Measured:
        """A candidate with its measurement.

        Args:
            paired_ms: its time on the run's scale if it was timed beside a yardstick.
        """
        median_ms = measurement.comparable_median_s * 1e3 if paired_ms is None else paired_ms
        return cls(
            candidate,
            median_ms=median_ms,
            spread_ms=measurement.spread_s / measurement.median_s * median_ms,
            clock=measurement.clock.value,
            device=measurement.device,
            canary_s=tuple(measurement.canary_s),
            is_relative=paired_ms is not None,
            by_size_ms={
                size: measurement.factor * time_s * 1e3 for size, time_s in medians_by_size_s(measurement).items()
            },
        )


def mean_by_size_ms(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Size → the time of a schedule there from several processes; there is at least one."""
    return {size: mean_ms(by_size_ms[size] for by_size_ms in several) for size in several[0]}


def mean_ms(times_ms: Iterable[float]) -> float:
    """The time of a schedule from several processes: their geometric mean, since noise multiplies."""
    return math.exp(statistics.fmean(map(math.log, times_ms)))


@dataclass(frozen=True)
class TrainingSample:
    """A measured candidate that the cost model learns from.

    Attributes:
        featurization_path: its `.featurization` file; must exist until the sample was added.
        pipeline_id: schedules are compared within one id. Use different ids for one pipeline at several sizes: its
            features do not tell them apart.
    """

    measured: Measured
    featurization_path: Path
    pipeline_id: int
