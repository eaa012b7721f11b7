"""`sdk autotune --replay`: options tried on a recorded run, without a device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halide_autotune.sdk.main import main
from tests.recorded_run_folder import write_run_folder


@pytest.mark.toolchain
def test_a_replay_prints_rounds_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run_folder(tmp_path / "run", 12)
    options = ["--batch-size", "6", "--epochs", "2", "--loss", "rank"]
    assert main(["autotune", "--replay", "run", *options]) == 0
    said = capsys.readouterr()
    assert "round 2: 12 looked up" in said.err and "no device was used" in said.out
    assert main(["autotune", "--replay", "run", *options, "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["tasks"]
    assert task["recorded"] == 12 and len(task["rounds"]) == 2 and "0.05" in task["samples_until"]
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--replay", "nowhere"], 1, "is not a run folder"),
        (["blur.py", "--replay", "nowhere"], 2, "leave the generator out"),
        (
            ["--replay", "nowhere", "-p", "width=7", "-t", "host", "--device", "pi"],
            2,
            "leave out --parameter, --target, --device",
        ),
        (["--replay", "nowhere", "--resume"], 2, "leave one of them out"),
        (["--replay", "nowhere", "--loss", "mean"], 2, "--loss must be"),
    ],
)
def test_a_wrong_replay_is_one_message(
    arguments: list[str],
    code: int,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["autotune", *arguments]) == code
    assert words in capsys.readouterr().err
