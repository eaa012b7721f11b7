"""A program that fails on a full disk is not blamed for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process import disk_space
from halide_autotune.targets.process.compiler_run import run_compiler
from halide_autotune.targets.process.disk_space import full_disk


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every disk has less than that."""
    monkeypatch.setattr(disk_space, "_FULL_BELOW_BYTES", 2**70)


def test_a_disk_with_room_is_not_named(tmp_path: Path) -> None:
    assert full_disk([tmp_path]) == ""


@pytest.mark.usefixtures("full")
def test_the_first_folder_that_is_there_is_named(tmp_path: Path) -> None:
    words = full_disk([tmp_path / "missing", tmp_path, tmp_path.parent])
    assert words == f"The disk of {tmp_path} is full: free some space there."


@pytest.mark.usefixtures("full")
def test_a_compiler_that_fails_then_is_not_blamed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('internal error')", "-o", str(tmp_path / "a.o")]
    with pytest.raises(ToolchainError) as raised:
        run_compiler(command, {}, "a.c does not compile for x86_64", "cc 12")
    assert str(raised.value) == (
        f"a.c does not compile for x86_64. The disk of {tmp_path} is full: free some space there."
    )
