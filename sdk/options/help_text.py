"""The help of a command, as plain text for every terminal: all of it for `--help`, what most people need for `-h`."""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

# Of commands with more options than a screen has lines: what `-h` shows. Commands with few options show all of them.
MOST_USED = {
    "sdk autotune": "--target --device --budget --parameter --estimate --also-size --tune --weights --incumbent"
    " --run-dir --resume --json --verbose",
    "sdk build": "--target --schedule --output --parameter --function-name --estimate --size --json",
    "sdk bench": "--schedule --target --device --play-off --by-func --budget --turns --parameter --estimate --json",
    "sdk explain": "--target --parameter --estimate --device --json",
    "sdk suggest": "--target --parameter --estimate --count --output --json",
    "sdk ship": "--output --show --check --generator --play-off --incumbent --device --budget --accept-size --guard"
    " --json",
    "sdk check": "--generator --device --target --fail-if-slower --budget --parameter --junit --markdown --json",
    "sdk network tune": "--target --device --budget --run-dir --batch-size --technique --seed --json",
    "sdk weights train": "--target --device --budget --programs --size --run-dir --scheduler --json",
    "sdk schedule show": "--parameter --target --estimate --format",
    "sdk devices add": "--ssh --adb --usb --target --label --identity-file --jump --password --probe --json",
}
_WIDEST = 100
_EXAMPLES = ("Example:", "In CI:", "Of a header:")
_GAP = 2
_WIDEST_NAMES = 30
_TWO_HELPS = (("-h", "Show the options that most people need."), ("    --help", "Show all options."))
_ONE_HELP = (("-h, --help", "Show this help."),)


def help_text(command: Any, context: Any, *, short: bool) -> str:
    """Return a command's help, at most as wide as the terminal.

    Args:
        command: Typer's, of any of its versions: their common attributes are read.
        context: of the command.
        short: leave out what `MOST_USED` does not name.
    """
    width = min(_WIDEST, shutil.get_terminal_size().columns)
    named = MOST_USED.get(context.command_path, "").split()
    short = short and bool(named)
    shown = [each for each in command.params if not getattr(each, "hidden", False) and each.name != "help"]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    if short:
        order = {flag: place for place, flag in enumerate(named)}
        options = sorted((each for each in options if each.opts[0] in order), key=lambda each: order[each.opts[0]])
    parts = [_usage(command, context, arguments), *_paragraphs(command.help or "", width)]
    parts += _section("Arguments", [(_argument_name(each), _help_of(each, context)) for each in arguments], width)
    groups: dict[str, list[tuple[str, str]]] = {}
    for each in options:
        panel = "" if short else getattr(each, "rich_help_panel", None)
        groups.setdefault(panel or "Options", []).append((_names(each), _help_of(each, context)))
    groups.setdefault("Options", []).extend(_TWO_HELPS if named else _ONE_HELP)
    for panel, rows in groups.items():
        parts += _section(panel, rows, width)
    subcommands = getattr(command, "commands", {})
    rows = [(name, _first_sentence(each.help or "")) for name, each in subcommands.items() if not each.hidden]
    parts += _section("Commands", rows, width)
    if short:
        parts.append(f"`{context.command_path} --help` shows all options.")
    return "\n\n".join(parts)


def _usage(command: Any, context: Any, arguments: Sequence[Any]) -> str:
    words = [context.command_path, "[OPTIONS]", *map(_usage_word, arguments)]
    if hasattr(command, "commands"):
        words.append("[COMMAND]" if command.invoke_without_command else "COMMAND")
    return f"Usage: {' '.join(words)}"


def _usage_word(argument: Any) -> str:
    word = _argument_name(argument)
    return word if argument.required else f"[{word}]"


def _argument_name(argument: Any) -> str:
    name = (argument.metavar or argument.name.upper()).removesuffix("...").strip("[]")
    return name if argument.nargs == 1 else f"{name}..."


def _names(option: Any) -> str:
    """The short flag first; options without one are indented, so that the long flags stand in a column."""
    short = [flag for flag in option.opts if not flag.startswith("--")]
    long = [*(flag for flag in option.opts if flag.startswith("--")), *option.secondary_opts]
    names = ", ".join([*short, *long]) if short else f"    {', '.join(long)}"
    return names if option.is_flag else f"{names} {option.metavar}"


def _help_of(parameter: Any, context: Any) -> str:
    record = parameter.get_help_record(context)
    return " ".join(str(record[1]).split()) if record else ""


def _first_sentence(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _paragraphs(text: str, width: int) -> Iterator[str]:
    for paragraph in filter(None, inspect.cleandoc(text).split("\n\n")):
        line = " ".join(paragraph.split())
        # An example stays one line, so that it can be copied.
        yield line if line.startswith(_EXAMPLES) else textwrap.fill(line, width)


def _section(title: str, rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    if not rows:
        return
    column = min(_WIDEST_NAMES, max(len(names) for names, _ in rows)) + 2 + _GAP
    lines = [f"{title}:"]
    for names, text in rows:
        first, *rest = textwrap.wrap(text, max(20, width - column), break_on_hyphens=False) or [""]
        name = f"  {names}"
        if len(name) + _GAP > column:
            lines += [name, f"{'':{column}}{first}"]
        else:
            lines.append(f"{name:{column}}{first}".rstrip())
        lines += [f"{'':{column}}{line}" for line in rest]
    yield "\n".join(lines)
