"""Runs of one pipeline side by side: what they found, when, by what, and with which settings."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from halide_autotune.autotune_loop.candidate import found_by
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.report.found_by import TechniqueRow, techniques
from halide_autotune.autotune_loop.report.loops_text import shown_loops
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun, TaskSamples
from halide_autotune.autotune_loop.specification.tuning_task import published_names
from halide_autotune.autotune_loop.store.published import NOTHING, Published
from halide_autotune.targets.errors import UsageError

# Moments at which the best so far is told, as people say them.
_MOMENTS_S = (10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400)
_MOST_MOMENTS = 6


@dataclass(frozen=True)
class RunOfPipeline:
    """What one run did for a pipeline.

    Attributes:
        label: what the run is called here: its folder's name, with more of the path where names are equal.
        header: of the winner, or the parameters that were tuned; empty if it is not there.
    """

    label: str
    run: RecordedRun
    task: TaskSamples
    published: Published
    header: str

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Seconds since the start, and the fastest so far in milliseconds, wherever it changes."""
        points: list[tuple[float, float]] = []
        for sample in self.task.samples:
            if not points or sample.median_ms < points[-1][1]:
                points.append((sample.at_unix_s - self.run.start_unix_s, sample.median_ms))
        return tuple(points)

    def best_ms_after(self, elapsed_s: float) -> float | None:
        """The fastest that was timed by then; None if nothing was, or if the run had ended."""
        if elapsed_s > self.run.duration_s:
            return None
        reached = [time_ms for at_s, time_ms in self.curve if at_s <= elapsed_s]
        return reached[-1] if reached else None

    @property
    def techniques(self) -> tuple[TechniqueRow, ...]:
        """What found its schedules."""
        return techniques(self.task.samples)

    @property
    def given(self) -> str:
        """The parameters and sizes that the pipeline was given, as people say them."""
        spec = self.run.record.spec
        task = spec.tasks[self.task.task_index]
        words = {**task.parameters, **task.estimates, **spec.options.inputs.sizes}
        return " ".join(f"{name}={value}" for name, value in words.items()) or "the generator's own"

    @property
    def by_device(self) -> dict[str, tuple[int, float]]:
        """Device → how many schedules it timed, and the fastest of them in milliseconds."""
        return self.task.by_device

    @property
    def found_by(self) -> str:
        """What found the winner; what stays is called by its name."""
        found = (s for s in self.task.samples if s.candidate.symbol == self.published.symbol)
        return next((found_by(sample.candidate.point) for sample in found), self.published.sample)

    @property
    def loops(self) -> str:
        """The winner's loops, or the parameters that were tuned."""
        return shown_loops(self.header) if "apply_schedule" in self.header else set_text(self.published.parameters)


@dataclass(frozen=True)
class Comparison:
    """Runs of one pipeline.

    Attributes:
        name: of the pipeline's function.
        runs: at least two, in the order in which they were given.
    """

    name: str
    runs: tuple[RunOfPipeline, ...]

    @cached_property
    def why_not_compared(self) -> str:
        """Why times of one run say nothing about another's; empty if they do."""
        clocks = {one.run.clock for one in self.runs}
        if len(clocks) > 1:
            return f"The times were measured with different clocks: {', '.join(sorted(clocks))}."
        devices = {one.run.record.made_with.devices for one in self.runs}
        if len(devices) > 1:
            return f"The times are of different devices: {'; '.join(', '.join(names) for names in sorted(devices))}."
        targets = {one.run.record.spec.profile.halide_target for one in self.runs}
        if len(targets) > 1:
            return f"The runs are for different targets: {', '.join(sorted(targets))}."
        given = {one.given for one in self.runs}
        return f"The runs have different parameters or sizes: {'; '.join(sorted(given))}." if len(given) > 1 else ""

    @property
    def moments_s(self) -> tuple[float, ...]:
        """The last few moments that the longest run has reached, as people say them."""
        longest_s = max(one.run.duration_s for one in self.runs)
        return tuple(moment for moment in _MOMENTS_S if moment <= longest_s)[-_MOST_MOMENTS:]

    @cached_property
    def settings(self) -> Mapping[str, tuple[str, ...]]:
        """The settings that differ → the value in each run; '–' where a run has no such setting."""
        rows = [{key: str(value) for key, value in one.run.record.rows()} for one in self.runs]
        keys = dict.fromkeys(itertools.chain.from_iterable(rows))
        values = {key: tuple(each.get(key, "–") for each in rows) for key in keys}
        return {key: each for key, each in values.items() if len(set(each)) > 1}

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "pipeline": self.name,
            "times_compare": not self.why_not_compared,
            "why_not": self.why_not_compared or None,
            "settings": {key: list(values) for key, values in self.settings.items()},
            "runs": [
                {
                    "run": one.label,
                    "target": one.run.record.spec.profile.name,
                    "devices": list(one.run.record.made_with.devices),
                    "clock": one.run.clock,
                    "duration_s": one.run.duration_s,
                    "timed": len(one.task.samples),
                    **one.published.to_dict(),
                    "found_by": one.found_by,
                    "best_so_far": [[at_s, time_ms] for at_s, time_ms in one.curve],
                    "techniques": {row.technique: [row.timed, row.best_ms] for row in one.techniques},
                    "by_device_in_rounds": {device: list(row) for device, row in one.by_device.items()},
                    "loops": one.loops,
                }
                for one in self.runs
            ],
        }


def compare_runs(runs: Sequence[RecordedRun]) -> list[Comparison]:
    """Put the runs side by side, for each pipeline that at least two of them have timed.

    Raises:
        UsageError: there is no such pipeline; the message has what each run tuned.
    """
    labelled = list(zip(_labels(runs), runs, strict=True))
    by_name: dict[str, list[RunOfPipeline]] = {}
    for label, run in labelled:
        names = published_names(run.record.spec.tasks)
        for task in run.tasks:
            header = run.headers.get(task.task_index)
            published, text = (NOTHING, "") if header is None else (header.published, header.text)
            by_name.setdefault(names[task.task_index], []).append(RunOfPipeline(label, run, task, published, text))
    found = [Comparison(name, tuple(each)) for name, each in by_name.items() if len(each) > 1]
    if not found:
        tuned = "; ".join(f"{label}: {', '.join(_timed(run)) or 'nothing yet'}" for label, run in labelled)
        raise UsageError(
            f"No two of these runs have timed the same pipeline ({tuned}).",
            next_step="Give runs of the same generator; `sdk report RUN` shows what a run has tuned.",
        )
    return found


def _timed(run: RecordedRun) -> list[str]:
    names = published_names(run.record.spec.tasks)
    return [names[task.task_index] for task in run.tasks]


def _labels(runs: Sequence[RecordedRun]) -> list[str]:
    """The folders' names, with as much of the path before them as tells them apart."""
    parts = [run.folder.resolve().parts for run in runs]
    for kept in range(1, max(map(len, parts)) + 1):
        labels = ["/".join(each[-kept:]) for each in parts]
        if len(set(labels)) == len(labels):
            return labels
    return [f"{each[-1]} ({number})" for number, each in enumerate(parts, 1)]
