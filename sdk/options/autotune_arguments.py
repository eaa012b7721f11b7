"""What `sdk autotune` is given on the command line, as it is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autotune_loop.farm.fair_share import RunPriority
from autotune_loop.specification.objective import Objective
from autotune_loop.specification.tune_request import LearningOptions, SamplingOptions, TuneRequest

_SAMPLING = SamplingOptions()
_LEARNING = LearningOptions()


@dataclass(frozen=True)
class AutotuneArguments:
    """One field for each parameter of the command, under the same name."""

    generator: list[str] | None = None
    target: str | None = None
    parameters: list[str] | None = None
    generator_arg_sets: str | None = None
    function_name: str | None = None
    size: list[str] | None = None
    scalar: list[str] | None = None
    input: list[str] | None = None
    input_seed: int = 0
    device: list[str] | None = None
    inventory: Path | None = None
    device_patience: str = "10m"
    scheduler: str | None = None
    farm_certificates: Path | None = None
    priority: str = RunPriority.NORMAL.value
    clock: str | None = None
    hexagon_sdk_root: Path | None = None
    parallelism: int | None = None
    num_batches: int = TuneRequest.rounds
    batch_size: int = _SAMPLING.batch_size
    budget: str | None = None
    incumbent: list[str] | None = None
    objective: str | None = None
    device_weight: list[str] | None = None
    worst_tolerance: float = Objective.worst_tolerance
    play_off_turns: int = TuneRequest.play_off_turns
    run_dir: Path | None = None
    resume: bool = False
    replay: Path | None = None
    seed: int = _SAMPLING.seed
    weights: str | None = None
    loss: str = _LEARNING.loss
    epochs: int = _LEARNING.epochs
    learning_rate: float = _LEARNING.learning_rate
    pool_factor: float = _SAMPLING.pool_factor
    random_share: float = _SAMPLING.random_share
    diversity: float = _SAMPLING.diversity
    jobs: int | None = None
    search_limit: str = "60s"
    full_search_limit: str | None = None
    memory_limit: str | None = None
    as_json: bool = False
    quiet: bool = False
    plain: bool = False


DEFAULTS = AutotuneArguments()
