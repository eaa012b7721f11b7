"""The script that bash gets, with bash itself; what it asks is answered by a stand-in for `sdk`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SDK = [sys.executable, "-m", "halide_autotune.sdk.main"]
# What bash makes of a line: at a blank, and around each of = : @, as its COMP_WORDBREAKS has it.
PRESS_TAB = r"""
compopt() { echo "nospace" >&2; }
source "$SCRIPT"
COMP_LINE=$1 COMP_POINT=${#1}; shift
COMP_WORDBREAKS=$' \t\n"\'@><=;|&(:'
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_sdk_completion "$STAND_IN"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `source_bash` of the command prints, which `--install-completion` installs."""
    folder = tmp_path_factory.mktemp("completion")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "_SDK_COMPLETE": "source_bash"}
    done = subprocess.run(SDK, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    (folder / "sdk.bash").write_text(done.stdout)
    return folder / "sdk.bash"


def press_tab(script: Path, line: str, words: list[str], offered: str) -> tuple[list[str], list[str], str]:
    """What `sdk` was asked (its words), what bash then offers, and what was said of the space that follows."""
    stand_in = script.with_name("stand-in")
    asked = script.with_name("asked")
    stand_in.write_text(
        f'#!/bin/bash\nprintf "%s\\n%s" "$COMP_WORDS" "$COMP_CWORD" > {shlex.quote(str(asked))}\n'
        f"printf '%s\\n' {offered}\n"
    )
    stand_in.chmod(0o755)
    done = subprocess.run(
        ["bash", "--norc", "-c", PRESS_TAB, "bash", line, *words],
        env={"PATH": os.environ["PATH"], "SCRIPT": str(script), "STAND_IN": str(stand_in)},
        capture_output=True,
        text=True,
        check=True,
    )
    *given, place = asked.read_text().split("\n")
    assert int(place) == len(given) - 1
    return given, done.stdout.split(), done.stderr.strip()


@pytest.mark.parametrize(
    ("line", "words", "asked", "offered", "shown", "space"),
    [
        ("sdk au", ["sdk", "au"], "au", "autotune", "autotune", ""),
        ("sdk x --target ", ["sdk", "x", "--target", ""], "", "arm64", "arm64", ""),
        ("sdk x --target=ar", ["sdk", "x", "--target", "=", "ar"], "--target=ar", "arm64", "arm64", ""),
        ("sdk x --target=", ["sdk", "x", "--target", "="], "--target=", "arm64 host", "arm64 host", ""),
        ("sdk x -r label:d", ["sdk", "x", "-r", "label", ":", "d"], "label:d", "label:desk", "desk", ""),
        ("sdk x --device=label:d", "sdk x --device = label : d".split(), "--device=label:d", "label:desk", "desk", ""),
        ("sdk x -w arm64@p", ["sdk", "x", "-w", "arm64", "@", "p"], "arm64@p", "arm64@pi4 arm64@pi5", "pi4 pi5", ""),
        ("sdk report tu", ["sdk", "report", "tu"], "tu", "tuned/", "tuned/", "nospace"),
    ],
)
def test_values_that_bash_divides_are_completed_whole(
    script: Path, line: str, words: list[str], asked: str, offered: str, shown: str, space: str
) -> None:
    given, replies, told = press_tab(script, line, words, offered)
    assert (given[-1], replies, told) == (asked, shown.split(), space)


def test_the_real_command_answers_what_bash_asks(script: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "_SDK_COMPLETE": "complete_bash"}
    for words, offered in (
        ("autotune\n--target=arm64-", "arm64-android"),
        ("autotune\n--technique\nsketches,a", "sketches,annealing"),
    ):
        done = subprocess.run(
            SDK,
            cwd=ROOT,
            env={**environment, "COMP_WORDS": f"sdk\n{words}", "COMP_CWORD": str(words.count("\n") + 1)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [offered]
