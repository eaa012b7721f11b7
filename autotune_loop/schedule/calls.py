"""Directives as calls: one table for the parser and for the printers of C++ and Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from autotune_loop.schedule.directives import (
    ROOT,
    Atomic,
    BoundExtent,
    ComputeAt,
    Directive,
    Fuse,
    Gpu,
    GpuBlocks,
    GpuSingleThread,
    GpuThreads,
    LoopLevel,
    MemoryType,
    Parallel,
    Reorder,
    ReorderStorage,
    RFactor,
    Split,
    StoreAt,
    StoreIn,
    TailStrategy,
    Tile,
    Unroll,
    Unscheduled,
    Vectorize,
)


@dataclass(frozen=True)
class Name:
    """The name of a Func or a variable as an argument; its position decides which."""

    text: str


# A name, a number, a value of an enumeration, or several in braces.
Argument = Name | int | TailStrategy | MemoryType | tuple["Argument", ...]


@dataclass(frozen=True)
class Call:
    """`.method(arguments)`."""

    method: str
    arguments: tuple[Argument, ...]


def call_of(directive: Directive) -> Call:
    """The call that makes `directive`; Halide's C++ names."""
    match directive:
        case ComputeAt(level) | StoreAt(level):
            method = "compute" if isinstance(directive, ComputeAt) else "store"
            if level.func is None or level.variable is None:
                return Call(f"{method}_root", ())
            return Call(f"{method}_at", (Name(level.func), Name(level.variable)))
        case StoreIn(memory):
            return Call("store_in", (memory,))
        case BoundExtent(variable, extent):
            return Call("bound_extent", (Name(variable), extent))
        case Split(old, outer, inner, factor, tail):
            return Call("split", (Name(old), Name(outer), Name(inner), factor, *_tail(tail)))
        case Tile(previous, outers, inners, factors, tail):
            return Call("tile", (_names(previous), _names(outers), _names(inners), factors, *_tail(tail)))
        case Fuse(inner, outer, fused):
            return Call("fuse", (Name(inner), Name(outer), Name(fused)))
        case Parallel(variable, task_size, tail):
            if task_size is None:
                return Call("parallel", (Name(variable),))
            return Call("parallel", (Name(variable), task_size, *_tail(tail)))
        case Gpu(block, thread):
            return Call("gpu", (Name(block), Name(thread)))
        case RFactor(preserved):
            return Call("rfactor", (tuple(_names(pair) for pair in preserved),))
        case Reorder(variables) | ReorderStorage(variables):
            return Call(_METHODS[type(directive)], (_names(variables),))
        case GpuBlocks(variables) | GpuThreads(variables):
            return Call(_METHODS[type(directive)], _names(variables))
        case Vectorize(variable) | Unroll(variable):
            return Call(_METHODS[type(directive)], (Name(variable),))
        case Atomic() | Unscheduled() | GpuSingleThread():
            return Call(_METHODS[type(directive)], ())


_METHODS: dict[type, str] = {
    Reorder: "reorder",
    ReorderStorage: "reorder_storage",
    GpuBlocks: "gpu_blocks",
    GpuThreads: "gpu_threads",
    Vectorize: "vectorize",
    Unroll: "unroll",
    Atomic: "atomic",
    Unscheduled: "unscheduled",
    GpuSingleThread: "gpu_single_thread",
}


def _names(names: tuple[str, ...]) -> tuple[Name, ...]:
    return tuple(Name(name) for name in names)


def _tail(tail: TailStrategy) -> tuple[TailStrategy, ...]:
    return () if tail is TailStrategy.AUTO else (tail,)


def directive_of(call: Call) -> Directive | None:
    """The directive that `call` makes, with the call's names; None if no autoscheduler writes such a call.

    `rfactor` gives an intermediate without a name.
    """
    reader = _READERS.get(call.method)
    if reader is None:
        return None
    try:
        return reader(*call.arguments)
    except _WrongArgumentError:
        return None
    except TypeError:  # too few or too many
        return None


class _WrongArgumentError(Exception):
    """An argument of the wrong kind."""


_Value = TypeVar("_Value", bound=int | Enum)


