"""A restriction of parameter sets: an expression such as `tile_x * tile_y <= 65536`, read and never executed.

Only what is listed here is understood, so that an expression of a project's file can do nothing but compare numbers.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from halide_autotune.autotune_loop.parameters.tuned_parameter import as_number
from halide_autotune.targets.errors import UsageError

_LONGEST = 1000
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_NEXT_STEP = (
    "Use numbers, parameters, texts in quotes, + - * / // %, comparisons, and, or, not;"
    ' such as --restrict "tile_x * tile_y <= 65536".'
)

_Value = Fraction | bool | str
# From the values of parameters to the value of a part of the expression.
_Part = Callable[[Mapping[str, _Value]], Any]


@dataclass(frozen=True)
class Restriction:
    """A condition that parameter sets must fulfil.

    Attributes:
        text: as the user wrote it.
        names: the parameters in it.
    """

    text: str
    names: frozenset[str]
    _part: _Part

    def holds(self, values: Mapping[str, str]) -> bool:
        """Whether a set fulfils it.

        Args:
            values: of all its parameters, at least.

        Raises:
            UsageError: it divides by zero, or compares a text with a number.
        """
        typed = {name: _typed(values[name]) for name in self.names}
        given = " ".join(f"{name}={values[name]}" for name in sorted(self.names))
        try:
            return bool(self._part(typed))
        except ZeroDivisionError as error:
            raise UsageError(f'--restrict "{self.text}" divides by zero where {given}.') from error
        except TypeError as error:
            raise UsageError(
                f'--restrict "{self.text}" calculates with a text where {given}.',
                next_step="Compare texts with == or != only.",
            ) from error


def parse_restriction(text: str) -> Restriction:
    """Parse an expression over the names of parameters.

    Raises:
        UsageError: it is no such expression.
    """
    if len(text) > _LONGEST:
        raise UsageError(f"--restrict takes at most {_LONGEST} characters, not {len(text)}.")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        part = _part_of(tree.body)
        names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = f": {error}" if isinstance(error, _NotUnderstood) else "."
        raise UsageError(f"--restrict {text!r} is not a condition{why}", next_step=_NEXT_STEP) from error
    if not names:
        raise UsageError(f"--restrict {text!r} names no parameter.", next_step=_NEXT_STEP)
    return Restriction(text.strip(), names, part)


class _NotUnderstood(ValueError):
    """Something in an expression that a restriction may not have."""


def _typed(text: str) -> _Value:
    number = as_number(text)
    if number is not None:
        return number
    return text.lower() == "true" if text.lower() in ("true", "false") else text


def _part_of(node: ast.expr) -> _Part:
    """What gives the value of a part of an expression."""
    match node:
        case ast.Constant(value=bool() | str() as constant):
            return lambda values: constant
        case ast.Constant(value=int() | float() as number):
            exact = Fraction(str(number))
            return lambda values: exact
        case ast.Name(id=name):
            return lambda values: values[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _part_of(operand)
            return lambda values: not inner(values)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _part_of(operand)
            return lambda values: -inner(values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _arithmetic(_ARITHMETIC[type(op)], _part_of(left), _part_of(right))
        case ast.BoolOp(op=op, values=operands):
            parts = [_part_of(each) for each in operands]
            return _all(parts) if isinstance(op, ast.And) else _any(parts)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
            comparisons = [_COMPARISONS[type(op)] for op in ops]
            return _compared([_part_of(each) for each in (left, *others)], comparisons)
    raise _NotUnderstood(f"it cannot have {ast.unparse(node)!r}.")


def _arithmetic(apply: Callable[[Any, Any], Any], left: _Part, right: _Part) -> _Part:
    def part(values: Mapping[str, _Value]) -> Any:
        first, second = left(values), right(values)
        if isinstance(first, str) or isinstance(second, str):
            raise TypeError("a text")
        return apply(first, second)

    return part


def _all(parts: list[_Part]) -> _Part:
    return lambda values: all(part(values) for part in parts)


def _any(parts: list[_Part]) -> _Part:
    return lambda values: any(part(values) for part in parts)


def _compared(parts: list[_Part], comparisons: list[Callable[[Any, Any], bool]]) -> _Part:
    def results(values: Mapping[str, _Value]) -> Iterator[bool]:
        found = [part(values) for part in parts]
        for place, compare in enumerate(comparisons):
            yield compare(found[place], found[place + 1])

    return lambda values: all(results(values))
