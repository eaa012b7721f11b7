"""The help of every command: what it shows, in full and in short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from halide_autotune.sdk.main import main, make_application
from halide_autotune.sdk.options.help_text import MOST_USED


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from _commands(each, f"{path} {name}")


COMMANDS = dict(_commands(typer.main.get_command(make_application()), "sdk"))


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def shown(path: str, flag: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*path.split()[1:], flag]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_an_example_and_names_each_value(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(path, "--help", capsys)
    assert f"\nExample: {'' if path == 'sdk cmake-dir' else path}" in text
    assert not re.search(r"<\w|\[\[|\]\]|None", text)
    valued = [each for each in COMMANDS[path].params if each.param_type_name == "option" and not each.is_flag]
    assert [each.name for each in valued if not each.metavar] == []
    wide = [line for line in text.splitlines() if len(line) > 80]
    assert all(line.startswith(("Example:", "In CI:", "Of a header:")) for line in wide)
    flags = [flag for each in COMMANDS[path].params for flag in (*each.opts, *each.secondary_opts)]
    assert [flag for flag in flags if flag.startswith("-") and flag not in text] == []


@pytest.mark.parametrize("path", COMMANDS)
def test_the_short_help_is_short(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = {flag for each in COMMANDS[path].params for flag in each.opts if flag.startswith("--")}
    text, everything = shown(path, "-h", capsys), shown(path, "--help", capsys)
    if path not in MOST_USED:
        assert len(flags) <= 12
        assert text == everything
        return
    named = MOST_USED[path].split()
    assert len(named) <= 13 and set(named) <= flags
    assert all(flag in text for flag in named)
    assert f"`{path} --help` shows all options." in text
    assert len(text) < len(everything)


def test_only_commands_that_exist_have_a_short_help() -> None:
    assert set(MOST_USED) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("path", "usage"),
    [
        ("sdk", "Usage: sdk [OPTIONS] [COMMAND]"),
        ("sdk autotune", "Usage: sdk autotune [OPTIONS] [GENERATOR...]"),
        ("sdk ship", "Usage: sdk ship [OPTIONS] RUN..."),
        ("sdk devices check", "Usage: sdk devices check [OPTIONS] [NAME...]"),
        ("sdk targets show", "Usage: sdk targets show [OPTIONS] PROFILE"),
        ("sdk farm", "Usage: sdk farm [OPTIONS] COMMAND"),
    ],
)
def test_usage(path: str, usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(path, "-h", capsys).splitlines()[0] == usage


def test_a_narrow_terminal_has_a_narrow_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = shown("sdk doctor", "--help", capsys).splitlines()
    assert max(map(len, lines)) <= 60
