"""A recorded run as one HTML page that works without a network."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from halide_autotune.autotune_loop.candidate import Measured, found_by
from halide_autotune.autotune_loop.measure.func_comparison import ProfiledSchedule, func_tables
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.report.found_by import ancestors, techniques
from halide_autotune.autotune_loop.report.html_page import render_page, script_json
from halide_autotune.autotune_loop.report.loops_text import shown_loops
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun
from halide_autotune.autotune_loop.report.run_figures import (
    best_by_technique,
    best_so_far,
    device_health,
    predicted_against_measured,
    rank_correlation,
    times_by_parameter,
)
from halide_autotune.autotune_loop.specification.tuning_task import generator_names, sample_file_name
from halide_autotune.autotune_loop.store.published import OWN, timings_text, words_for

# The page stays below 5 MB: beyond this size the slowest schedules have no text.
_SCHEDULE_TEXTS_BYTES = 1_500_000
_LARGEST_HEADER_BYTES = 1_000_000
# In the text of a header, and not in that of tuned parameters.
_APPLY = "inline void apply_schedule_"


@dataclass(frozen=True)
class PageOptions:
    """Options of a page.

    Attributes:
        lines_ms: times to compare with, by name: a schedule by hand, the incumbent.
        follows: the page asks its server for changes and reloads itself.
        funcs: argument set → what the Funcs of its schedules take; empty shows nothing of that.
    """

    lines_ms: Mapping[str, float] = field(default_factory=dict)
    follows: bool = False
    funcs: Mapping[int, Sequence[ProfiledSchedule]] = field(default_factory=dict)


def print_page(run: RecordedRun, options: PageOptions) -> str:
    """The page, with every script and style inside it."""
    plots: dict[str, object] = {}
    sections = []
    for task in run.tasks:
        lines_ms = dict(options.lines_ms)
        if task.default is not None:
            lines_ms = {"default schedule": task.default.median_ms, **lines_ms}
        header = run.headers.get(task.task_index)
        if header is not None and header.published.own is not None:
            lines_ms = {words_for(OWN): header.published.own.median_ms, **lines_ms}
        figures = [
            best_so_far(task.samples, lines_ms, None),
            best_so_far(task.samples, lines_ms, run.start_unix_s),
            *([best_by_technique(task.samples, run.start_unix_s)] if len(techniques(task.samples)) > 1 else []),
            predicted_against_measured(task.samples),
            rank_correlation(task.samples),
        ]
        space = run.record.spec.tasks[task.task_index].space
        if space is not None:
            figures = [*(times_by_parameter(task.samples, each) for each in space.parameters), *figures]
        names = [f"plot-{task.task_index}-{number}" for number in range(len(figures))]
        plots |= dict(zip(names, figures, strict=True))
        sections.append(
            {
                "task": task,
                "published": None if header is None else header.published,
                "size_schedules": () if header is None else header.size_schedules,
                "fastest_from": timings_text(task.fastest.processes),
                "plots": names,
                "ancestors": () if header is None else ancestors(task.samples, header.published.symbol),
                "techniques": techniques(task.samples),
                "published_loops": "" if header is None else _shown(header.text, header.published.parameters),
                "funcs": func_tables(options.funcs.get(task.task_index, ())),
                "default_loops": ""
                if task.default is None
                else _shown(_header_text(run, task.default), task.default.candidate.parameters),
            }
        )
    health = {f"plot-health-{number}": figure for number, figure in enumerate(device_health(run))}
    return render_page(
        "run_page.html",
        plots | health,
        run=run,
        words_for=words_for,
        generators=generator_names(run.record.spec.tasks),
        options=options,
        sections=sections,
        health_plots=list(health),
        samples_json=script_json(_table(run)),
        schedules=_packed_schedules(run),
    )


def _table(run: RecordedRun) -> list[list[object]]:
    """Rows of the page's table of schedules, fastest first within an argument set."""
    return [
        [
            (one := measured.candidate).sample,
            one.task_index,
            round(measured.median_ms, 6),
            measured.processes,
            round(100 * measured.spread_ms / measured.median_ms, 1),
            None if one.predicted_ms is None else round(one.predicted_ms, 6),
            found_by(one.point) + (" (default)" if one.is_default else ""),
            measured.device,
            round(measured.at_unix_s - run.start_unix_s, 1),
        ]
        for measured in _fastest_first(run)
    ]


def _fastest_first(run: RecordedRun) -> list[Measured]:
    return sorted(run.samples, key=lambda sample: (sample.candidate.task_index, sample.median_ms))


def _header_text(run: RecordedRun, sample: Measured) -> str:
    """A schedule's header; empty if the run no longer has it."""
    name = sample_file_name(run.record.spec.tasks)
    paths = [run.folder / "samples" / sample.candidate.sample / f"{name}.schedule.h"]
    paths += sorted(paths[0].parent.glob("*.schedule.h"))
    for path in paths:
        try:
            if path.stat().st_size <= _LARGEST_HEADER_BYTES:
                return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return ""


def _shown(text: str, parameters: Mapping[str, str]) -> str:
    """The values of parameters that were tuned, a line for each, and the loops of a header."""
    values = set_text(parameters).replace(" ", "\n")
    return values if values and _APPLY not in text else "\n\n".join(filter(None, (values, _loops(text))))


def _loops(text: str) -> str:
    return shown_loops(text) if text else "The run no longer has this schedule's header."


def _packed_schedules(run: RecordedRun) -> str:
    """The directives of every schedule in the table's order, as deflated JSON in base64.

    They are similar, so that thousands fit; texts beyond the limit are empty.
    """
    texts = [
        "\n".join(filter(None, (set_text(sample.candidate.parameters), _directives(_header_text(run, sample)))))
        for sample in _fastest_first(run)
    ]
    while True:
        packed = zlib.compress(json.dumps(texts, ensure_ascii=False).encode(), 9)
        if len(packed) <= _SCHEDULE_TEXTS_BYTES or not any(texts):
            return base64.b64encode(packed).decode()
        kept = sum(1 for text in texts if text) // 2
        texts = [*texts[:kept], *[""] * (len(texts) - kept)]


def _directives(header: str) -> str:
    """The lines between the braces of apply_schedule."""
    inside = header.partition("{")[2].rpartition("}")[0]
    return "\n".join(line.strip() for line in inside.splitlines() if line.strip())
