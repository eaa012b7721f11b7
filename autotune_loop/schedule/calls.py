"""Directives as calls, for the parser, for the printers of C++ and Python, and as JSON.

A directive's fields are its call's arguments, in order; only the calls in `call_of` and `_fields_of` differ from that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from halide_autotune.autotune_loop.schedule.directives import (
    ComputeAt,
    Directive,
    GpuBlocks,
    GpuThreads,
    HoistStorage,
    PartitionLoop,
    RFactor,
    StoreAt,
)
from halide_autotune.autotune_loop.schedule.values import (
    BINARY_OPERATORS,
    OUTERMOST,
    ROOT,
    DeviceAPI,
    Expression,
    LoopLevel,
    Source,
    Stage,
    Text,
)

MAXIMUM_GPU_DIMENSIONS = 3
# The name of a Func or a variable, a number, a value of an enumeration, or several in braces.
Argument = str | int | bool | Enum | Stage | Source | Text | Expression | tuple["Argument", ...]


@dataclass(frozen=True)
class Call:
    """`.method(arguments)`."""

    method: str
    arguments: tuple[Argument, ...]


def _method_of(kind: type) -> str:
    """Halide's name of `ComputeAt` is `compute_at`."""
    return "partition" if kind is PartitionLoop else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


_KINDS: Mapping[str, Callable[..., Directive]] = {_method_of(kind): kind for kind in get_args(Directive)}
_LEVELS = {_method_of(kind): kind for kind in (ComputeAt, StoreAt, HoistStorage)}
_AT_ROOT: Mapping[str, Callable[..., Directive]] = {
    "compute_root": ComputeAt,
    "store_root": StoreAt,
    "hoist_storage_root": HoistStorage,
}


def call_of(directive: Directive) -> Call:
    """The call that makes `directive`; Halide's C++ names."""
    method = _method_of(type(directive))
    match directive:
        case ComputeAt(level) | StoreAt(level) | HoistStorage(level):
            if level.func is None or level.variable is None:
                return Call(method.removesuffix("_at") + "_root", ())
            return Call(method, (level.func, level.variable))
        case GpuBlocks(variables, device) | GpuThreads(variables, device):
            return Call(method, variables if device is DeviceAPI.DEFAULT_GPU else (*variables, device))
        case RFactor(preserved):
            return Call(method, (preserved,))
    declared = fields(directive)
    values = [getattr(directive, field.name) for field in declared]
    while values and values[-1] == declared[len(values) - 1].default:
        values.pop()
    return Call(method, tuple(values))


def print_call(call: Call, *, scope: str = "", member: str = "::") -> str:
    """A call as C++ has it; Python has another `scope` before a type's name, and a dot before its `member`."""
    true, false = ("true", "false") if member == "::" else ("True", "False")

    def text(argument: Argument) -> str:
        match argument:
            case tuple():
                return "{" + ", ".join(map(text, argument)) + "}"
            case bool():
                return true if argument else false
            case Enum():
                return f"{scope}{type(argument).__name__}{member}{argument.value}"
            case Source(identifier):
                return identifier
            case Text(words):
                return f'"{words}"'
            case Expression():
                return print_expression(argument)
        return f"{scope}Var{member}outermost()" if argument == OUTERMOST else str(argument)

    return f".{call.method}({', '.join(map(text, call.arguments))})"


def print_expression(expression: Expression | int) -> str:
    """An expression as C++ has it, with parentheses around every operator."""
    if isinstance(expression, int):
        return str(expression)
    operator, operands = expression.operator, tuple(map(print_expression, expression.operands))
    if operator in BINARY_OPERATORS:
        return f"({f' {operator} '.join(operands)})"
    if operator == "!":
        return f"!{operands[0]}"
    return f"{operator}({', '.join(operands)})" if operands else operator


def directive_of(call: Call) -> Directive | None:
    """The directive that `call` makes, with the call's names; None if there is none.

    `rfactor` gives an intermediate without a name.
    """
    match call:
        case Call(method, ()) if method in _AT_ROOT:
            return _AT_ROOT[method](ROOT)
        # What Li2018 writes for gpu_threads of a reduction variable; Halide has no such method.
        case Call("r_gpu_threads", (str(variable),)):
            return GpuThreads((variable,))
    kind = _KINDS.get(call.method)
    if kind is None:
        return None
    values, (types, required) = _fields_of(call), _declared(kind)
    if not required <= len(values) <= len(types):
        return None
    try:
        converted = [_converted(value, declared) for value, declared in zip(values, types, strict=False)]
    except ValueError:
        return None
    if call.method == "tile" and len({len(value) for value in converted if isinstance(value, tuple)}) != 1:
        return None
    return kind(*converted)


def _fields_of(call: Call) -> tuple[Any, ...]:
    """The values of a directive's fields, as far as the call has them."""
    match call:
        case Call(method, (str(func), str(variable))) if method in _LEVELS:
            return (LoopLevel(func, variable),)
        case Call("reorder" | "reorder_storage", (str(), *_)):
            return (call.arguments,)
        case Call("gpu_blocks" | "gpu_threads", (*variables, DeviceAPI() as device)):
            return tuple(variables), device
        case Call("gpu_blocks" | "gpu_threads", arguments) if len(arguments) <= MAXIMUM_GPU_DIMENSIONS:
            return (arguments,)
        case Call("tile", (str(), *_)):  # of two variables, without braces
            return (*(call.arguments[i : i + 2] for i in (0, 2, 4, 6)), *call.arguments[8:])
        case Call("rfactor", (preserved,)):
            return preserved, ""
        case _:
            return call.arguments


@cache
def _declared(kind: Any) -> tuple[list[Any], int]:
    """The types of a directive's fields, and how many have no default."""
    return list(get_type_hints(kind).values()), sum(field.default is MISSING for field in fields(kind))


def _converted(value: Any, declared: Any) -> Any:
    """The value as a field of the type `declared` has it; a tuple of any length has at least one item.

    Raises:
        ValueError: it has another type.
    """
    if get_origin(declared) is tuple:
        if not isinstance(value, tuple) or not value:
            raise ValueError(value)
        items = get_args(declared)
        of_each = [items[0]] * len(value) if items[-1] is Ellipsis else items
        return tuple(_converted(*pair) for pair in zip(value, of_each, strict=True))
    if isinstance(declared, UnionType):  # a number
        declared = Expression if isinstance(value, str) else get_args(declared)
    elif declared is Stage and isinstance(value, tuple):
        return Stage(*value)
    if isinstance(value, str) and declared not in (str, LoopLevel):
        return declared(value)
    if not isinstance(value, declared) or (isinstance(value, bool) and declared is not bool):
        raise ValueError(value)
    return value
