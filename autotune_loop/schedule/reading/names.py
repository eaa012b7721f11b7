"""The names of a pipeline that is read, and the identifiers for them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from halide_autotune.autotune_loop.schedule.check import make_identifier
from halide_autotune.autotune_loop.schedule.model import Accessor, DimensionList, Parameter, Variable
from halide_autotune.autotune_loop.schedule.values import OUTERMOST, Expression, Number

# What nobody has named: Halide makes a letter and a number of it.
_UNNAMED = re.compile(r"[a-z][0-9]+(?:\$[a-z0-9]+)?")


class ReadNames:
    """From Halide's names to identifiers; that of an unnamed variable says what it comes from.

    Args:
        funcs: those of the scheduled pipeline, by name.
        plain: those of the plain pipeline.

    Attributes:
        differences: what could not be told, a sentence each.
        used_funcs: identifiers of the Funcs that others name.
    """

    def __init__(self, funcs: Mapping[str, Any], plain: Mapping[str, Any]) -> None:
        self.differences: list[str] = []
        self.used_funcs: set[str] = set()
        self._taken: set[str] = set()
        self._funcs: dict[str, str] = {}
        for name in funcs:
            self._funcs[name] = self._new(name)
        self._parameters: dict[tuple[str, str], Parameter] = {}
        self._variables: dict[tuple[str, bool], Variable] = {}
        # Of variables without a name: where the pipeline has them, or what they are called here.
        self._sources: dict[tuple[str, bool], Accessor] = {}
        self._called: dict[tuple[str, bool], str] = {}
        for name, func in funcs.items():
            if name in plain:
                self._find_unnamed(func, plain[name])
            for stage in func["stages"]:
                self._find_made(stage)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those that were asked for."""
        return tuple(self._parameters.values())

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Those that were asked for: Vars, then RVars, by identifier."""
        return tuple(sorted(self._variables.values(), key=lambda v: (v.is_reduction, v.identifier)))

    def func(self, name: str) -> str:
        """The identifier of a Func."""
        return self._funcs[name]

    def use_func(self, name: str) -> None:
        """Note that a schedule names this Func."""
        self.used_funcs.add(self._funcs[name])

    def knows_func(self, name: str) -> bool:
        """Whether the pipeline has this Func."""
        return name in self._funcs

    def variable(self, name: str, *, is_reduction: bool = False) -> str:
        """The identifier of a variable."""
        if name == OUTERMOST:
            return OUTERMOST
        key = (name, is_reduction)
        if key not in self._variables:
            source = self._sources.get(key)
            if source is not None:
                self.used_funcs.add(source.func)
            self._variables[key] = Variable(self._new(self._called.get(key, name)), is_reduction, source or name)
        return self._variables[key].identifier

    def parameter(self, name: str, field: str) -> str:
        """The identifier of an input or output, or of a field of it."""
        key = (name, field)
        if key not in self._parameters:
            called = name if field in ("value", "buffer") else f"{name}_{field}"
            self._parameters[key] = Parameter(self._new(called), name, field)
        return self._parameters[key].identifier

    def number(self, value: Any, where: str) -> Number | None:
        """A number or an expression; None, and a difference, if it has what a schedule cannot have."""
        told = self._told(value)
        if told is None:
            self.differences.append(f"{where} cannot be told: {_shown(value)}")
        return told

    def _told(self, value: Any) -> Number | None:
        if isinstance(value, int):
            return value
        if "parameter" in value:
            return Expression(self.parameter(value["parameter"], value["field"]))
        if "operator" not in value:
            return None
        operands = [self._told(each) for each in value["operands"]]
        told = tuple(each for each in operands if each is not None)
        if len(told) < len(operands):
            return None
        numbers = tuple(each for each in told if isinstance(each, int))
        return _folded(value["operator"], numbers) if len(numbers) == len(told) else Expression(value["operator"], told)

    def _new(self, name: str) -> str:
        identifier = make_identifier(name, self._taken)
        self._taken.add(identifier)
        return identifier

    def _find_unnamed(self, func: Mapping[str, Any], plain: Mapping[str, Any]) -> None:
        """Where the plain pipeline has what nobody named: its name may be another one in another process."""
        identifier = self._funcs[func["name"]]
        for position, name in enumerate(func["args"]):
            if _UNNAMED.fullmatch(name):
                self._sources.setdefault((name, False), Accessor(identifier, None, DimensionList.ARGS, position))
        for place, (stage, before) in enumerate(zip(func["stages"], plain["stages"], strict=False)):
            is_same = len(stage["reductions"]) == len(before["reductions"])
            for position, reduction in enumerate((stage if is_same else before)["reductions"]):
                if _UNNAMED.fullmatch(reduction["name"]):
                    accessor = Accessor(identifier, place - 1, DimensionList.RVARS, position)
                    self._sources.setdefault((reduction["name"], True), accessor)

    def _find_made(self, stage: Mapping[str, Any]) -> None:
        """Name what splits and the like make without a name."""
        reductions = {dim["name"] for dim in stage["dims"] if dim["is_reduction"]}
        for split in stage["splits"]:
            made = [("outer", "o"), ("inner", "i")] if split["kind"] == "split" else [("outer", "n")]
            if split["kind"] == "fuse":
                made = [("old", "f")]
            for key, part in made:
                *before, name = split[key].split(".")
                if _UNNAMED.fullmatch(name) and before and name != before[-1]:
                    is_reduction = any(full.startswith(split[key]) for full in reductions)
                    stem = self._called.get((before[-1], is_reduction), before[-1])
                    self._called.setdefault((name, is_reduction), f"{stem}_{part}")
        for specialization in stage["specializations"]:
            self._find_made(specialization["stage"])


# Halide rounds quotients down where Python does, for divisors above 0.
_FOLDED: Mapping[str, Callable[..., int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
}


def _folded(name: str, numbers: tuple[int, ...]) -> int | None:
    """What an operator makes of numbers that are known; None for those that schedules seldom have."""
    if name not in _FOLDED or (name in ("/", "%") and numbers[1] <= 0):
        return None
    return _FOLDED[name](*numbers)


def _shown(value: Any) -> str:
    """An expression with what cannot be told, for people."""
    if isinstance(value, int):
        return str(value)
    if "operator" in value:
        return f"{value['operator']}({', '.join(map(_shown, value['operands']))})"
    return str(value.get("text", value.get("parameter", "?")))
