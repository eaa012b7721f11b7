"""Files on their way to a worker."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.execute.messages import (
    FilePart,
)
from halide_autotune.autotune_loop.execute.run_files import NotYetHereError, RunFiles
from halide_autotune.autotune_loop.execute.tasks.task import FileKey, key_of
from halide_autotune.targets.errors import DeviceError, FarmError


def _parts(content: bytes, part_bytes: int, key: FileKey) -> list[FilePart]:
    offsets = range(0, max(1, len(content)), part_bytes)
    return [
        FilePart("run", key, offset, len(content), True, content[offset : offset + part_bytes]) for offset in offsets
    ]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=5000), st.integers(1, 2000))
def test_a_file_arrives_whole(tmp_path: Path, content: bytes, part_bytes: int) -> None:
    key = FileKey("batch", hashlib.sha256(content).hexdigest())
    files = RunFiles(tmp_path / key.sha256 / str(part_bytes))
    for part in _parts(content, part_bytes, key):
        with pytest.raises(NotYetHereError):
            files.path(key)
        files.receive(part)
    assert files.path(key).read_bytes() == content
    assert files.path(key).name == "batch"
    assert files.path(key).stat().st_mode & 0o100
    files.drop(key.sha256)
    with pytest.raises(NotYetHereError):
        files.path(key)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    key = FileKey("batch", hashlib.sha256(b"good").hexdigest())
    files = RunFiles(tmp_path)
    with pytest.raises(FarmError, match="damaged"):
        files.receive(FilePart("run", key, 0, 4, False, b"evil"))
    with pytest.raises(NotYetHereError):
        files.path(key)


def test_a_name_leads_nowhere_else(tmp_path: Path) -> None:
    key = FileKey("../batch", hashlib.sha256(b"").hexdigest())
    with pytest.raises(DeviceError, match="not a valid file name"):
        RunFiles(tmp_path / "files").receive(FilePart("run", key, 0, 0, False, b""))
    odd = tmp_path / "my own filter.py"
    odd.write_text("")
    assert key_of(odd).name == "my_own_filter.py"
