"""Temporary folders: what is in use stays, what a killed process of this user left goes, nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from halide_autotune.targets.process import scratch_folder as module
from halide_autotune.targets.process.scratch_folder import scratch_folder


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go, in which every folder is old."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "_LEAST_AGE_S", 0.0)
    module._delete_left_over.cache_clear()
    yield tmp_path
    module._delete_left_over.cache_clear()


def left_over(place: Path, name: str = "sdk-scratch-build-abc") -> Path:
    folder = place / name
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").write_text("left")
    return folder


def test_it_is_there_until_the_end_and_gone_then(place: Path) -> None:
    with pytest.raises(ZeroDivisionError), scratch_folder("build") as folder:
        assert folder.parent == place and folder.name.startswith("sdk-scratch-build-")
        (folder / "file").write_text("text")
        raise ZeroDivisionError
    assert not list(place.iterdir())


def test_what_a_killed_process_left_is_deleted_by_the_next(place: Path) -> None:
    program = (
        "import os, signal, sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from halide_autotune.targets.process.scratch_folder import scratch_folder\n"
        "with scratch_folder('killed'):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(place)], check=False)
    (left,) = place.iterdir()
    with scratch_folder("next") as folder:
        assert not left.exists() and list(place.iterdir()) == [folder]


def test_what_is_in_use_stays(place: Path) -> None:
    with scratch_folder("first") as first:
        module._delete_left_over.cache_clear()
        with scratch_folder("second"):
            assert first.is_dir()


def test_what_is_young_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process may be about to lock it, as long as it has no name of its own."""
    monkeypatch.setattr(module, "_LEAST_AGE_S", 3600.0)
    new, named = left_over(place, "sdk-scratch-new-abc"), left_over(place)
    with scratch_folder("other"):
        assert new.is_dir() and not named.exists()


def test_neither_links_nor_others_are_touched(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = left_over(tmp_path_factory.mktemp("elsewhere"))
    (place / "sdk-scratch-link").symlink_to(elsewhere, target_is_directory=True)
    (place / "sdk-scratch-file").write_text("a file")
    others = left_over(place, "sdk-of-somebody")
    within = left_over(place)
    (within / "link").symlink_to(elsewhere, target_is_directory=True)
    with scratch_folder("other"):
        assert not within.exists()
        assert (elsewhere / "deep" / "file").is_file() and others.is_dir()
        assert (place / "sdk-scratch-link").is_symlink() and (place / "sdk-scratch-file").is_file()


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser can give a folder away")
def test_another_users_folder_stays(place: Path) -> None:
    folder = left_over(place)
    os.chown(folder, 12345, 12345)
    with scratch_folder("other"):
        assert folder.is_dir()


def test_it_can_be_made_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    left = left_over(elsewhere)
    with scratch_folder("build", elsewhere) as folder:
        assert folder.parent == elsewhere and not left.exists()
