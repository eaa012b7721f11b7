"""The arguments of the calls in a schedule header."""

from __future__ import annotations

from enum import Enum

from halide_autotune.autotune_loop.schedule.calls import Argument
from halide_autotune.autotune_loop.schedule.text import WordReader, wrong
from halide_autotune.autotune_loop.schedule.values import (
    BINARY_OPERATORS,
    FUNCTIONS,
    OUTERMOST,
    DeviceAPI,
    Expression,
    LoopAlignStrategy,
    MemoryType,
    Partition,
    PrefetchBoundStrategy,
    Stage,
    TailStrategy,
    Text,
)

ENUMERATIONS: dict[str, type[Enum]] = {
    kind.__name__: kind
    for kind in (DeviceAPI, LoopAlignStrategy, MemoryType, Partition, PrefetchBoundStrategy, TailStrategy)
}
_WORDS = {"true": True, "false": False}
_MAXIMUM_BRACES = 4
_MAXIMUM_OPERATORS = 100


def parse_arguments(reader: WordReader, end: str, braces: int = 0) -> tuple[Argument, ...]:
    """Take what is separated by commas, and the `end` after it.

    Raises:
        GeneratorError: there is something that no scheduling call takes.
    """
    arguments: list[Argument] = []
    while not reader.take_if(end):
        if arguments:
            reader.expect(",")
        arguments.append(_argument(reader, braces))
    return tuple(arguments)


def _argument(reader: WordReader, braces: int) -> Argument:
    line, word = reader.line, reader.peek()
    if word == "{":
        if braces >= _MAXIMUM_BRACES:
            raise wrong(line, "fewer braces", word)
        reader.take()
        return parse_arguments(reader, "}", braces + 1)
    if word in ("(", "!") or (word in FUNCTIONS and reader.peek(1) == "("):
        return parse_expression(reader)
    if word.lstrip("-").isdigit():
        return reader.expect_number("a number")
    if word.startswith('"'):
        return Text(reader.expect_string("a text"))
    if reader.take_if("Var", "::", "outermost", "(", ")"):
        return OUTERMOST
    if word in ENUMERATIONS and reader.peek(1) == "::":
        reader.expect(word, "::")
        value = reader.expect_name(f"a {word}")
        try:
            return ENUMERATIONS[word](value)
        except ValueError:
            raise wrong(line, f"a {word} of Halide", value) from None
    name = reader.expect_name("an argument")
    if reader.take_if(".", "update", "("):
        update = reader.expect_number("the number of an update")
        reader.expect(")")
        return Stage(name, update)
    return _WORDS.get(name, name)


def parse_expression(reader: WordReader, depth: int = 0) -> Expression:
    """Take an expression with parentheses around every operator, or the name of a parameter.

    Raises:
        GeneratorError: it is something else.
    """
    line, word = reader.line, reader.peek()
    if depth >= _MAXIMUM_OPERATORS:
        raise wrong(line, "a shorter expression", word)
    if reader.take_if("!"):
        return Expression("!", (parse_expression(reader, depth + 1),))
    if reader.take_if("("):
        left = _operand(reader, depth)
        line, operator = reader.line, reader.take()
        if operator not in BINARY_OPERATORS:
            raise wrong(line, "an operator", operator)
        right = _operand(reader, depth)
        reader.expect(")")
        return Expression(operator, (left, right))
    name = reader.expect_name("an expression of parameters")
    if name not in FUNCTIONS:
        return Expression(name)
    reader.expect("(")
    operands = [_operand(reader, depth)]
    while len(operands) < FUNCTIONS[name]:
        reader.expect(",")
        operands.append(_operand(reader, depth))
    reader.expect(")")
    return Expression(name, tuple(operands))


def _operand(reader: WordReader, depth: int) -> Expression | int:
    if reader.peek().lstrip("-").isdigit():
        return reader.expect_number("a number")
    return parse_expression(reader, depth + 1)
