"""One plot of a page: what it is called, what it shows in words, and Bokeh's figure of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure

_HEIGHT_PX = 300
# Each has a contrast of at least 3 to 1 with the light and with the dark page.
LINE_COLOURS = ("#767d88", "#b8720b", "#9a63c4", "#158a8a", "#c65a4a")
BEST_COLOUR = "#238b45"
SAMPLE_COLOUR = "#4a87c7"
# No line is told by its colour alone.
DASHES = ("solid", "dashed", "dotted", "dashdot")
POINTS = "points"


@dataclass(frozen=True)
class Plot:
    """A plot as a page has it.

    Attributes:
        words: what it shows, for those who do not see it; why there is none if `figure` is None.
        figure: Bokeh's, which has no type information.
        legend: what is drawn, by the name of its renderers: its colour, and its dash or `POINTS`. The page has the
            legend beside the plot, as Bokeh's hides points, and neither breaks its line nor listens to a keyboard.
    """

    title: str
    words: str
    figure: object | None = None
    legend: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def make_figure(x_label: str, y_label: str, *, tooltips: Sequence[tuple[str, str]], **options: Any) -> Figure:
    """An empty figure as all of them look; the page paints its text, and labels its logarithmic axes.

    Args:
        tooltips: what is shown of a point, as Bokeh has it.
        options: further ones of Bokeh's `figure`.
    """
    from bokeh.models import BasicTickFormatter, HoverTool, LogAxis
    from bokeh.plotting import figure

    made = figure(
        height=_HEIGHT_PX,
        sizing_mode="stretch_width",
        tools="pan,wheel_zoom,box_zoom,reset,save",
        x_axis_label=x_label,
        y_axis_label=y_label,
        background_fill_color=None,  # nothing white before the page's script knows the reader's colours
        border_fill_color=None,
        **options,
    )
    made.add_tools(HoverTool(tooltips=list(tooltips)))
    made.toolbar.logo = None
    for axis in made.select(LogAxis):
        axis.formatter = BasicTickFormatter(use_scientific=False)
    return made


def draw_steps(figure: Figure, lines: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, tuple[str, str]]:
    """Draw what stays as it is from each point to the next; returns the legend.

    Args:
        lines: name → points.
    """
    legend = dict(zip(lines, line_styles(), strict=False))
    for name, points in lines.items():
        xs, ys = zip(*points, strict=True)
        colour, dash = legend[name]
        figure.step(list(xs), list(ys), mode="after", line_width=2, color=colour, line_dash=dash, name=name)
    return legend


def line_styles() -> itertools.cycle[tuple[str, str]]:
    """A colour and a dash for each line, one after the other."""
    count = len(LINE_COLOURS) * len(DASHES)
    pairs = zip(itertools.cycle(LINE_COLOURS), itertools.cycle(DASHES), strict=False)
    return itertools.cycle(itertools.islice(pairs, count))
