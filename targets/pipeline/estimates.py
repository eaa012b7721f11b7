"""The sizes and values to expect of a generator's arguments, where the user gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from halide_autotune.targets.values.options import Option
from halide_autotune.targets.values.texts import parse_estimates

_PANEL = "What is tuned"


@dataclass(frozen=True)
class EstimateOptions:
    """What a schedule is made for, in place of the generator's own estimates or where it has none.

    Attributes:
        given: argument → extents such as '1920x1080', with the least coordinates '1920x1080@-2x3'; or a scalar's value.
        use_defaults: take a default where nothing else says what to expect.
    """

    given: Annotated[
        Mapping[str, str],
        Option(
            "--estimate",
            metavar="ARG=1920x1080",
            help="Size or value of an argument to tune for, in place of the generator's estimate; repeat for more.",
            panel=_PANEL,
            name="estimates",
            parse=parse_estimates,
            is_fixed=True,
        ),
    ] = field(default_factory=dict)
    use_defaults: Annotated[
        bool,
        Option(
            "--default-estimates",
            help="Take a default (1920x1080x3 and the like) where neither you nor the generator gives an estimate.",
            panel=_PANEL,
            name="default_estimates",
            is_fixed=True,
        ),
    ] = False


def plugin_text(sizes: Mapping[str, str]) -> str:
    """`{"input": "1920x1080@0x-2", "gain": "1.5"}` as the plug-ins read it: `input:0+1920,-2+1080;gain:1.5`.

    An empty text leaves out the generator's own estimate.
    """
    return ";".join(f"{name}:{_plugin_value(text)}" for name, text in sizes.items())


def _plugin_value(text: str) -> str:
    if "x" not in text and "@" not in text:
        return text  # a scalar, or the only dimension of a buffer
    extents, _, mins = text.partition("@")
    every = extents.split("x")
    least = mins.split("x") if mins else ["0"] * len(every)
    return ",".join(f"{low}+{extent}" for low, extent in zip(least, every, strict=True))
