"""Read from Halide's lowered statement how a pipeline launches its GPU kernels.

The number of threads and the shared memory are not in a kernel's PTX, but in the code that launches it. A size that
depends on the shape of a buffer is unknown before the call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
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
            *threads, shared_bytes = (_evaluate(text, lets, 0) for text in arguments[5:])
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


def _evaluate(text: str, lets: Mapping[str, str], depth: int) -> int | None:
    """Return the value of an integer expression; None if it is known only at run time, or is another expression."""
    if depth > _MOST_LETS_DEEP or len(text) > _LONGEST_EXPRESSION_CHARACTERS:
        return None
    plain = _NAME.sub(lambda found: _plain(found[0]), _CAST.sub("", text))
    try:
        return _value(ast.parse(plain, mode="eval").body, lets, depth)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _value(node: ast.expr, lets: Mapping[str, str], depth: int) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return _evaluate(lets[node.id], lets, depth + 1) if node.id in lets else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = _value(node.operand, lets, depth)
        return None if operand is None else -operand
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        values = [_value(argument, lets, depth) for argument in node.args]
        known = [value for value in values if value is not None]
        return (min if node.func.id == "min" else max)(known) if known and len(known) == len(values) else None
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, lets, depth), _value(node.right, lets, depth)
        return None if left is None or right is None else _combine(node.op, left, right)
    return None


def _combine(operator: ast.operator, left: int, right: int) -> int | None:
    """Apply Halide's integer arithmetic; its division rounds down, like Python's."""
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left // right
        case ast.Mod():
            return left % right
    return None
