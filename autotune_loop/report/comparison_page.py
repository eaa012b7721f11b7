"""Runs side by side as one HTML page that works without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from halide_autotune.autotune_loop.report.comparison import Comparison
from halide_autotune.autotune_loop.report.html_page import render_page
from halide_autotune.autotune_loop.report.plot import Plot, draw_steps, make_figure
from halide_autotune.autotune_loop.store.published import words_for
from halide_autotune.devices.device import Clock


def print_comparison(comparisons: Sequence[Comparison], commands: Mapping[str, str] | None = None) -> str:
    """The page, with every script and style inside it.

    Args:
        commands: by the pipeline's name, what times its winners in turns; empty where nothing does.
    """
    plots = {f"curves-{number}": curves(each) for number, each in enumerate(comparisons)}
    return render_page(
        "comparison_page.html",
        plots,
        comparisons=comparisons,
        commands=commands or {},
        clock_words=Clock.words_of,
        words_for=words_for,
    )


def curves(comparison: Comparison) -> Plot:
    """The best so far of each run against minutes since its start."""
    figure = make_figure(
        "minutes since the start",
        "time (ms)",
        y_axis_type="log",
        tooltips=[("run", "$name"), ("time", "@y{0.0000} ms"), ("after", "@x{0.0} min")],
    )
    lines = {}
    for one in comparison.runs:
        points = [*one.curve, (one.run.duration_s, one.curve[-1][1])]
        lines[one.label] = [(at_s / 60, time_ms) for at_s, time_ms in points]
    legend = draw_steps(figure, lines)
    words = "; ".join(f"{label}: {line[0][1]:.4g} to {line[-1][1]:.4g} ms" for label, line in lines.items())
    return Plot("Best so far, of each run", f"{words}.", figure, legend)
