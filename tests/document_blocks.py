"""The blocks of the documentation: what each is, and the command lines of `sdk` in it.

A block of commands is run by a test (below the comment `<!-- run -->`), cannot be run here (`title="needs …"`), or is
an example (anything else). CONTRIBUTING.md tells it to writers.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[1]
DOCS = PROJECT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"])
_RUN = "<!-- run -->"
_SHELLS = ("sh", "console")
_FENCE = re.compile(
    rf'^(?P<run>{_RUN}\n)?(?P<indent> *)```(?P<language>\w+)(?: title="(?P<title>[^"\n]+)")?(?P<rest>[^\n]*)\n'
    r"(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_ENDS = frozenset(("|", ">", "<", "&&", "||", "&", ";"))


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        page: relative to the project.
        title: shown above it: the file to save it as, or what it needs; empty without.
        rest: what else stands on its first line, which is nothing in a good block.
        is_run: a test runs it.
    """

    page: str
    language: str
    title: str
    rest: str
    is_run: bool
    body: str

    @property
    def is_shell(self) -> bool:
        """Whether it has commands."""
        return self.language in _SHELLS

    @property
    def script(self) -> str:
        """Its commands, without what they print."""
        if self.language != "console":
            return self.body
        # A line that ends with a backslash goes on.
        lines, goes_on = [], False
        for line in self.body.splitlines():
            if goes_on or line.startswith("$ "):
                lines.append(line.removeprefix("$ "))
                goes_on = line.endswith("\\")
        return "\n".join(lines) + "\n"


def blocks_of(page: Path) -> Iterator[Block]:
    """The page's blocks, from its top."""
    for found in _FENCE.finditer(page.read_text()):
        body = textwrap.dedent(found["body"])
        name = str(page.relative_to(PROJECT))
        yield Block(name, found["language"], found["title"] or "", found["rest"], bool(found["run"]), body)


def all_blocks() -> list[Block]:
    """The blocks of all pages."""
    return [block for page in PAGES for block in blocks_of(page)]


def sdk_commands(script: str) -> Iterator[list[str]]:
    """The arguments of every `sdk` of a script, also after sudo, in a quoted command and in a loop."""
    for line in script.replace("\\\n", " ").splitlines():
        yield from _commands_of_words(shlex.split(line, comments=True))


def _commands_of_words(words: list[str]) -> Iterator[list[str]]:
    for place, word in enumerate(words):
        if " sdk " in word:
            yield from _commands_of_words(shlex.split(word))
        if word == "sdk" or word.endswith("/bin/sdk"):
            following = words[place + 1 :]
            end = next((at for at, each in enumerate(following) if each in _ENDS), len(following))
            # "…" stands for more of the same.
            yield [each for each in following[:end] if each != "…"]
