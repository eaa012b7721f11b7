"""The words of a schedule header, with their line numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from halide_autotune.targets.errors import GeneratorError

# Far above the largest real header; input is bounded.
MAXIMUM_HEADER_CHARACTERS = 16 * 2**20
_WORD = re.compile(
    r"(?P<blank>\s+|//[^\n]*|#[ \t]*(?:ifndef|define|include|endif|pragma once)[^\n]*)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_$]*|-?[0-9]+|\"[^\"\\\n]*\"|::|\+\+|[=!<>]=|&&|\|\||[^\s\w])"
)


@dataclass(frozen=True)
class Word:
    """A word and its line, counted from 1. The end of the text is an empty word."""

    text: str
    line: int


def wrong(line: int, expected: str, found: str) -> GeneratorError:
    """The error for text that no schedule header has."""
    shown = repr(found[:60]) if found else "the end of the header"
    return GeneratorError(
        f"Line {line} of the schedule header: expected {expected}, found {shown}.",
        next_step="Use a header that a Halide 21 autoscheduler or `sdk autotune` wrote.",
    )


def split_into_words(text: str) -> list[Word]:
    """The words of a header without comments and preprocessor lines; an empty word ends the list.

    Raises:
        GeneratorError: it is too long, or has a character that belongs to no word.
    """
    if len(text) > MAXIMUM_HEADER_CHARACTERS:
        raise GeneratorError(
            f"The schedule header has {len(text):,} characters; the limit is {MAXIMUM_HEADER_CHARACTERS:,}."
        )
    words: list[Word] = []
    position, line = 0, 1
    while position < len(text):
        found = _WORD.match(text, position)
        if found is None:
            raise wrong(line, "C++", text[position : position + 10])
        if found["word"]:
            words.append(Word(found["word"], line))
        line += found.group().count("\n")
        position = found.end()
    words.append(Word("", line))
    return words


class WordReader:
    """Takes words one after the other.

    Raises:
        GeneratorError: (by its methods) the next word is not the expected one.
    """

    def __init__(self, words: list[Word]) -> None:
        self._words = words
        self._next = 0

    @property
    def line(self) -> int:
        """The line of the next word."""
        return self._words[self._next].line

    def peek(self, ahead: int = 0) -> str:
        """A coming word, without taking it; empty beyond the end."""
        index = self._next + ahead
        return self._words[index].text if index < len(self._words) else ""

    def take(self) -> str:
        """The next word."""
        text = self._words[self._next].text
        if text:
            self._next += 1
        return text

    def take_if(self, *texts: str) -> bool:
        """Take these words if they come next."""
        if any(self.peek(ahead) != text for ahead, text in enumerate(texts)):
            return False
        self._next += len(texts)
        return True

    def expect(self, *texts: str) -> None:
        """Take these words, which must come next."""
        for text in texts:
            line, found = self.line, self.take()
            if found != text:
                raise wrong(line, repr(text), found)

    def expect_name(self, what: str) -> str:
        """Take an identifier, with the `$` of Halide's own names."""
        line, found = self.line, self.take()
        if not found or not (found[0].isalpha() or found[0] == "_"):
            raise wrong(line, what, found)
        return found

    def expect_number(self, what: str) -> int:
        """Take a whole number of at most 18 digits."""
        line, found = self.line, self.take()
        if not found.lstrip("-").isdigit() or len(found) > 18:
            raise wrong(line, what, found)
        return int(found)

    def expect_string(self, what: str) -> str:
        """Take a string; returns the text between its quotes."""
        line, found = self.line, self.take()
        if not found.startswith('"'):
            raise wrong(line, what, found)
        return found[1:-1]


# How a printed header finds a Func without an index. get_func ends the generator with an error if there is none.
FUNC_NAMED_CPP = """\
const auto func_named = [&](const std::string &name) {
    for (size_t index = 0;; index++) {
        Func func = pipeline.get_func(index);
        if (func.name() == name) return func;
    }
};
"""

# How it finds an input or output, and the value of one or of its field: a scalar's, a buffer's `stride.0`.
PARAMETER_NAMED_CPP = """\
const auto parameter_named = [&](const std::string &name) {
    std::vector<::Halide::Internal::Function> outputs;
    for (const Func &output : pipeline.outputs()) {
        outputs.push_back(output.function());
        for (const Parameter &buffer : output.function().output_buffers()) {
            // In another process, or for a second target in this one, an output has a number behind its name.
            const std::string called = buffer.name();
            if (called == name || called.substr(0, called.find('$')) == name) return buffer;
        }
    }
    for (const auto &input : ::Halide::Internal::infer_arguments(::Halide::Internal::Stmt(), outputs)) {
        if (input.param.defined() && input.param.name() == name) return input.param;
    }
    _halide_user_assert(false) << "The pipeline has no input or output " << name << ".\\n";
    return Parameter();
};
const auto value_named = [&](const std::string &name, const std::string &field) {
    const Parameter parameter = parameter_named(name);
    const bool is_scalar = field == "value";
    return ::Halide::Internal::Variable::make(is_scalar ? parameter.type() : ::Halide::Int(32),
                                              parameter.name() + (is_scalar ? "" : "." + field), parameter);
};
"""
# As headers of earlier versions have it.
EARLIER_PARAMETER_NAMED_CPP = PARAMETER_NAMED_CPP.replace(
    """\
            // In another process, or for a second target in this one, an output has a number behind its name.
            const std::string called = buffer.name();
            if (called == name || called.substr(0, called.find('$')) == name) return buffer;
""",
    """\
            if (buffer.name() == name) return buffer;
""",
).replace('parameter.name() + (is_scalar ? "" : "." + field)', 'is_scalar ? name : name + "." + field')
