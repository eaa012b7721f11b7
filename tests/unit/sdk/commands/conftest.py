"""What tests of commands share: a command line that is run for real, in an empty folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import halide_autotune.sdk.main as sdk_main
from halide_autotune.sdk.settings import Settings


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in an empty folder, with the session's cache."""
    monkeypatch.setenv("SDK_CACHE_DIR", str(settings.cache_folder))
    monkeypatch.setenv("SDK_CONFIG_DIR", str(settings.config_folder))
    monkeypatch.chdir(tmp_path)

    def get(*arguments: str | Path) -> Done:
        capfd.readouterr()
        code = sdk_main.main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        assert "Traceback" not in said.err
        return Done(code, said.out, said.err)

    return get


@pytest.fixture
def shipped(examples: Path, tmp_path: Path) -> Path:
    """A copy of what the example commits."""
    return Path(shutil.copytree(examples / "shipping" / "schedules", tmp_path / "schedules"))


@pytest.fixture
def blur(examples: Path) -> Path:
    return examples / "separable_filter.py"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, with a file that could be a generator."""
    for name in ("CACHE", "CONFIG", "PROFILE"):
        monkeypatch.setenv(f"SDK_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blur.py").write_text("")
    return tmp_path
