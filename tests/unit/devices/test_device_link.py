"""Command lines for a remote shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from halide_autotune.devices.device_link import join_words


@pytest.mark.parametrize("folder", ["plain", "PATH=x", "a=b=c", "-x=y", "in/PATH=x"])
def test_a_program_in_a_folder_of_any_name_is_run(tmp_path: Path, folder: str) -> None:
    """A shell takes a first word such as PATH=x/program for an assignment, unless it starts as a path does."""
    program = tmp_path / folder / "program"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$1"\n')
    program.chmod(0o700)
    line = join_words([f"{folder}/program", "key=value"])
    done = subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("key=value\n", "")


@pytest.mark.parametrize("word", ["", "a b", "$x", "a;b", "`x`", "'x'", "a\nb", "~", "ä"])
def test_what_a_shell_reads_does_not_reach_it(word: str) -> None:
    with pytest.raises(ValueError, match="must not reach a shell"):
        join_words(["program", word])
