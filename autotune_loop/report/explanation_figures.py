"""The plot of an explanation: how near schedules are to what their device can do."""

from __future__ import annotations

from halide_autotune.autotune_loop.explain.explained import Explanation
from halide_autotune.autotune_loop.report.plot import (
    BEST_COLOUR,
    DASHES,
    LINE_COLOURS,
    POINTS,
    Plot,
    make_figure,
)

_TITLE = "How near to what the device can do (roofline)"


def roofline(explanation: Explanation) -> Plot:
    """Operations a second against operations for each byte of least traffic (Williams et al. 2009)."""
    limits = explanation.limits
    points: dict[str, tuple[float, float]] = {}
    for one in explanation.schedules:
        traffic_bytes = one.least_traffic_bytes(explanation.cache_bytes)
        if one.call_s and one.operations and traffic_bytes:
            points[one.label] = (one.operations / traffic_bytes, one.operations / one.call_s / 1e9)
    if limits is None or not points:
        return Plot(_TITLE, "There is none, as no time, no count or no limit of the device is known.")
    figure = make_figure(
        "operations for each byte of least traffic",
        "billion operations a second",
        x_axis_type="log",
        y_axis_type="log",
        tooltips=[("schedule", "@label"), ("billion operations a second", "@y{0.00}")],
    )
    most, bytes_per_s = limits.operations_per_s / 1e9, limits.bytes_per_s / 1e9
    ridge = most / bytes_per_s
    ends = (min(ridge, *(x for x, _ in points.values())) / 4, max(ridge, *(x for x, _ in points.values())) * 4)
    xs = [ends[0], ridge, ends[1]]
    roof = f"at most, on {explanation.device}"
    figure.line(xs, [bytes_per_s * ends[0], most, most], line_width=2, color=LINE_COLOURS[0], name=roof)
    legend = {roof: (LINE_COLOURS[0], DASHES[0])}
    for (label, (x, y)), other in zip(points.items(), LINE_COLOURS[1:], strict=False):
        colour = BEST_COLOUR if label == explanation.explained.label else other
        figure.scatter("x", "y", source={"x": [x], "y": [y], "label": [label]}, size=10, color=colour, name=label)
        legend[label] = (colour, POINTS)
    shares = [
        f"{label} does {y:.3g} billion operations a second, {100 * y / min(most, bytes_per_s * x):.0f} % of the roof"
        for label, (x, y) in points.items()
    ]
    return Plot(_TITLE, f"{'; '.join(shares)}.", figure, legend)
