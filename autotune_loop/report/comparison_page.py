"""Runs side by side as one HTML page that works without a network."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from halide_autotune.autotune_loop.report.comparison import Comparison
from halide_autotune.autotune_loop.report.run_figures import LINE_COLOURS, make_figure
from halide_autotune.devices.device import Clock

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure


def print_comparison(comparisons: Sequence[Comparison]) -> str:
    """The page, with every script and style inside it."""
    from bokeh.embed import json_item
    from bokeh.resources import INLINE
    from jinja2 import Environment, PackageLoader, select_autoescape

    environment = Environment(
        loader=PackageLoader("halide_autotune.autotune_loop.report", ""), autoescape=select_autoescape(default=True)
    )
    plots = {f"curves-{number}": json_item(curves(each)) for number, each in enumerate(comparisons)}
    return environment.get_template("comparison_page.html").render(
        comparisons=comparisons,
        clock_words=Clock.words_of,
        bokeh_script=INLINE.js_raw[0] if INLINE.js_raw else "",
        plots_json=json.dumps(plots, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c"),
    )


def curves(comparison: Comparison) -> Figure:
    """The best so far of each run against minutes since its start."""
    plot = make_figure(
        "Best so far",
        "minutes since the start",
        "time of a schedule (ms)",
        y_axis_type="log",
        tooltips=[("run", "$name"), ("time", "@y{0.0000} ms"), ("after", "@x{0.0} min")],
    )
    for one, colour in zip(comparison.runs, itertools.cycle(LINE_COLOURS), strict=False):
        points = [*one.curve, (one.run.duration_s, one.curve[-1][1])]
        xs, ys = [at_s / 60 for at_s, _ in points], [time_ms for _, time_ms in points]
        plot.step(xs, ys, mode="after", line_width=2, color=colour, legend_label=one.label, name=one.label)
    plot.legend.click_policy = "hide"
    return plot
