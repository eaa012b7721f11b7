"""Directives as calls, for the parser and for the printers of C++ and Python.

A directive's fields are its call's arguments, in order; only the calls in `call_of` and `_fields_of` differ from that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from autotune_loop.schedule.directives import (
    OUTERMOST,
    ROOT,
    ComputeAt,
    Directive,
    GpuBlocks,
    GpuThreads,
    LoopLevel,
    MemoryType,
    Parallel,
    RFactor,
    StoreAt,
    TailStrategy,
)

# The name of a Func or a variable, a number, a value of an enumeration, or several in braces.
Argument = str | int | TailStrategy | MemoryType | tuple["Argument", ...]


@dataclass(frozen=True)
class Call:
    """`.method(arguments)`."""

    method: str
    arguments: tuple[Argument, ...]


def _method_of(kind: type) -> str:
    """Halide's name of `ComputeAt` is `compute_at`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


_KINDS: Mapping[str, Callable[..., Directive]] = {_method_of(kind): kind for kind in get_args(Directive)}


def call_of(directive: Directive) -> Call:
    """The call that makes `directive`; Halide's C++ names."""
    method = _method_of(type(directive))
    match directive:
        case ComputeAt(level) | StoreAt(level):
            if level.func is None or level.variable is None:
                return Call(method.replace("_at", "_root"), ())
            return Call(method, (level.func, level.variable))
        case GpuBlocks(variables) | GpuThreads(variables):
            return Call(method, variables)
        case RFactor(preserved):
            return Call(method, (preserved,))
        case Parallel(variable, None):
            return Call(method, (variable,))
        case _:
            values = [getattr(directive, field.name) for field in fields(directive)]
            return Call(method, tuple(value for value in values if value is not TailStrategy.AUTO))


def print_call(call: Call, *, scope: str = "", member: str = "::") -> str:
    """A call as C++ has it; Python has another `scope` before a type's name, and a dot before its `member`."""

    def text(argument: Argument) -> str:
        if isinstance(argument, tuple):
            return "{" + ", ".join(map(text, argument)) + "}"
        if isinstance(argument, TailStrategy | MemoryType):
            return f"{scope}{type(argument).__name__}{member}{argument.value}"
        return f"{scope}Var{member}outermost()" if argument == OUTERMOST else str(argument)

    return f".{call.method}({', '.join(map(text, call.arguments))})"


def directive_of(call: Call) -> Directive | None:
    """The directive that `call` makes, with the call's names; None if no autoscheduler writes such a call.

    `rfactor` gives an intermediate without a name.
    """
    match call:
        case Call("compute_root", ()):
            return ComputeAt(ROOT)
        case Call("store_root", ()):
            return StoreAt(ROOT)
        # What Li2018 writes for gpu_threads of a reduction variable; Halide has no such method.
        case Call("r_gpu_threads", (str(variable),)):
            return GpuThreads((variable,))
    kind = _KINDS.get(call.method)
    if kind is None:
        return None
    values, (types, required) = _fields_of(call), _declared(kind)
    if not required <= len(values) <= len(types) or not all(map(_fits, values, types)):
        return None
    if call.method == "tile" and len({len(value) for value in values if isinstance(value, tuple)}) != 1:
        return None
    return kind(*values)


def _fields_of(call: Call) -> tuple[Any, ...]:
    """The values of a directive's fields, as far as the call has them."""
    match call:
        case Call("compute_at" | "store_at", (str(func), str(variable))):
            return (LoopLevel(func, variable),)
        case Call("reorder" | "reorder_storage", (str(), *_)):
            return (call.arguments,)
        case Call("gpu_blocks" | "gpu_threads", (_,) | (_, _) | (_, _, _)):
            return (call.arguments,)
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


def _fits(value: object, declared: Any) -> bool:
    """Whether a value has a field's type; a tuple of any length has at least one item."""
    if get_origin(declared) is not tuple:
        return isinstance(value, declared)
    if not isinstance(value, tuple) or not value:
        return False
    items = get_args(declared)
    of_each = [items[0]] * len(value) if items[-1] is Ellipsis else items
    return len(value) == len(of_each) and all(map(_fits, value, of_each))
