"""Every command of the documentation is one of `sdk`, with options that exist and values that they accept."""

from __future__ import annotations

import re
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.main import make_application
from halide_autotune.sdk.options.autotune_options import CommandOptions, GeneratorOptions
from halide_autotune.targets.profile.loader import profile_names
from halide_autotune.targets.values.options import options_of
from tests.document_blocks import DOCS, PAGES, Block, all_blocks, sdk_commands

# What tests have instead of hardware.
_HERE = ("local", "qemu")
_ASKS_A_DEVICE = ("add", "probe", "check", "lease", "release", "password")
_CALLED = re.compile(r"`sdk ((?:[^`\n]|\n(?!\n))+)`")
# Options that name a file want it to be there.
_FILE = re.compile(r"\.(c|cpp|h|npy|py)$")
_DECLARED = {
    flag: option
    for kind in (GeneratorOptions, RunOptions, CommandOptions)
    for option in options_of(kind)
    for flag in option.facts.flags
}
SHELL_BLOCKS = [block for block in all_blocks() if block.is_shell]
LINES = [(block, words) for block in SHELL_BLOCKS for words in sdk_commands(block.script)]
every_line = pytest.mark.parametrize(
    ("block", "words"), LINES, ids=[f"{block.page}: {' '.join(words)[:60]}" for block, words in LINES]
)


@pytest.fixture(scope="module")
def application() -> Any:
    return typer.main.get_command(make_application())


def found(application: Any, words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and the words after it."""
    command, rest = application, list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    assert not (hasattr(command, "commands") and rest and not rest[0].startswith("-")), f"no command: {words}"
    return command, rest


def check_values(command: Any, context: Any) -> None:
    """Read the values as the command would, by the declarations of the options."""
    for parameter in command.params:
        value = context.params.get(parameter.name)
        option = next((_DECLARED[flag] for flag in parameter.opts if flag in _DECLARED), None)
        if value in (None, ()) or option is None:
            continue
        texts = [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]
        option.read(texts if option.takes_many else value if isinstance(value, bool | int | float) else texts[0])
        if "--target" in parameter.opts and not value.endswith(".toml"):
            assert value in profile_names(), value


@every_line
def test_every_command_is_one_of_the_sdk(
    application: Any, block: Block, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (word.rpartition("=")[2] for word in words if _FILE.search(word)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    command, rest = found(application, words)
    check_values(command, command.make_context("sdk", rest))


def test_the_options_that_texts_name_exist(application: Any) -> None:
    """In a text only a part of a command may stand, such as `sdk devices add`."""
    count = 0
    for page in PAGES:
        for text in _CALLED.findall(re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)):
            words = [word for word in shlex.split(text.replace("\n", " ")) if not word.startswith(("X", "…"))]
            command, rest = found(application, words)
            known = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)} | {"--help"}
            assert {word.partition("=")[0] for word in rest if word.startswith("-")} <= known, f"{page.name}: {text}"
            count += 1
    assert count > 100


def test_the_services_start_the_sdk(application: Any) -> None:
    services = sorted((DOCS / "systemd").glob("*.service"))
    lines = [line for file in services for line in re.findall(r"^ExecStart=(.*)$", file.read_text(), re.MULTILINE)]
    assert len(lines) == len(services) == 2
    for line in lines:
        for words in sdk_commands(line):
            command, rest = found(application, words)
            command.make_context("sdk", rest)


@pytest.mark.parametrize("page", sorted({block.page for block in SHELL_BLOCKS}))
def test_scripts_are_the_shells(page: str) -> None:
    script = "\n".join(block.script for block in SHELL_BLOCKS if block.page == page)
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_block_is_of_a_known_kind() -> None:
    for block in all_blocks():
        assert not block.rest, f"{block.page}: ```{block.language}{block.rest}"
        assert block.language not in ("shell", "bash"), f"{block.page}: write ```sh"
        assert not block.is_run or block.language == "sh", f"{block.page}: only ```sh is run"
        if block.is_shell and block.title:
            assert block.title.startswith("needs ") and not block.is_run, f"{block.page}: {block.title}"


@every_line
def test_what_needs_more_than_this_machine_says_so(block: Block, words: list[str]) -> None:
    if needs_more(words):
        assert block.title.startswith("needs "), f"{block.page}: sdk {' '.join(words)}"


def needs_more(words: list[str]) -> bool:
    """Whether a command asks a device, a card, a farm or a licensed SDK."""
    command, sub_command = [*words, "", ""][:2]
    values = {flag: value for flag, value in pairwise(words) if flag.startswith("-")}
    return (
        (command == "devices" and sub_command in _ASKS_A_DEVICE)
        or (command == "farm" and sub_command in ("scheduler", "worker", "status"))
        or (command in ("autotune", "bench") and values.get("--target", "").startswith("cuda"))
        or (command != "weights" and values.get("--device", "qemu") not in _HERE)
        or "--hexagon-sdk-root" in values
        or "--scheduler" in values
    )
