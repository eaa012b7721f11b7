"""The plots of a run, as Bokeh figures."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from halide_autotune.autotune_loop.candidate import Measured, found_by
from halide_autotune.autotune_loop.cost_model.ranking import spearman
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.parameters.tuned_parameter import TunedParameter
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure

_HEIGHT_PX = 320
_LINE_COLOURS = ("#444444", "#b8860b", "#7b3294", "#008080", "#a0522d")
_BEST_COLOUR = "#1b7837"
_SAMPLE_COLOUR = "#8fb8de"
_FEWEST_FOR_A_CORRELATION = 4


def best_so_far(samples: Sequence[Measured], lines_ms: Mapping[str, float], start_unix_s: float | None) -> Figure:
    """Every sample and the best so far, against the number of samples or against minutes since the start.

    Args:
        samples: of one argument set, in the order of timing.
        lines_ms: times to compare with, by name: the default schedule, a schedule by hand, the incumbent.
        start_unix_s: when the run started; None plots against the number of samples.
    """
    from bokeh.models import HoverTool

    if start_unix_s is None:
        title, x_label, xs = "samples", "schedules timed", [float(n) for n in range(1, len(samples) + 1)]
    else:
        title, x_label, xs = "time", "minutes since the start", [(s.at_unix_s - start_unix_s) / 60 for s in samples]
    best_ms = list(itertools.accumulate((s.median_ms for s in samples), min))
    plot = make_figure(
        f"Best so far against {title}",
        x_label,
        "time of a schedule (ms)",
        y_axis_type="log",
        tooltips=[("schedule", "@sample"), ("time", "@y{0.0000} ms"), ("found by", "@origin")],
    )
    data = {
        "x": xs,
        "y": [s.median_ms for s in samples],
        "sample": [s.candidate.sample for s in samples],
        "origin": [found_by(s.candidate.point) for s in samples],
    }
    dots = plot.scatter("x", "y", source=data, size=4, color=_SAMPLE_COLOUR, alpha=0.8, legend_label="samples")
    plot.select_one(HoverTool).renderers = [dots]
    plot.step(xs, best_ms, mode="after", line_width=2.5, color=_BEST_COLOUR, legend_label="best so far")
    ends = [xs[0], xs[-1]] if xs else []
    for (name, time_ms), colour in zip(lines_ms.items(), itertools.cycle(_LINE_COLOURS), strict=False):
        plot.line(ends, [time_ms] * len(ends), line_dash="dashed", line_width=2, color=colour, legend_label=name)
    plot.legend.location = "top_right"
    plot.legend.click_policy = "hide"
    return plot


def best_by_technique(samples: Sequence[Measured], start_unix_s: float) -> Figure:
    """The best so far of each way of finding schedules, against minutes since the start.

    Args:
        samples: of one argument set, in the order of timing.
    """
    plot = make_figure(
        "Best so far, by what found it",
        "minutes since the start",
        "time of a schedule (ms)",
        y_axis_type="log",
        tooltips=[("found by", "$name"), ("time", "@y{0.0000} ms")],
    )
    by_origin: dict[str, list[Measured]] = {}
    for sample in samples:
        by_origin.setdefault(found_by(sample.candidate.point), []).append(sample)
    end = (samples[-1].at_unix_s - start_unix_s) / 60
    lines = {}
    for origin, found in by_origin.items():
        best_ms = list(itertools.accumulate((s.median_ms for s in found), min))
        xs = [(s.at_unix_s - start_unix_s) / 60 for s in found]
        lines[origin] = list(zip([*xs, end], [*best_ms, best_ms[-1]], strict=True))
    draw_steps(plot, lines)
    return plot


def draw_steps(plot: Figure, lines: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw what stays as it is from each point to the next.

    Args:
        lines: name → points.
    """
    for (name, points), colour in zip(lines.items(), itertools.cycle(_LINE_COLOURS), strict=False):
        xs, ys = zip(*points, strict=True)
        plot.step(list(xs), list(ys), mode="after", line_width=2, color=colour, legend_label=name, name=name)
    plot.legend.click_policy = "hide"


def times_by_parameter(samples: Sequence[Measured], parameter: TunedParameter) -> Figure:
    """The time of every set against its value of one parameter, and the fastest of each value.

    Args:
        samples: of an argument set whose parameters were tuned.
    """
    from bokeh.models import HoverTool

    values = list(parameter.values)
    values += sorted({s.candidate.parameters[parameter.name] for s in samples} - set(values))  # the default's
    plot = make_figure(
        f"Time against {parameter.name}, with the fastest of each value",
        parameter.name,
        "time of a set (ms)",
        x_range=values,
        y_axis_type="log",
        tooltips=[("set", "@set"), ("time", "@y{0.0000} ms")],
    )
    fastest_ms: dict[str, float] = {}
    for sample in samples:
        value = sample.candidate.parameters[parameter.name]
        fastest_ms[value] = min(sample.median_ms, fastest_ms.get(value, sample.median_ms))
    data = {
        "x": [s.candidate.parameters[parameter.name] for s in samples],
        "y": [s.median_ms for s in samples],
        "set": [set_text(s.candidate.parameters) for s in samples],
    }
    dots = plot.scatter("x", "y", source=data, size=5, color=_SAMPLE_COLOUR, alpha=0.8)
    plot.select_one(HoverTool).renderers = [dots]
    known = [value for value in values if value in fastest_ms]
    best_ms = [fastest_ms[value] for value in known]
    plot.line(known, best_ms, line_width=2, color=_BEST_COLOUR)
    plot.scatter(known, best_ms, size=7, color=_BEST_COLOUR)
    return plot


