"""Files that appear whole or not at all, and what a killed process leaves of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.targets.process.atomic_write import remove_unfinished, write_atomically

# Dies as by SIGKILL in the middle of writing.
KILLED = """
import os, sys
from pathlib import Path
from halide_autotune.targets.process.atomic_write import write_atomically
os.fsync = lambda handle: os._exit(9)
write_atomically(Path(sys.argv[1]), b"new")
"""


def test_a_killed_write_leaves_the_old_content_and_what_can_be_removed(tmp_path: Path) -> None:
    file = tmp_path / "samples" / "a.sample"
    file.parent.mkdir()
    write_atomically(file, b"old")
    (tmp_path / ".lock").touch()
    killed = subprocess.run([sys.executable, "-c", KILLED, file], env={**os.environ}, check=False)
    assert killed.returncode == 9 and file.read_bytes() == b"old"
    assert len(list(file.parent.iterdir())) == 2
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".lock", "a.sample", "samples"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_atomically(tmp_path / "a", b"1")
    assert list(tmp_path.iterdir()) == []
