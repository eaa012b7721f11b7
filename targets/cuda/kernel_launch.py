"""Read from Halide's lowered statement how a pipeline launches its GPU kernels.

The number of threads and the shared memory are not in a kernel's PTX, but in the code that launches it. A size that
depends on the shape of a buffer is unknown before the call.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

_LAUNCH = re.compile(r"halide_cuda_run\(")
_LET = re.compile(r"^[ \t]*let (\S+) = (.+)$", re.MULTILINE)
_CAST = re.compile(r"\(u?int(?:8|16|32|64)\)")
_NAME = re.compile(r"[A-Za-z_][\w.$]*")
_LONGEST_EXPRESSION_CHARACTERS = 2000
_MOST_LETS_DEEP = 50
# halide_cuda_run(context, name, blocks x y z, threads x y z, shared bytes, …)
_ARGUMENTS = 9
# Halide's integer arithmetic; its division rounds down, like Python's.
_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True)
class KernelLaunch:
    """One launch of a kernel; a size that is unknown before the call is None.

    Attributes:
        kernel: the name of its entry in the PTX.
        threads: of one block, in x, y and z.
        shared_bytes: dynamic shared memory of one block.
    """

    kernel: str
    threads: tuple[int | None, ...]
    shared_bytes: int | None

    @property
    def threads_per_block(self) -> int | None:
        """The product of `threads`."""
        known = [size for size in self.threads if size is not None]
        return prod(known) if len(known) == len(self.threads) else None


def read_launches(statement: str) -> list[KernelLaunch]:
    """Return the launches in a lowered statement (Halide's output `stmt`) in order, without those of another form."""
    lets = {_plain(name): value for name, value in _LET.findall(statement)}
    launches = []
    for found in _LAUNCH.finditer(statement):
        arguments = _first_arguments(statement, found.end(), _ARGUMENTS)
        if len(arguments) == _ARGUMENTS and arguments[1].startswith('"'):
            *threads, shared_bytes = (_evaluate(text, lets) for text in arguments[5:])
            launches.append(KernelLaunch(arguments[1].strip('"'), tuple(threads), shared_bytes))
    return launches


def _first_arguments(text: str, start: int, count: int) -> list[str]:
    """Return the first `count` arguments of a call whose parenthesis opens before `start`."""
    found: list[str] = []
    depth, begin = 0, start
    for position in range(start, min(len(text), start + count * _LONGEST_EXPRESSION_CHARACTERS)):
        character = text[position]
        if depth == 0 and character in ",)":
            found.append(text[begin:position].strip())
            begin = position + 1
            if character == ")" or len(found) == count:
                break
        depth += (character in "([") - (character in ")]")
    return found


def _plain(name: str) -> str:
    """Make a Halide name one of Python's grammar."""
    return re.sub(r"[.$]", "__", name)


def _evaluate(text: str, lets: Mapping[str, str]) -> int | None:
    """Return the value of an integer expression; None if it is known only at run time, or is another expression."""
    try:
        return _value(_parsed(text), lets, 0)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _parsed(text: str) -> ast.expr:
    if len(text) > _LONGEST_EXPRESSION_CHARACTERS:
        raise ValueError("too long")
    plain = _NAME.sub(lambda found: _plain(found[0]), _CAST.sub("", text))
    return ast.parse(plain, mode="eval").body


def _value(node: ast.expr, lets: Mapping[str, str], depth: int) -> int:
    match node:
        case ast.Constant(value) if type(value) is int:
            return value
        case ast.Name(name) if name in lets and depth < _MOST_LETS_DEEP:
            return _value(_parsed(lets[name]), lets, depth + 1)
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, lets, depth)
        case ast.Call(ast.Name("min" | "max" as name), [_, *_] as arguments):
            return (min if name == "min" else max)(_value(argument, lets, depth) for argument in arguments)
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](_value(left, lets, depth), _value(right, lets, depth))
    raise ValueError("known only at run time")
