"""Whether searches find faster schedules with trained weights: what orders schedules does not always lead to them."""

from __future__ import annotations

import contextlib
import math
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path

from halide_autotune.autotune_loop.store.run_record import FILE_NAME as RUN_FILE_NAME
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.autotune_loop.training.recorded_programs import RecordedProgram, recorded_programs
from halide_autotune.sdk.api.weights.recording_runs import Batches, RecordingRuns
from halide_autotune.targets.errors import BudgetError, GeneratorError
from halide_autotune.weights.weights_file import Weights, weights_sha256, write_weights

_MOST_PROGRAMS = 8
_BATCHES = Batches((TechniqueName.SAMPLING.value,), 8)
# For the searches with either weights.
_LIMIT_S = 300.0


def search_gain(
    runs: RecordingRuns, earlier: Weights, trained: Weights, programs: Sequence[RecordedProgram]
) -> float | None:
    """How many times as fast the best schedules are that searches find with the trained weights.

    The best of the first eight of a search, in the geometric mean over up to eight programs that judge. What was timed
    with the earlier weights is kept for the next time.

    Args:
        programs: of the training; those that it learns from are left out.

    Returns:
        None if no program was timed with both, as where the user stops it.
    """
    seeds = [program.seed for program in programs if program.judges][:_MOST_PROGRAMS]
    if not seeds:
        return None
    names = [f"trial_{len(seeds)}_{weights_sha256(each)[:16]}" for each in (earlier, trained)]
    for folder in runs.training.path.glob("trial_*"):
        if folder.is_dir() and folder.name not in names:
            shutil.rmtree(folder, ignore_errors=True)
    before_ms = _best_ms(runs, earlier, seeds, names[0])
    after_ms = _best_ms(runs, trained, seeds, names[1])
    ratios = [before_ms[seed] / after_ms[seed] for seed in before_ms.keys() & after_ms.keys()]
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None


def _best_ms(runs: RecordingRuns, weights: Weights, seeds: Sequence[int], name: str) -> dict[int, float]:
    """The fastest time of each program, where there is one."""
    folder = runs.training.path / name
    found = _recorded(folder, weights)
    if len(found) == len(seeds) or runs.stop.is_set():
        return found
    file = folder.with_suffix(".weights")
    write_weights(weights, file)
    try:
        # What was timed before a program failed, or the time was over, counts.
        with contextlib.suppress(BudgetError, GeneratorError):
            runs.time(folder, seeds, str(file), _BATCHES, _LIMIT_S)
    finally:
        file.unlink(missing_ok=True)
    return _recorded(folder, weights)


def _recorded(folder: Path, weights: Weights) -> dict[int, float]:
    # A process that was killed may have left a folder without a run.
    programs = recorded_programs([folder], weights.network) if (folder / RUN_FILE_NAME).is_file() else []
    return {one.seed: min(sample.runtime_ms for sample in one.samples) for one in programs if one.samples}