def predicted_against_measured(samples: Sequence[Measured]) -> Figure:
    """Predictions against measurements; coloured by round."""
    from bokeh.transform import linear_cmap

    known = [s for s in samples if (s.candidate.predicted_ms or 0) > 0]
    plot = make_figure(
        "Predicted against measured",
        "measured (ms)",
        "predicted (ms)",
        x_axis_type="log",
        y_axis_type="log",
        tooltips=[("schedule", "@sample"), ("round", "@round"), ("measured", "@x ms"), ("predicted", "@y ms")],
    )
    data = {
        "x": [s.median_ms for s in known],
        "y": [s.candidate.predicted_ms for s in known],
        "round": [s.candidate.round_index for s in known],
        "sample": [s.candidate.sample for s in known],
    }
    rounds = [s.candidate.round_index for s in known] or [0]
    colours = linear_cmap("round", "Viridis256", min(rounds), max(max(rounds), min(rounds) + 1))
    plot.scatter("x", "y", source=data, size=5, color=colours, alpha=0.8)
    return plot


def rank_correlation(samples: Sequence[Measured]) -> Figure:
    """Spearman's rank correlation of prediction and measurement within each round."""
    by_round = correlation_by_round(samples)
    plot = make_figure(
        "Rank correlation of a round's predictions", "round", "Spearman's ρ", tooltips=[("ρ", "@y{0.00}")]
    )
    xs, ys = list(by_round), list(by_round.values())
    plot.line(xs, ys, line_width=2, color=_BEST_COLOUR)
    plot.scatter(xs, ys, size=7, color=_BEST_COLOUR)
    plot.y_range.start, plot.y_range.end = -1.05, 1.05
    return plot


def correlation_by_round(samples: Sequence[Measured]) -> dict[int, float]:
    """Round → Spearman's ρ of its predictions and measurements, without rounds with too few schedules."""
    by_round: dict[int, list[Measured]] = {}
    for sample in samples:
        if sample.candidate.predicted_ms is not None:
            by_round.setdefault(sample.candidate.round_index, []).append(sample)
    found = {
        index: spearman(np.array([s.candidate.predicted_ms for s in members]), np.array([s.median_ms for s in members]))
        for index, members in sorted(by_round.items())
        if len(members) >= _FEWEST_FOR_A_CORRELATION
    }
    return {index: value for index, value in found.items() if value is not None}


def device_health(run: RecordedRun) -> list[Figure]:
    """The canary and the temperature of every device during the run; empty without readings."""
    canaries: dict[str, list[tuple[float, float]]] = {}
    for sample in run.samples:
        if sample.canary_s:
            canaries.setdefault(sample.device, []).append(
                ((sample.at_unix_s - run.start_unix_s) / 60, min(sample.canary_s) * 1e3)
            )
    temperatures: dict[str, list[tuple[float, float]]] = {}
    for reading in run.readings:
        temperatures.setdefault(reading.device, []).append((reading.elapsed_s / 60, reading.hottest_c))
    plots = []
    for title, label, points in (
        ("Canary: a fixed computation timed beside each schedule", "time (ms)", canaries),
        ("Temperature", "hottest sensor (°C)", temperatures),
    ):
        if points:
            plots.append(_lines_by_device(title, label, points))
    return plots


def _lines_by_device(title: str, label: str, points: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    plot = make_figure(title, "minutes since the start", label, tooltips=[("device", "$name"), ("value", "@y")])
    for (device, places), colour in zip(points.items(), itertools.cycle(_LINE_COLOURS), strict=False):
        xs, ys = zip(*places, strict=True)
        plot.line(list(xs), list(ys), color=colour, line_width=1.5, legend_label=device, name=device)
    plot.legend.click_policy = "hide"
    return plot


def make_figure(
    title: str,
    x_label: str,
    y_label: str,
    *,
    tooltips: Sequence[tuple[str, str]],
    **options: Any,
) -> Figure:
    """An empty plot as all of them look.

    Args:
        tooltips: what is shown of a point, as Bokeh has it.
        options: further ones of Bokeh's `figure`.
    """
    from bokeh.models import HoverTool
    from bokeh.plotting import figure

    plot = figure(
        title=title,
        height=_HEIGHT_PX,
        sizing_mode="stretch_width",
        tools="pan,wheel_zoom,box_zoom,reset,save",
        x_axis_label=x_label,
        y_axis_label=y_label,
        **options,
    )
    plot.add_tools(HoverTool(tooltips=list(tooltips)))
    plot.toolbar.logo = None
    return plot
