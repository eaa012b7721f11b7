"""What the shell offers for folders of runs."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
import typer

from halide_autotune.sdk.options.completion import COMPLETIONS

CONTEXT = cast(typer.Context, None)  # nobody asks it


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("blur-host-1", "blur-arm64-1"):
        (tmp_path / "tuned" / name).mkdir(parents=True)
        (tmp_path / "tuned" / name / "run.toml").write_text("")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_runs_of_this_folder_come_first() -> None:
    offered = COMPLETIONS["runs"](CONTEXT, "")
    assert set(offered[:2]) == {"tuned/blur-host-1", "tuned/blur-arm64-1"}
    assert offered[2:] == ["elsewhere/", "tuned/"]


def test_techniques_that_are_named_are_not_offered_again() -> None:
    offer = COMPLETIONS["techniques"]
    assert offer(CONTEXT, "sampling,s") == ["sampling,sketches"]
    assert {"sampling", "sketches", "evolution", "annealing", "pattern"} <= set(offer(CONTEXT, ""))


def test_other_folders_may_have_runs_too() -> None:
    assert COMPLETIONS["runs"](CONTEXT, "else") == ["elsewhere/"]
    assert COMPLETIONS["runs"](CONTEXT, "tuned/blur-h") == ["tuned/blur-host-1"]
    assert COMPLETIONS["runs"](CONTEXT, "missing/") == []
