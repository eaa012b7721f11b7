"""A schedule as JSON: what programs read, write and change, and what `targets/schedule/replay_plugin.cpp` applies.

Each directive is a list: the call's name and its arguments. An expression is an object with its operator as the only
key (`{"==": [{"stride": []}, 1]}`, and `{"radius": []}` is a parameter), a stage of another Func is `["g", 0]`, a value
of an enumeration is written as in C++ (`"TailStrategy::RoundUp"`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from halide_autotune.autotune_loop.schedule.calls import Argument, Call, call_of, directive_of
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import Directive, RFactor
from halide_autotune.autotune_loop.schedule.model import (
    Accessor,
    ByIndex,
    ByName,
    Clone,
    DimensionList,
    Intermediate,
    Origin,
    Parameter,
    Provenance,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Variable,
    Wrapper,
)
from halide_autotune.autotune_loop.schedule.parse_values import ENUMERATIONS
from halide_autotune.autotune_loop.schedule.values import Expression, Source, Stage, Text
from halide_autotune.targets.errors import GeneratorError

# Far above the largest real schedule; input is bounded.
_MAXIMUM_CHARACTERS = 64 * 2**20


def print_json(schedule: Schedule) -> str:
    """The schedule as one JSON object, a line for each Func, variable and stage. Equal schedules give equal text.

    Raises:
        GeneratorError: the schedule is inconsistent.
    """
    check_schedule(schedule)
    told = schedule.provenance
    provenance = None if told is None else [told.autoscheduler, told.target, list(map(list, told.parameters))]
    lists: Mapping[str, list[Any]] = {
        "funcs": [{"id": func.identifier, **_origin(func.origin)} for func in schedule.funcs],
        "parameters": [{"id": p.identifier, "name": p.name, "field": p.field} for p in schedule.parameters],
        "variables": [
            {"id": variable.identifier, "reduction": variable.is_reduction, **_source(variable.source)}
            for variable in schedule.variables
        ],
        "stages": [
            {
                "func": stage.func,
                "update": stage.update,
                "if": list(map(_value, stage.conditions)),
                "do": list(map(_call, stage.directives)),
            }
            for stage in schedule.stages
        ],
    }
    head = f'"function_name": {json.dumps(schedule.function_name)},\n"provenance": {json.dumps(provenance)}'
    body = [
        f'"{name}": [' + ",".join(f"\n  {json.dumps(item, ensure_ascii=False)}" for item in items) + "]"
        for name, items in lists.items()
    ]
    return "{" + ",\n".join([head, *body]) + "}\n"


def parse_json(text: str) -> Schedule:
    """The schedule that `print_json` wrote, or a program that writes the same.

    Raises:
        GeneratorError: it is not JSON, or not of a schedule.
    """
    if len(text) > _MAXIMUM_CHARACTERS:
        raise GeneratorError(f"The schedule has {len(text):,} characters; the limit is {_MAXIMUM_CHARACTERS:,}.")
    try:
        schedule = _schedule(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise GeneratorError(
            f"The schedule is not JSON as `sdk schedule show --format json` prints it: {why}.",
            next_step="Compare it with what that command prints.",
        ) from error
    check_schedule(schedule)
    return schedule


def _origin(origin: Origin) -> dict[str, Any]:
    match origin:
        case ByIndex(index):
            return {"index": index}
        case ByName(name):
            return {"name": name}
        case Wrapper(of, consumers):
            return {"wrapper_of": of, "for": list(consumers)}
        case Clone(of, consumers):
            return {"clone_of": of, "for": list(consumers)}
        case Intermediate():
            return {"rfactor": True}


def _source(source: str | Accessor) -> dict[str, Any]:
    if isinstance(source, str):
        return {"name": source}
    place = {"func": source.func, "update": source.update}
    return {**place, "list": source.dimensions.value, "position": source.position}


def _call(directive: Directive) -> list[Any]:
    call = call_of(directive)
    made = [directive.intermediate] if isinstance(directive, RFactor) else []
    return [call.method, *map(_value, call.arguments), *made]


def _value(argument: Argument) -> Any:
    match argument:
        case tuple():
            return list(map(_value, argument))
        case Enum():
            return f"{type(argument).__name__}::{argument.value}"
        case Stage(func, update):
            return [func, update]
        case Source(word) | Text(word):
            return word
        case Expression(operator, operands):
            return {operator: list(map(_value, operands))}
        case _:
            return argument


def _schedule(data: Any) -> Schedule:
    told = data["provenance"]
    return Schedule(
        _text(data["function_name"]),
        tuple(ScheduledFunc(_text(item["id"]), _parsed_origin(item)) for item in data["funcs"]),
        tuple(Variable(_text(v["id"]), v["reduction"] is True, _parsed_source(v)) for v in data["variables"]),
        tuple(map(_parsed_stage, data["stages"])),
        None if told is None else Provenance(told[0], told[1], tuple((key, value) for key, value in told[2])),
        tuple(Parameter(*(_text(item[key]) for key in ("id", "name", "field"))) for item in data["parameters"]),
    )


def _parsed_origin(item: Any) -> Origin:
    if "index" in item:
        return ByIndex(int(item["index"]))
    if "name" in item:
        return ByName(_text(item["name"]))
    if "wrapper_of" in item:
        return Wrapper(_text(item["wrapper_of"]), tuple(map(_text, item["for"])))
    if "clone_of" in item:
        return Clone(_text(item["clone_of"]), tuple(map(_text, item["for"])))
    return Intermediate()


def _parsed_source(item: Any) -> str | Accessor:
    if "name" in item:
        return _text(item["name"])
    return Accessor(_text(item["func"]), _update(item), DimensionList(item["list"]), int(item["position"]))


def _parsed_stage(item: Any) -> StageSchedule:
    conditions = tuple(map(_parsed, item["if"]))
    return StageSchedule(_text(item["func"]), _update(item), tuple(map(_parsed_call, item["do"])), conditions)


def _parsed_call(item: Any) -> Directive:
    method, *arguments = map(_parsed, item)
    made = [_text(arguments.pop())] if method == "rfactor" else []
    directive = directive_of(Call(_text(method), tuple(arguments)))
    if directive is None:
        raise ValueError(f"{method} with these arguments")
    return replace(directive, intermediate=made[0]) if isinstance(directive, RFactor) else directive


def _parsed(value: Any) -> Any:
    match value:
        case list():
            return tuple(map(_parsed, value))
        case dict():
            ((operator, operands),) = value.items()
            return Expression(operator, tuple(map(_parsed, operands)))
        case str() if value.partition("::")[0] in ENUMERATIONS:
            kind, _, name = value.partition("::")
            return ENUMERATIONS[kind](name)
        case str() | int() | None:
            return value
    raise ValueError(value)


def _update(item: Any) -> int | None:
    update = item["update"]
    if update is not None and not isinstance(update, int):
        raise TypeError(f"{update!r} is not the number of an update")
    return update


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
