"""Runs side by side as one HTML page that works without a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from halide_autotune.autotune_loop.report.comparison import Comparison
from halide_autotune.autotune_loop.report.html_page import render_page
from halide_autotune.autotune_loop.report.run_figures import draw_steps, make_figure
from halide_autotune.devices.device import Clock

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure


def print_comparison(comparisons: Sequence[Comparison]) -> str:
    """The page, with every script and style inside it."""
    plots = {f"curves-{number}": curves(each) for number, each in enumerate(comparisons)}
    return render_page("comparison_page.html", plots, comparisons=comparisons, clock_words=Clock.words_of)


def curves(comparison: Comparison) -> Figure:
    """The best so far of each run against minutes since its start."""
    plot = make_figure(
        "Best so far",
        "minutes since the start",
        "time of a schedule (ms)",
        y_axis_type="log",
        tooltips=[("run", "$name"), ("time", "@y{0.0000} ms"), ("after", "@x{0.0} min")],
    )
    lines = {}
    for one in comparison.runs:
        points = [*one.curve, (one.run.duration_s, one.curve[-1][1])]
        lines[one.label] = [(at_s / 60, time_ms) for at_s, time_ms in points]
    draw_steps(plot, lines)
    return plot
