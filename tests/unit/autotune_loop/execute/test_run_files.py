"""Files on their way to a member, and tasks between two machines' folders."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune_loop.candidate import BuiltObject, Origin, SearchedSchedule, SearchPoint
from autotune_loop.execute.order import Done, relocated
from autotune_loop.execute.run_files import FileKey, FilePart, MissingFileError, RunFiles, key_of
from targets.errors import DeviceError, FarmError


def _parts(content: bytes, part_bytes: int, key: FileKey) -> list[FilePart]:
    offsets = range(0, max(1, len(content)), part_bytes)
    return [FilePart(key, offset, len(content), True, content[offset : offset + part_bytes]) for offset in offsets]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=5000), st.integers(1, 2000))
def test_a_file_arrives_whole(tmp_path: Path, content: bytes, part_bytes: int) -> None:
    key = FileKey("batch", hashlib.sha256(content).hexdigest())
    files = RunFiles(tmp_path / key.sha256 / str(part_bytes))
    for part in _parts(content, part_bytes, key):
        with pytest.raises(MissingFileError):
            files.path(key)
        files.receive(part)
    assert files.path(key).read_bytes() == content
    assert files.path(key).name == "batch"
    assert files.path(key).stat().st_mode & 0o100
    files.drop(key.sha256)
    with pytest.raises(MissingFileError):
        files.path(key)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    key = FileKey("batch", hashlib.sha256(b"good").hexdigest())
    files = RunFiles(tmp_path)
    with pytest.raises(FarmError, match="damaged"):
        files.receive(FilePart(key, 0, 4, False, b"evil"))
    with pytest.raises(MissingFileError):
        files.path(key)


def test_a_name_leads_nowhere_else(tmp_path: Path) -> None:
    key = FileKey("../batch", hashlib.sha256(b"").hexdigest())
    with pytest.raises(DeviceError, match="not a file name"):
        RunFiles(tmp_path / "files").receive(FilePart(key, 0, 0, False, b""))
    odd = tmp_path / "my own filter.py"
    odd.write_text("")
    assert key_of(odd).name == "my_own_filter.py"


def test_a_result_has_the_paths_of_who_asked() -> None:
    there, here = Path("/home/ann/run/batch/3"), Path("/srv/member/scratch/x")
    weights_there, weights_here = Path("/home/ann/run/used.weights"), Path("/srv/member/files/ab/used.weights")
    point = SearchPoint(Origin.RANDOM, 1, 1, 50, weights_there)
    places = {weights_there: weights_here, there: here}
    moved_point, argset, folder = relocated((point, {"width": "8"}, there), places)
    assert moved_point == replace(point, weights_path=weights_here)
    assert argset == {"width": "8"}
    built = BuiltObject("f", folder / "f.o", folder / "f.schedule.h", 1.0)
    result = SearchedSchedule(moved_point, folder, folder / "f.featurization", "ab", 1.0, built)
    back = relocated(result, {new: old for old, new in places.items()})
    assert back.point == point
    assert back.folder == there
    assert back.built.object_path == there / "f.o"


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", ""])
def test_output_cannot_leave_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(FarmError, match="nobody asked for"):
        Done(None, 0.0, {name: b"x"}).unpack(tmp_path / "output")
    with pytest.raises(FarmError, match="nobody asked for"):
        Done(None, 0.0, {"good": b"x"}).unpack(None)
    assert list(tmp_path.iterdir()) == []


def test_output_goes_into_its_folder(tmp_path: Path) -> None:
    Done(None, 0.0, {"a/b.o": b"x"}).unpack(tmp_path / "output")
    assert (tmp_path / "output" / "a" / "b.o").read_bytes() == b"x"
