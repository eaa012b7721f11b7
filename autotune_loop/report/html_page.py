"""One HTML file that works without a network: a template with its plots, and with every script inside it."""

from __future__ import annotations

import json
from collections.abc import Mapping

# Bokeh's figures, as they come; it has no type information.
Figures = Mapping[str, object]


def render_page(template: str, plots: Figures, **values: object) -> str:
    """Fill in a template of this folder.

    Args:
        plots: the id of an element → the figure that is drawn there; the template has them as `plots_json`.
        values: what else it has.
    """
    from bokeh.embed import json_item
    from bokeh.resources import INLINE
    from jinja2 import Environment, PackageLoader, select_autoescape

    environment = Environment(
        loader=PackageLoader("halide_autotune.autotune_loop.report", ""), autoescape=select_autoescape(default=True)
    )
    return environment.get_template(template).render(
        bokeh_script=INLINE.js_raw[0] if INLINE.js_raw else "",
        plots_json=script_json({name: json_item(figure) for name, figure in plots.items()}),
        **values,
    )


def script_json(value: object) -> str:
    """JSON that cannot end the script element around it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
