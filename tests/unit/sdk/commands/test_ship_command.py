"""The command `sdk ship`: what it says, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import halide_autotune.sdk.main as sdk_main
from halide_autotune.sdk.settings import Settings
from tests.recorded_run_folder import write_run_folder


@pytest.fixture(autouse=True)
def in_session_folders(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in settings.environment.items():
        monkeypatch.setenv(key, value)


@pytest.mark.toolchain
def test_a_check_passes_in_ci(shipped: Path, examples: Path, capfd: pytest.CaptureFixture[str]) -> None:
    generator = str(examples / "shipping" / "blur.py")
    assert sdk_main.main(["ship", "--check", str(shipped), "--generator", generator]) == 0
    assert capfd.readouterr().out == f"{shipped} is unchanged since it was shipped, 2 compared with their generators.\n"
    (shipped / "blur.arm64.schedule.h").write_text("// by hand\n")
    assert sdk_main.main(["ship", "--check", str(shipped), "--json"]) == 1
    found = json.loads(capfd.readouterr().out)
    assert found["problems"] == ["blur.arm64.schedule.h was changed after it was shipped."] and len(found["notes"]) == 2


def test_loops_are_shown_to_people_and_to_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        write_run_folder(tmp_path / name, samples=2)
    assert sdk_main.main(["ship", "--show", "one", "two"]) == 0
    loops = capfd.readouterr().out
    assert sdk_main.main(["ship", "--show", "one", "two", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert list(told) == ["one", "two"] and list(told["one"]) == ["harris"]
    assert f"{told['one']['harris']}\n{told['two']['harris']}\n" == loops and "parallel" in loops


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "Missing argument"),
        (("RUN",), 2, "Name it with -o"),
        (("RUN", "-o", "new"), 1, "RUN is not a run folder: it has no run.toml."),
        (("RUN", "-o", "new", "--accept-size", "big"), 2, "--accept-size 'big' is not a size"),
        (("RUN", "-o", "new", "-p", "radius=2"), 2, "--check"),
        (("RUN", "-o", "new", "--guard", "--no-sizes"), 2, "Leave --no-sizes out"),
        (("RUN", "-o", "new", "--play-off", "--budget", "soon"), 2, "'soon' is not a duration"),
        (("--check", "RUN", "-o", "new"), 2, "--check takes one shipped folder and no -o"),
        (("--check", "RUN"), 1, "RUN is not a shipped folder: its ship.json cannot be read"),
        (("--show", "RUN"), 1, "RUN is not a run folder"),
        (("RUN", "-o", "SHIPPED/ship.json"), 1, "ship.json is not a folder"),
    ],
)
def test_a_wrong_call_is_one_message(
    arguments: tuple[str, ...],
    code: int,
    words: str,
    shipped: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [argument.replace("SHIPPED", str(shipped)) for argument in arguments]
    assert sdk_main.main(["ship", *given]) == code
    said = capfd.readouterr()
    assert said.out == "" and words in said.err and "Traceback" not in said.err
    assert not (tmp_path / "new").exists()
