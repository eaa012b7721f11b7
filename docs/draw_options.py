"""Writes the tables of options in docs/tuning.md from their declarations: `python -m docs.draw_options`.

`make diagram` runs it; with `--check`, as in `make lint`, it fails where a table is not current.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.options.autotune_options import CommandOptions, GeneratorOptions
from halide_autotune.targets.values.options import DeclaredOption, options_of
from halide_autotune.targets.values.records import plain

PAGE = Path(__file__).with_name("tuning.md")
_TABLES = re.compile(
    r"(?<=<!-- options: made by docs/draw_options\.py -->\n).*(?=<!-- end of options -->\n)", re.DOTALL
)
# GENERATOR has no panel of its own: the help shows arguments apart.
_PANEL_OF_ARGUMENTS = "What is tuned"


def page_with_options(text: str) -> str:
    """The page with today's tables between its markers."""
    return _TABLES.sub(lambda _: "\n" + "\n".join((*_tables(), "")), text)


def _tables() -> Iterator[str]:
    """A table for each panel of the command's help."""
    rows: dict[str, list[str]] = {}
    for kind in (GeneratorOptions, RunOptions, CommandOptions):
        for option in options_of(kind):
            rows.setdefault(option.facts.panel or _PANEL_OF_ARGUMENTS, []).append(_row(option, kind is RunOptions))
    for panel, lines in rows.items():
        yield from (f"### {panel}", "", "| option | keyword | default | |", "|---|---|---|---|", *lines, "")


def _row(option: DeclaredOption, has_keyword: bool) -> str:
    facts = option.facts
    flags = " ".join((", ".join(facts.flags), facts.metavar)).strip()
    default = facts.shown or plain(option.default)
    if isinstance(default, list):
        default = ",".join(map(str, default)) or None
    cells = (
        (f"`{flags}`" if flags else "no flag") + (" *fixed*" if facts.is_fixed else ""),
        f"`{option.keyword}`" if has_keyword else "",
        f"`{default}`" if str(default) not in ("None", "False", "[]", "{}") else "",
        facts.help.replace("|", "\\|"),
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    page = PAGE.read_text()
    current = page_with_options(page)
    if "--check" in sys.argv[1:]:
        if page != current:
            sys.exit(f"The options in {PAGE.name} are not current. Write them again: make diagram")
    else:
        PAGE.write_text(current)
