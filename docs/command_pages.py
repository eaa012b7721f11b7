"""Makes the pages of the commands, `commands/*.md`, from the command line itself; a hook of mkdocs, see mkdocs.yml.

Plug-ins for Typer and Click leave out the panels in which options stand, or know only one of typer's versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from halide_autotune.sdk.main import make_application

FOLDER = "commands"
_INDEX = f"{FOLDER}/index.md"
_NAV_TITLE = "Commands"
# What every command has is said once, on the index.
_EVERYWHERE = ("--help", "--install-completion", "--show-completion")
_EXAMPLE = re.compile(r"^(Example|In CI): (sdk .*)$", re.MULTILINE)
_MARKUP = re.compile(r"([<*\[|])(?=[^`]*(?:`[^`]*`[^`]*)*$)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages under the heading `Commands` of the navigation."""
    pages = [_INDEX, *({f"sdk {name}": f"{FOLDER}/{name}.md"} for name in _application().commands)]
    _fill(config.nav or [], pages)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, which lie in no folder."""
    for path, text in command_pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def command_pages() -> dict[str, str]:
    """Every page's text by its path in the site."""
    application = _application()
    rows = [f"| [`sdk {name}`]({name}.md) | {_first_line(each)} |" for name, each in application.commands.items()]
    index = [
        "# Commands",
        "",
        "Every command has `--help` (`-h`). `sdk --install-completion` adds completion to your shell, and",
        "`sdk --version` prints the version. A command exits with 0 when it is done, 1 when it failed, 2 when it was",
        "used wrongly, and 130 when it was interrupted; it says on standard error why, and what to do next.",
        "",
        "| command | |",
        "|---|---|",
        *rows,
        "",
    ]
    pages = {_INDEX: "\n".join(index)}
    for name, command in application.commands.items():
        pages[f"{FOLDER}/{name}.md"] = "\n".join(_command(f"sdk {name}", command, "#"))
    return pages


def _application() -> Any:
    return typer.main.get_command(make_application())


def _fill(items: list[Any], pages: list[Any]) -> None:
    for item in items:
        if isinstance(item, dict):
            for title, value in item.items():
                if title == _NAV_TITLE:
                    item[title] = pages
                elif isinstance(value, list):
                    _fill(value, pages)


def _command(path: str, command: Any, heading: str) -> Iterator[str]:
    """The lines of one command, and below it those of the commands of a group."""
    context = command.make_context(path, [], resilient_parsing=True)
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield from (f"{heading} {path}", "", "```text", usage, "```", "", _described(command.help or ""), "")
    for panel, rows in _panels(command, context).items():
        yield from (f"| {panel} | |", "|---|---|", *rows, "")
    for name, each in getattr(command, "commands", {}).items():
        yield from _command(f"{path} {name}", each, f"{heading}#")


def _panels(command: Any, context: Any) -> dict[str, list[str]]:
    """Rows of a table for each panel of the help, in its order."""
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None or set(parameter.opts) & set(_EVERYWHERE):
            continue
        if isinstance(parameter, typer.core.TyperArgument):
            panel, name = "Arguments", parameter.metavar or (parameter.name or "").upper()
        else:
            panel, name = getattr(parameter, "rich_help_panel", None) or "Options", record[0]
        panels.setdefault(panel, []).append(f"| `{name}` | {_escaped(record[1])} |")
    return panels


def _described(text: str) -> str:
    """A command's help, its example as a block of its own."""
    shown = _EXAMPLE.sub(lambda found: f"\x00{found[1]}\x00{found[2]}\x00", text)
    parts = shown.split("\x00")
    lines = [_escaped(parts[0])]
    for label, example, rest in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        lines += [f"{label}:\n\n```sh\n{example}\n```\n", _escaped(rest)]
    return "\n".join(lines).strip()


def _first_line(command: Any) -> str:
    return _escaped((command.help or "").partition("\n")[0])


def _escaped(text: str) -> str:
    """The text with what Markdown and tables would take for markup escaped, but for `code`."""
    return _MARKUP.sub(r"\\\1", text)
