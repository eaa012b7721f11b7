"""Folders with odd names get a link that command lines take."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator import run
from halide_autotune.targets.generator.run import plain_folder


@pytest.mark.parametrize("name", ["with space", "a=b", "a,b", "tab\tline\n"])
def test_an_odd_folder_is_reached_by_a_plain_path(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "kept").write_text("content")
    with plain_folder(folder) as plain:
        assert not set(str(plain)) & set(" =,\t\n")
        assert (plain / "kept").read_text() == "content"
        (plain / "made").touch()
    assert not plain.exists() and not plain.parent.exists()
    assert sorted(path.name for path in folder.iterdir()) == ["kept", "made"]


def test_a_temporary_folder_may_be_odd_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c=d"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with plain_folder(folder) as plain:
        assert "=" not in str(plain) and plain.samefile(folder)
    assert not plain.parent.exists()
    monkeypatch.setattr(run, "_PLAIN_PLACE", tmp_path / "missing")
    words = "a link to it cannot be made in .*missing"
    with pytest.raises(GeneratorError, match=words) as caught, plain_folder(folder):
        pass
    assert "TMPDIR" in caught.value.next_step


def test_a_plain_folder_is_itself(tmp_path: Path) -> None:
    with plain_folder(tmp_path) as plain:
        assert plain == tmp_path
