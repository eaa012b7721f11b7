"""Options, each declared once: as a field of a frozen dataclass, with what a command line needs beside it.

    @dataclass(frozen=True)
    class Limits:
        rounds: Annotated[int, whole_number(1), Option("--num-batches", "-n", help="Rounds.", metavar="ROUNDS")] = 100

The field gives the option its type, its check and its default; `Option` its flags, its help and the rest. Command
lines, files and keyword arguments are read by the functions below, which all give the same messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.checks import Check, Unfit, nearest_hint
from halide_autotune.targets.values.records import check_of_type, plain

T = TypeVar("T")


@dataclass(frozen=True)
class OptionFacts:
    """In an annotation: what is known of an option beside its type, its check and its default.

    Attributes:
        flags: the long one first; none for an argument, or for an option that the command line does not have.
        metavar: what stands for its value.
        panel: where the help shows it.
        name: its keyword; the field's name if empty.
        parse: from the text of a command line (of a list or a mapping: from all of its texts) to a value that is still
            checked; None where the text is that value.
        shown: the default as a text that `parse` reads; empty where that is the value itself.
        complete: names the shell completion; empty for that of the type.
        is_argument: it has a place instead of a flag.
        is_fixed: it says what is tuned, so a resumed run keeps it.
    """

    flags: tuple[str, ...]
    help: str
    metavar: str = ""
    panel: str = ""
    name: str = ""
    parse: Callable[[Any], object] | None = None
    shown: str = ""
    complete: str = ""
    is_argument: bool = False
    is_fixed: bool = False


def Option(*flags: str, **details: Any) -> OptionFacts:
    """Return the facts for an annotation; the long flag comes first. An argument has no flag."""
    return OptionFacts(flags, **details)


@dataclass(frozen=True)
class DeclaredOption:
    """An option of a dataclass.

    Attributes:
        path: the fields that lead to it, its own last.
        hint: its type, without annotations.
    """

    path: tuple[str, ...]
    facts: OptionFacts
    hint: Any
    check: Check[Any]
    default: Any

    @property
    def keyword(self) -> str:
        """Its name as a keyword argument, unique among the options of a command."""
        return self.facts.name or self.path[-1]

    @property
    def takes_many(self) -> bool:
        """Whether it is a list or a mapping, given by repeating the flag."""
        return get_origin(self.hint) in (tuple, Mapping)

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.facts.flags[0] if self.facts.flags else self.keyword

    @property
    def file_key(self) -> str:
        """Its key in `sdk.toml`: the flag's words."""
        return self.label.removeprefix("--").replace("-", "_")

    def read(self, value: object, where: str = "") -> Any:
        """Return a value from a command line or a file, parsed where it is text and checked.

        Args:
            where: what messages call the option instead of its label.

        Raises:
            UsageError: it is not what the option takes; the message names the option.
        """
        name = where or self.label
        parse = self.facts.parse
        if parse is not None and isinstance(value, list if self.takes_many else str):
            try:
                value = parse(value)
            except UsageError as error:
                message = error.message if error.message.startswith("--") else f"{name}: {error.message}"
                raise UsageError(message, next_step=error.next_step) from error
        try:
            return self.check(plain(value))
        except Unfit as error:
            message = f"{name} must be {error}." if error.keys == ("",) else error.message(name)
            raise UsageError(message, next_step=error.next_step) from error


def options_of(kind: Any) -> tuple[DeclaredOption, ...]:
    """Return the options of a dataclass, and of the dataclasses that are its fields."""
    return _options_of(kind)


def option_of(kind: Any, keyword: str) -> DeclaredOption:
    """Return the option with a keyword; raises KeyError where there is none."""
    return {option.keyword: option for option in options_of(kind)}[keyword]


def with_values(record: T, values: Mapping[str, object]) -> T:
    """Return a record of options with other values, each by its keyword.

    Raises:
        UsageError: there is no such option, or its value is wrong.
    """
    known = {option.keyword: option for option in options_of(type(record))}
    for keyword, value in values.items():
        if keyword not in known:
            raise UsageError(f"There is no option {keyword!r}{nearest_hint(keyword, known)}.")
        record = _put(record, known[keyword].path, known[keyword].read(value))
    return record


def value_at(record: object, option: DeclaredOption) -> Any:
    """Return an option's value in a record."""
    for name in option.path:
        record = getattr(record, name)
    return record


def check_options(record: T) -> T:
    """Return a record of options if every value in it is right; a caller may have made it.

    Raises:
        UsageError: about the first that is not.
    """
    for option in options_of(type(record)):
        option.read(value_at(record, option))
    return record


def with_whole_paths(record: T, folder: Path | None = None) -> T:
    """Return a record of options whose paths mean the same in any folder.

    Args:
        folder: what they are relative to; None takes the current folder.
    """
    folder = folder or Path.cwd()
    for option in options_of(type(record)):
        value = value_at(record, option)
        if isinstance(value, Path):
            record = _put(record, option.path, folder / value)
        elif isinstance(value, tuple) and any(isinstance(item, Path) for item in value):
            record = _put(record, option.path, tuple(folder / item for item in value))
        elif isinstance(value, Mapping) and any(isinstance(item, Path) for item in value.values()):
            record = _put(record, option.path, {name: folder / item for name, item in value.items()})
    return record


def differing_options(old: T, new: T) -> list[DeclaredOption]:
    """Return the options whose values differ."""
    return [option for option in options_of(type(old)) if value_at(old, option) != value_at(new, option)]


def words_of(option: DeclaredOption, value: object) -> str:
    """Return an option with a value as one writes it on a command line."""
    if isinstance(value, Mapping):
        return " ".join(f"{option.label} {name}={item}" for name, item in value.items()) or f"no {option.label}"
    if isinstance(value, tuple):
        return " ".join(f"{option.label} {item}" for item in value) or f"no {option.label}"
    return f"no {option.label}" if value is None else f"{option.label} {plain(value)}"


def _put(record: Any, path: tuple[str, ...], value: object) -> Any:
    if len(path) > 1:
        value = _put(getattr(record, path[0]), path[1:], value)
    return replace(record, **{path[0]: value})


@cache
def _options_of(kind: Any) -> tuple[DeclaredOption, ...]:
    return tuple(_walk(kind, ()))


def _walk(kind: Any, path: tuple[str, ...]) -> Iterator[DeclaredOption]:
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint, here = hints[field.name], (*path, field.name)
        facts = next((item for item in get_args(hint) if isinstance(item, OptionFacts)), None)
        if facts is not None:
            default = field.default if field.default_factory is MISSING else field.default_factory()
            bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
            yield DeclaredOption(here, facts, bare, check_of_type(hint), default)
        elif is_dataclass(hint):
            yield from _walk(hint, here)
