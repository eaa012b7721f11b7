"""What `sdk autotune` is given on the command line, as it is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class AutotuneArguments:
    """One field for each parameter of the command, under the same name."""

    generator: str | None = None
    target: str | None = None
    parameters: list[str] | None = None
    generator_arg_sets: str | None = None
    function_name: str | None = None
    size: list[str] | None = None
    scalar: list[str] | None = None
    input: list[str] | None = None
    input_seed: int = 0
    device: list[str] | None = None
    parallelism: int | None = None
    num_batches: int = 100
    batch_size: int = 32
    budget: str | None = None
    run_dir: Path | None = None
    resume: bool = False
    seed: int = 0
    weights: Path | None = None
    loss: str = "relative_throughput"
    epochs: int = 100
    learning_rate: float = 1e-3
    pool_factor: float = 2.0
    random_share: float = 0.15
    diversity: float = 0.5
    jobs: int | None = None
    search_limit: str = "60s"
    full_search_limit: str | None = None
    memory_limit: str | None = None
    as_json: bool = False
    quiet: bool = False
    plain: bool = False
