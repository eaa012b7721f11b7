"""One schedule of one generator: how it was sampled and what the search gave."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from targets.generator.run import GeneratorFailure


class Origin(Enum):
    """How a schedule was come by."""

    FULL_BEAM = "full beam search"
    GREEDY = "greedy search"
    RANDOM = "random search"
    REFERENCE = "reference"


@dataclass(frozen=True)
class SearchPoint:
    """Everything that decides what the autoscheduler returns, beside the generator: equal points give equal schedules.

    Attributes:
        origin: how the schedule is sampled.
        seed: of the dropout and of the weights' noise.
        beam_size: states kept by the beam search.
        random_dropout: chance in percent that nothing at all is dropped on the way; 100 is no dropout.
        weights_path: the cost model that guides the search.
        weights_noise: relative noise put on those weights (standard deviation), 0 for none.
    """

    origin: Origin
    seed: int
    beam_size: int
    random_dropout: int
    weights_path: Path
    weights_noise: float = 0.0


@dataclass(frozen=True)
class BuiltObject:
    """A kernel's object file, and the schedule header that Halide emitted with it."""

    symbol: str
    object_path: Path
    schedule_path: Path
    duration_s: float


@dataclass(frozen=True)
class SearchedSchedule:
    """A schedule before any code is generated for it.

    Attributes:
        schedule_sha256: hash of the schedule's features; equal ones count as duplicates.
        built: its code, when the search was too dear to be repeated for it.
    """

    point: SearchPoint
    folder: Path
    featurization_path: Path
    schedule_sha256: str
    duration_s: float
    built: BuiltObject | None = None


@dataclass(frozen=True)
class SearchFailure:
    """A search that gave no schedule."""

    point: SearchPoint
    failure: GeneratorFailure


@dataclass(frozen=True)
class Candidate:
    """A schedule that was chosen for a batch.

    Attributes:
        symbol: the C symbol of its kernel, unique in the run.
        predicted_ms: what the model expected when it was chosen; None when it was not asked.
        folder: samples/batch_<round>_<argset>/<sample>, with its featurization and, once built, its schedule.
    """

    round_index: int
    task_index: int
    sample_index: int
    symbol: str
    point: SearchPoint
    folder: Path
    featurization_path: Path
    schedule_sha256: str
    search_s: float
    predicted_ms: float | None = None
