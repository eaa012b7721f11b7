"""The names of a schedule header: declared and undeclared ones, and the identifiers for them."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

from halide_autotune.autotune_loop.schedule.check import make_identifier
from halide_autotune.autotune_loop.schedule.directives import (
    ComputeAt,
    ComputeWith,
    Directive,
    Fuse,
    HoistStorage,
    Prefetch,
    Rename,
    RFactor,
    Split,
    StoreAt,
    Tile,
)
from halide_autotune.autotune_loop.schedule.model import (
    Accessor,
    ByIndex,
    ByName,
    Clone,
    Intermediate,
    Origin,
    Parameter,
    ScheduledFunc,
    Variable,
    Wrapper,
)
from halide_autotune.autotune_loop.schedule.text import wrong
from halide_autotune.autotune_loop.schedule.values import OUTERMOST, Expression, LoopLevel, Source, Stage

# Halide's name for a Var or RVar without one: a counter, which differs between processes.
_UNNAMED = re.compile(r"[vr][0-9]+")


# A Func's identifier and the update's number.
_Stage = tuple[str, int | None]


class ParsedNames:
    """From the words of a header to identifiers.

    Funcs and variables are looked up separately, because a header may use one name for both. Halide knows a variable
    by its name alone, so the same word in two blocks is the same variable.
    """

    def __init__(self) -> None:
        self._funcs: dict[str, ScheduledFunc] = {}
        self._parameters: dict[str, Parameter] = {}
        self._variables: dict[str, Variable] = {}
        self._variable_blocks: dict[str, int] = {}
        self._late: set[str] = set()
        self._made: set[tuple[str, int | None, str]] = set()
        self._taken: set[str] = set()
        self._declares_funcs = False

    @property
    def funcs(self) -> tuple[ScheduledFunc, ...]:
        """In the order of their first appearance; those that an rfactor makes, and theirs, come last."""
        return tuple(sorted(self._funcs.values(), key=lambda func: func.identifier in self._late))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """In the order of their declaration."""
        return tuple(self._parameters.values())

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Vars, then RVars, by identifier: some autoschedulers write them in random order."""
        return tuple(sorted(set(self._variables.values()), key=lambda v: (v.is_reduction, v.identifier)))

    def declare_func(self, word: str, origin: Origin, line: int) -> str:
        """A new Func; returns its identifier.

        Raises:
            GeneratorError: the word already names another Func.
        """
        if word in self._funcs:
            raise wrong(line, "a Func that is not declared yet", word)
        self._declares_funcs |= isinstance(origin, ByIndex | ByName)
        return self._add_func(word, origin)

    def wrapper(self, origin: Wrapper | Clone) -> str:
        """The identifier of `of.in(consumer)` and the like; such a Func need not be declared."""
        for func in self._funcs.values():
            if func.origin == origin:
                return func.identifier
        word = "_in_".join((origin.of, *origin.consumers))
        while word in self._funcs:
            word += "_"
        return self._add_func(word, origin)

    def func(self, word: str, line: int) -> str:
        """A Func's identifier. Where no Func is declared at all (Li2018), the word is its name in the pipeline.

        Raises:
            GeneratorError: other Funcs are declared and this is not.
        """
        if word not in self._funcs:
            if self._declares_funcs:
                raise wrong(line, "a declared Func", word)
            return self._add_func(word, ByName(word))
        return self._funcs[word].identifier

    def _add_func(self, word: str, origin: Origin) -> str:
        identifier = make_identifier(word, self._taken)
        self._taken.add(identifier)
        if isinstance(origin, Intermediate) or (
            isinstance(origin, Wrapper | Clone) and not self._late.isdisjoint((origin.of, *origin.consumers))
        ):
            self._late.add(identifier)
        self._funcs[word] = ScheduledFunc(identifier, origin)
        return identifier

    def declare_variable(self, word: str, source: str | Accessor, line: int, *, is_reduction: bool, block: int) -> None:
        """A `Var` or `RVar` of a header.

        Raises:
            GeneratorError: it is declared twice in one block, or as both.
        """
        known = self._variables.get(word)
        if known is None:
            self._add_variable(word, source, is_reduction)
        elif known.is_reduction != is_reduction or self._variable_blocks.get(word) == block:
            raise wrong(line, "a variable that is not declared yet", word)
        self._variable_blocks[word] = block

    def declare_parameter(self, word: str, name: str, field: str, line: int) -> None:
        """A parameter of the pipeline.

        Raises:
            GeneratorError: the word already names another parameter.
        """
        if word in self._parameters:
            raise wrong(line, "a parameter that is not declared yet", word)
        identifier = make_identifier(word, self._taken)
        self._taken.add(identifier)
        self._parameters[word] = Parameter(identifier, name, field)

    def expression(self, expression: Expression, line: int) -> Expression:
        """The expression with identifiers in place of words.

        Raises:
            GeneratorError: it names a parameter that is not declared.
        """
        if expression.operands:
            operands = tuple(o if isinstance(o, int) else self.expression(o, line) for o in expression.operands)
            return replace(expression, operands=operands)
        if expression.operator not in self._parameters:
            raise wrong(line, "a declared parameter", expression.operator)
        return Expression(self._parameters[expression.operator].identifier)

    def variable(self, word: str) -> str:
        """A variable's identifier; an undeclared one is known by its name."""
        if word == OUTERMOST:
            return OUTERMOST
        if word not in self._variables:
            # The variables of a reduction domain are called <domain>$x; a Var has no such sign.
            self._add_variable(word, word, "$" in word)
        return self._variables[word].identifier

    def _new_variable(self, word: str, old: str, part: str, stage: _Stage, *, is_reduction: bool | None = None) -> str:
        """The identifier of a variable that a directive makes from `old`; of its kind unless `is_reduction` is given.

        Li2018 leaves the names to Halide. They get stable ones here, which cannot collide with names that Halide makes
        while the schedule is applied.
        """
        if word not in self._variables and word != OUTERMOST:
            self.variable(old)
            parent = self._variables[old]
            is_reduction = parent.is_reduction if is_reduction is None else is_reduction
            name = word
            if _UNNAMED.fullmatch(word):
                stem = parent.source if isinstance(parent.source, str) else parent.identifier
                name = f"{stem}${part}"
                while (*stage, name) in self._made:
                    name += part
                self._made.add((*stage, name))
            same = (v for v in self._variables.values() if (v.source, v.is_reduction) == (name, is_reduction))
            known = next(same, None)
            if known is not None:
                self._variables[word] = known
            else:
                self._add_variable(word, name, is_reduction, name)
        return self.variable(word)

    def _add_variable(self, word: str, source: str | Accessor, is_reduction: bool, called: str = "") -> None:
        identifier = make_identifier(called or word, self._taken)
        self._taken.add(identifier)
        self._variables[word] = Variable(identifier, is_reduction, source)

    def resolve(self, directive: Directive, stage: _Stage, line: int) -> Directive:
        """The directive with identifiers in place of words.

        Args:
            stage: the Func's identifier and the update's number.

        Raises:
            GeneratorError: it names a Func that is not declared.
        """
        match directive:
            case ComputeAt(level) | StoreAt(level) | HoistStorage(level):
                return replace(directive, level=self._level(level, line))
            case ComputeWith(Stage(func, update)):
                directive = replace(directive, stage=Stage(self.func(func, line), update))
            case Prefetch(Source(word)):
                known = self._parameters.get(word)
                found = self.func(word, line) if known is None else known.identifier
                directive = replace(directive, source=Source(found))
            case Rename(old, new):
                old_identifier = self.variable(old)
                return Rename(old_identifier, self._new_variable(new, old, "n", stage))
            case Split(old, outer, inner):
                old_identifier = self.variable(old)
                outer = self._new_variable(outer, old, "o", stage)
                inner = self._new_variable(inner, old, "i", stage)
                factor = self._resolved(directive.factor, line)
                return replace(directive, old=old_identifier, outer=outer, inner=inner, factor=factor)
            case Tile(previous, outers, inners, factors):
                old_identifiers = self._resolved(previous, line)
                outers = tuple(self._new_variable(*pair, "o", stage) for pair in zip(outers, previous, strict=True))
                inners = tuple(self._new_variable(*pair, "i", stage) for pair in zip(inners, previous, strict=True))
                factors = self._resolved(factors, line)
                return replace(directive, previous=old_identifiers, outers=outers, inners=inners, factors=factors)
            case Fuse(inner, outer, fused):
                inner_identifier, outer = self.variable(inner), self.variable(outer)
                return Fuse(inner_identifier, outer, self._new_variable(fused, inner, "f", stage))
            case RFactor(preserved):
                pairs = tuple(
                    (self.variable(old), self._new_variable(new, old, "v", stage, is_reduction=False))
                    for old, new in preserved
                )
                return replace(directive, preserved=pairs)
        given = {field.name: getattr(directive, field.name) for field in fields(directive)}
        return replace(directive, **{name: self._resolved(value, line) for name, value in given.items()})

    def _resolved(self, value: Any, line: int) -> Any:
        match value:
            case tuple():
                return tuple(self._resolved(item, line) for item in value)
            case Expression():
                return self.expression(value, line)
            case str():
                return self.variable(value)
        return value

    def _level(self, level: LoopLevel, line: int) -> LoopLevel:
        if level.func is None or level.variable is None:
            return level
        return LoopLevel(self.func(level.func, line), self.variable(level.variable))
