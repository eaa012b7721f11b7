"""A command whose options are declared as fields of dataclasses: from the declarations to Typer's parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from halide_autotune.autotune_loop.specification.objective import complete_objective
from halide_autotune.sdk.options.completion import completion_of
from halide_autotune.targets.values.options import DeclaredOption, options_of, with_values
from halide_autotune.targets.values.records import plain

_CONTEXT = "typer_context"


class Takes:
    """In an annotation: which options a parameter of a command stands for.

    Args:
        kinds: dataclasses of options, for a parameter that is the mapping of those that a user has typed, by their
            keywords; none stands for the parameter's own dataclass.
        only: keywords of the options taken; empty takes all.
    """

    def __init__(self, *kinds: type[Any], only: Collection[str] = ()) -> None:
        self.kinds = kinds
        self.only = only


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its parameters that are dataclasses of options, or have a `Takes`."""
    parameters = inspect.signature(command, eval_str=True).parameters
    taken = {name: list(_taken(parameter.annotation)) for name, parameter in parameters.items()}
    own_context = next((name for name, each in parameters.items() if each.annotation is typer.Context), None)
    shown = []
    if own_context is None:
        shown.append(inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
    for name, parameter in parameters.items():
        if taken[name]:
            shown += [_typer_parameter(option) for option in taken[name]]
        else:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def call(**typed: Any) -> None:
        context = typed[own_context or _CONTEXT]
        explicit = {name for name in typed if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"}
        arguments: dict[str, Any] = {}
        for name, parameter in parameters.items():
            if not taken[name]:
                arguments[name] = typed[name]
                continue
            values = {
                option.keyword: option.read(_untyped(typed[option.keyword]))
                for option in taken[name]
                if option.keyword in explicit
            }
            kind = _bare(parameter.annotation)
            arguments[name] = values if get_origin(kind) is Mapping else with_values(kind(), complete_objective(values))
        command(**arguments)

    call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # `inspect` reads it
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return call


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _taken(annotation: Any) -> Iterator[DeclaredOption]:
    kind = _bare(annotation)
    takes = next((item for item in get_args(annotation) if isinstance(item, Takes)), Takes())
    for each in takes.kinds or ([kind] if is_dataclass(kind) else []):
        for option in options_of(each):
            has_place = option.facts.flags or option.facts.is_argument
            if has_place and (not takes.only or option.keyword in takes.only):
                yield option


def _typer_parameter(option: DeclaredOption) -> inspect.Parameter:
    facts = option.facts
    completion = completion_of(option)
    details: dict[str, Any] = {"help": facts.help, "metavar": facts.metavar or None, "autocompletion": completion}
    if facts.is_argument:
        info = typer.Argument(**details)
    else:
        info = typer.Option(*facts.flags, rich_help_panel=facts.panel or None, **details)
    default = facts.shown or plain(option.default)
    return inspect.Parameter(
        option.keyword,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if default in ([], {}) else default,
        annotation=Annotated[_typer_type(option), info],
    )


def _typer_type(option: DeclaredOption) -> Any:
    hint = option.hint
    some = next((kind for kind in get_args(hint) if kind is not type(None)), hint)
    if option.takes_many:
        return list[str] | None
    if option.facts.parse is not None or (isinstance(some, type) and issubclass(some, Enum)):
        some = str
    if some not in (bool, int, float, Path):
        some = str
    return some if option.default is not None else some | None


def _untyped(value: Any) -> object:
    return str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
