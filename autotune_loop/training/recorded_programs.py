"""What iterations have timed of their random programs."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.candidate import Measured
from halide_autotune.autotune_loop.lowered.features import NestFeatures, features_of_nest
from halide_autotune.autotune_loop.lowered.lowered_file import read_lowered
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.specification.tuning_task import sample_file_name
from halide_autotune.autotune_loop.store.sample_file import Sample, read_sample
from halide_autotune.autotune_loop.training.programs import is_judged_by
from halide_autotune.targets.errors import GeneratorError, WeightsError
from halide_autotune.weights.network import Network


@dataclass(frozen=True)
class RecordedProgram:
    """What was timed of one program.

    Attributes:
        seed: the program's.
        timed: how many schedules.
        samples: what Halide's search found, as its cost model sees it.
        nests: the loop nests of what was lowered.
        times_ms: of each of them.
    """

    seed: int
    timed: int
    samples: tuple[Sample, ...]
    nests: tuple[NestFeatures, ...]
    times_ms: tuple[float, ...]

    @property
    def judges(self) -> bool:
        """Whether nothing is learnt from it."""
        return is_judged_by(self.seed)


def recorded_programs(runs: Sequence[Path], network: Network) -> list[RecordedProgram]:
    """Of each program of which anything was timed; files that are missing or damaged are left out.

    Args:
        runs: the folders of the iterations' runs.

    Raises:
        RunFolderError: a folder holds no run, or is damaged.
    """
    return [program for run in runs for program in _of_run(run, network)]


def _of_run(folder: Path, network: Network) -> list[RecordedProgram]:
    run = read_recorded_run(folder)
    tasks, name = run.record.spec.tasks, sample_file_name(run.record.spec.tasks)
    timed: dict[int, list[Measured]] = defaultdict(list)
    for measured in run.samples:
        timed[measured.candidate.task_index].append(measured)
    found = []
    for index, measured_here in sorted(timed.items()):
        samples, nests, times_ms = [], [], []
        for measured in measured_here:
            file = folder / "samples" / measured.candidate.sample / name
            with contextlib.suppress(WeightsError):  # a lost or damaged file is one sample fewer
                if measured.candidate.has_features:
                    samples.append(read_sample(file.with_suffix(".sample"), network))
            with contextlib.suppress(OSError, GeneratorError):  # here, too
                nests.append(features_of_nest(read_lowered(file.with_suffix(".lowered")), run.record.spec.parallelism))
                times_ms.append(measured.median_ms)
        seed = int(tasks[index].parameters["seed"])
        found.append(RecordedProgram(seed, len(measured_here), tuple(samples), tuple(nests), tuple(times_ms)))
    return found