def _as(kind: type[_Value], argument: Argument) -> _Value:
    if not isinstance(argument, kind):
        raise _WrongArgumentError
    return argument


def _name(argument: Argument) -> str:
    if not isinstance(argument, Name):
        raise _WrongArgumentError
    return argument.text


def _list(argument: Argument) -> tuple[str, ...]:
    if not isinstance(argument, tuple) or not argument:
        raise _WrongArgumentError
    return tuple(_name(item) for item in argument)


def _split(
    old: Argument, outer: Argument, inner: Argument, factor: Argument, tail: Argument = TailStrategy.AUTO
) -> Split:
    return Split(_name(old), _name(outer), _name(inner), _as(int, factor), _as(TailStrategy, tail))


def _tile(*arguments: Argument) -> Tile:
    tail = TailStrategy.AUTO
    if arguments and isinstance(arguments[-1], TailStrategy):
        tail = arguments[-1]
        arguments = arguments[:-1]
    if len(arguments) == 8:  # of two variables, without braces
        pairs = [arguments[i : i + 2] for i in (0, 2, 4, 6)]
        return _tile(*pairs, tail)
    if len(arguments) != 4 or not isinstance(arguments[3], tuple):
        raise _WrongArgumentError
    factors = tuple(_as(int, factor) for factor in arguments[3])
    tile = Tile(_list(arguments[0]), _list(arguments[1]), _list(arguments[2]), factors, tail)
    if not len(tile.previous) == len(tile.outers) == len(tile.inners) == len(factors):
        raise _WrongArgumentError
    return tile


def _several(arguments: tuple[Argument, ...]) -> tuple[str, ...]:
    if len(arguments) == 1 and isinstance(arguments[0], tuple):
        return _list(arguments[0])
    return _list(arguments)


def _up_to_three(arguments: tuple[Argument, ...]) -> tuple[str, ...]:
    if len(arguments) > 3:
        raise _WrongArgumentError
    return _list(arguments)


def _parallel(variable: Argument, size: Argument | None = None, tail: Argument = TailStrategy.AUTO) -> Parallel:
    return Parallel(_name(variable), None if size is None else _as(int, size), _as(TailStrategy, tail))


def _rfactor(preserved: Argument) -> RFactor:
    if not isinstance(preserved, tuple):
        raise _WrongArgumentError
    pairs = [_list(pair) for pair in preserved]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise _WrongArgumentError
    return RFactor(tuple((pair[0], pair[1]) for pair in pairs), "")


_READERS: dict[str, Callable[..., Directive]] = {
    "compute_root": lambda: ComputeAt(ROOT),
    "compute_at": lambda func, variable: ComputeAt(LoopLevel(_name(func), _name(variable))),
    "store_root": lambda: StoreAt(ROOT),
    "store_at": lambda func, variable: StoreAt(LoopLevel(_name(func), _name(variable))),
    "store_in": lambda memory: StoreIn(_as(MemoryType, memory)),
    "bound_extent": lambda variable, extent: BoundExtent(_name(variable), _as(int, extent)),
    "reorder_storage": lambda *variables: ReorderStorage(_several(variables)),
    "split": _split,
    "tile": _tile,
    "fuse": lambda inner, outer, fused: Fuse(_name(inner), _name(outer), _name(fused)),
    "reorder": lambda *variables: Reorder(_several(variables)),
    "vectorize": lambda variable: Vectorize(_name(variable)),
    "unroll": lambda variable: Unroll(_name(variable)),
    "parallel": _parallel,
    "gpu_blocks": lambda *variables: GpuBlocks(_up_to_three(variables)),
    "gpu_threads": lambda *variables: GpuThreads(_up_to_three(variables)),
    # What Li2018 writes for gpu_threads of a reduction variable; Halide has no such method.
    "r_gpu_threads": lambda variable: GpuThreads((_name(variable),)),
    "gpu": lambda block, thread: Gpu(_name(block), _name(thread)),
    "gpu_single_thread": GpuSingleThread,
    "atomic": Atomic,
    "unscheduled": Unscheduled,
    "rfactor": _rfactor,
}
