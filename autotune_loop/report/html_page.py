"""One HTML file that works without a network: a template with its plots, and with every script inside it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from halide_autotune.autotune_loop.explain.words import bytes_words, place_words, time_words
from halide_autotune.autotune_loop.report.plot import Plot


def render_page(template: str, plots: Mapping[str, Plot], **values: object) -> str:
    """Fill in a template of this folder.

    Args:
        plots: the id of an element → what is drawn there.
        values: what else the template has.
    """
    from bokeh.embed import json_item
    from bokeh.resources import INLINE
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("halide_autotune.autotune_loop.report", ""),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"ms": _digits, "time": time_words, "bytes": bytes_words, "place": place_words}
    figures = {name: json_item(plot.figure) for name, plot in plots.items() if plot.figure is not None}
    return environment.get_template(template).render(
        bokeh_script=INLINE.js_raw[0] if figures and INLINE.js_raw else "",
        plots=plots,
        plots_json=script_json(figures),
        **values,
    )


def _digits(time_ms: float | None) -> str:
    """Four digits, as in a terminal."""
    if time_ms is None:
        return "–"
    return f"{time_ms:.0f}" if time_ms >= 1e3 else f"{time_ms:#.4g}".rstrip(".")


def script_json(value: object) -> str:
    """JSON that cannot end the script element around it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
