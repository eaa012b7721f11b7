"""A recorded run as one HTML page that works without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from halide_autotune.autotune_loop.explain.explained import Explanation
from halide_autotune.autotune_loop.explain.explanation_file import read_explanations
from halide_autotune.autotune_loop.explain.nest import Nested, nest
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.report.explanation_figures import roofline
from halide_autotune.autotune_loop.report.found_by import Ancestor, TechniqueRow, ancestors, techniques
from halide_autotune.autotune_loop.report.html_page import render_page, script_json
from halide_autotune.autotune_loop.report.loops_text import shown_loops
from halide_autotune.autotune_loop.report.plot import Plot
from halide_autotune.autotune_loop.report.recorded_run import PublishedHeader, RecordedRun, TaskSamples
from halide_autotune.autotune_loop.report.run_figures import (
    best_by_technique,
    best_so_far,
    device_health,
    predicted_against_measured,
    rank_correlation,
    times_by_parameter,
)
from halide_autotune.autotune_loop.report.schedule_table import COLUMNS, header_text, packed_texts, schedule_rows
from halide_autotune.autotune_loop.specification.tuning_task import generator_names, published_paths
from halide_autotune.autotune_loop.store.published import timings_text, words_for

# In the text of a header, and not in that of tuned parameters.
_APPLY = "inline void apply_schedule_"
# Rows that are there without JavaScript, too.
_ROWS_WITHOUT_SCRIPT = 50


@dataclass(frozen=True)
class PageOptions:
    """Options of a page.

    Attributes:
        lines_ms: times to compare with, by name: a schedule by hand, the incumbent.
        follows: the page asks its server for changes and reloads itself.
    """

    lines_ms: Mapping[str, float] = field(default_factory=dict)
    follows: bool = False


@dataclass(frozen=True)
class _Explained:
    """Why a winner is fast, on one device.

    Attributes:
        nests: of the last two schedules.
        plot: the id of its plot.
    """

    explanation: Explanation
    nests: Sequence[Sequence[Nested]]
    plot: str


@dataclass(frozen=True)
class _ArgumentSet:
    """What the page shows of an argument set.

    Attributes:
        title: of its section.
        header: None if nothing that the run has published is there.
        file: the name of the header's file.
        plots: the ids of its plots.
        explained: its winner on each device, if the run was explained.
        tuned_loops, default_loops: loops, or values of parameters; empty if there is no such schedule.
    """

    title: str
    task: TaskSamples
    header: PublishedHeader | None
    file: str
    plots: Sequence[str]
    ancestors: Sequence[Ancestor]
    techniques: Sequence[TechniqueRow]
    explained: Sequence[_Explained]
    tuned_loops: str
    default_loops: str

    @property
    def fastest_from(self) -> str:
        """What the time of the fastest in the rounds is."""
        return timings_text(self.task.fastest.processes)


def print_page(run: RecordedRun, options: PageOptions, commands: Mapping[str, str] | None = None) -> str:
    """The page, with every script and style inside it.

    Args:
        commands: what may be typed next, by what it is for.
    """
    plots: dict[str, Plot] = {}
    sets = []
    explanations = read_explanations(run.folder, {index: header.sha256 for index, header in run.headers.items()})
    for task in run.tasks:
        drawn = {f"plot-{task.task_index}-{number}": plot for number, plot in enumerate(_plots(run, task, options))}
        plots |= drawn
        explained = []
        for number, one in enumerate(explanations.get(task.task_index, ())):
            plot = f"plot-roofline-{task.task_index}-{number}"
            plots[plot] = roofline(one)
            explained.append(_Explained(one, [nest(schedule) for schedule in one.schedules[-2:]], plot))
        sets.append(_argument_set(run, task, explained, list(drawn)))
    health = {f"plot-health-{number}": plot for number, plot in enumerate(device_health(run))}
    rows = schedule_rows(run)
    return render_page(
        "run_page.html",
        plots | health,
        run=run,
        words_for=words_for,
        generators=generator_names(run.record.spec.tasks),
        options=options,
        sets=sets,
        commands=commands or {},
        health_plots=list(health),
        columns=COLUMNS,
        first_rows=rows[:_ROWS_WITHOUT_SCRIPT],
        samples_json=script_json(rows),
        schedules=packed_texts(run),
    )


def _argument_set(
    run: RecordedRun, task: TaskSamples, explained: Sequence[_Explained], plots: Sequence[str]
) -> _ArgumentSet:
    header = run.headers.get(task.task_index)
    tasks, default = run.record.spec.tasks, task.default
    several = f"Argument set {task.task_index + 1}: {set_text(tasks[task.task_index].parameters) or 'the defaults'}"
    return _ArgumentSet(
        title=several if len(tasks) > 1 else "Result",
        task=task,
        header=header,
        file=published_paths(run.folder / "samples", tasks)[task.task_index].name,
        plots=plots,
        ancestors=() if header is None else ancestors(task.samples, header.published.symbol),
        techniques=techniques(task.samples),
        explained=explained,
        tuned_loops="" if header is None else _shown(header.text, header.published.parameters),
        default_loops="" if default is None else _shown(header_text(run, default), default.candidate.parameters),
    )


def _plots(run: RecordedRun, task: TaskSamples, options: PageOptions) -> list[Plot]:
    lines_ms = dict(options.lines_ms)
    if task.default is not None:
        lines_ms = {"default": task.default.median_ms, **lines_ms}
    header = run.headers.get(task.task_index)
    if header is not None and header.published.own is not None:
        lines_ms = {"own": header.published.own.median_ms, **lines_ms}
    space = run.record.spec.tasks[task.task_index].space
    return [
        *(times_by_parameter(task.samples, each) for each in (() if space is None else space.parameters)),
        best_so_far(task.samples, lines_ms, None),
        best_so_far(task.samples, lines_ms, run.start_unix_s),
        *([best_by_technique(task.samples, run.start_unix_s)] if len(techniques(task.samples)) > 1 else []),
        predicted_against_measured(task.samples),
        rank_correlation(task.samples),
    ]


def _shown(text: str, parameters: Mapping[str, str]) -> str:
    """The values of parameters that were tuned, a line for each, and the loops of a header."""
    values = set_text(parameters).replace(" ", "\n")
    return values if values and _APPLY not in text else "\n\n".join(filter(None, (values, _loops(text))))


def _loops(text: str) -> str:
    return shown_loops(text) if text else "The run no longer has this schedule's header."
