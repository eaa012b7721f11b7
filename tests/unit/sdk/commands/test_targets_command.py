"""`sdk targets` and `sdk targets show`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halide_autotune.sdk.main import main
from halide_autotune.targets.profile.loader import load_profile


@pytest.fixture(autouse=True)
def profile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SDK_PROFILE_DIR", str(tmp_path))
    monkeypatch.setenv("SDK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_the_list_has_every_profile(capsys: pytest.CaptureFixture[str], profile_folder: Path) -> None:
    (profile_folder / "board.toml").write_text('extends = "arm64"\ndescription = "my [own] board"')
    (profile_folder / "broken.toml").write_text("halide_target = 1")
    assert main(["targets"]) == 0
    text = capsys.readouterr().out
    for word in ("host", "arm64", "x86-64-avx512", "board", "my [own] board", "broken"):
        assert word in text
    assert "must be a string, not" in text


def test_the_list_as_json(capsys: pytest.CaptureFixture[str], profile_folder: Path) -> None:
    (profile_folder / "broken.toml").write_text("halide_target = 1")
    assert main(["targets", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in answer["profiles"]}
    assert answer["profile_folder"] == str(profile_folder)
    assert rows["arm64"] == {**load_profile("arm64").to_dict(), "source": "built in", "error": None}
    assert rows["broken"]["source"] == str(profile_folder / "broken.toml")
    assert "halide_target" in rows["broken"]["error"]


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "show", "arm64"]) == 0
    text = capsys.readouterr().out
    assert "qemu-user libc6-arm64-cross" in text
    assert "machine.vector_bits" in text


@pytest.mark.parametrize("arguments", [["targets", "show", "host", "--json"], ["targets", "--json", "show", "host"]])
def test_show_as_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out) == {**load_profile("host").to_dict(), "source": "built in"}


def test_show_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "show", "arm46"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sdk: There is no target profile 'arm46'; the nearest is 'arm64'.")
