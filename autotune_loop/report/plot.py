"""One plot of a page: what it is called, what it shows in words, and Bokeh's figure of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Plot:
    """A plot as a page has it.

    Attributes:
        words: what it shows, for those who do not see it; why there is none if `figure` is None.
        figure: Bokeh's; it has no type information.
    """

    title: str
    words: str
    figure: object | None = None


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
        background_fill_color=None,
        border_fill_color=None,
        **options,
    )
    made.add_tools(HoverTool(tooltips=list(tooltips)))
    made.toolbar.logo = None
    for axis in made.select(LogAxis):
        axis.formatter = BasicTickFormatter(use_scientific=False)
    return made


def place_legend(figure: Figure) -> None:
    """Put the legend above the points, so that it hides none; a click hides what it names."""
    (legend,) = figure.legend
    figure.add_layout(legend, "above")
    legend.orientation = "horizontal"
    legend.ncols = "auto"
    legend.click_policy = "hide"
    legend.background_fill_alpha = 0.0
    legend.border_line_color = None
    legend.padding = legend.margin = 2
    legend.spacing = 16


def draw_steps(figure: Figure, lines: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw what stays as it is from each point to the next.

    Args:
        lines: name → points; at least one line.
    """
    for (name, points), (colour, dash) in zip(lines.items(), line_styles(), strict=False):
        xs, ys = zip(*points, strict=True)
        figure.step(
            list(xs), list(ys), mode="after", line_width=2, color=colour, line_dash=dash, legend_label=name, name=name
        )
    place_legend(figure)


def line_styles() -> itertools.cycle[tuple[str, str]]:
    """A colour and a dash for each line, one after the other."""
    count = len(LINE_COLOURS) * len(DASHES)
    pairs = zip(itertools.cycle(LINE_COLOURS), itertools.cycle(DASHES), strict=False)
    return itertools.cycle(itertools.islice(pairs, count))
