"""The command `sdk check`: what it finds in a committed folder, and with which exit code."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import halide_autotune.sdk.api.check
import halide_autotune.sdk.main as sdk_main
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import EmulatorError

HEADER = "blur.arm64.schedule.h"


@pytest.fixture(autouse=True)
def in_session_folders(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in settings.environment.items():
        monkeypatch.setenv(key, value)


@pytest.fixture
def shipped(examples: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(examples / "shipping" / "schedules", tmp_path / "schedules"))


@pytest.fixture
def generator(examples: Path) -> str:
    return str(examples / "shipping" / "blur.py")


def with_facts(folder: Path, **facts: object) -> None:
    """Change what the folder says of the schedule for arm64."""
    manifest = json.loads((folder / "ship.json").read_text())
    next(one for one in manifest["schedules"] if one["header"] == HEADER)["provenance"].update(facts)
    (folder / "ship.json").write_text(json.dumps(manifest))


Check = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def check(shipped: Path, generator: str, capfd: pytest.CaptureFixture[str]) -> Check:
    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = sdk_main.main(
            ["check", str(shipped), "--generator", generator, "--target", "arm64", "--json", *arguments]
        )
        result = json.loads(capfd.readouterr().out)
        return code, next(one for one in result["schedules"] if one["header"] == HEADER)

    return run


@pytest.mark.toolchain
def test_what_was_shipped_is_as_fast_as_it_says(check: Check, tmp_path: Path) -> None:
    """By the simulated clock, which says the same on every machine."""
    code, found = check("--junit", str(tmp_path / "check.xml"), "--markdown", str(tmp_path / "check.md"))
    assert (code, found["verdict"], found["device"], found["clock"]) == (0, "ok", "qemu", "simulated"), found
    assert found["speed_up"]["low"] == found["speed_up"]["high"] > found["promised"] / 1.05
    assert len(ElementTree.parse(tmp_path / "check.xml").findall("testcase")) == 2
    assert f"| {HEADER} | arm64 | qemu | ok |" in (tmp_path / "check.md").read_text()


@pytest.mark.toolchain
def test_one_that_is_slower_than_it_says_fails(check: Check, shipped: Path) -> None:
    with_facts(shipped, default_ms=7.0)
    code, found = check()
    assert (code, found["verdict"]) == (5, "slower")
    assert re.search(r"times as fast as the default .*; the header says 10\.\d+\.", found["message"])
    assert check("--fail-if-slower", "900%")[0] == 0


@pytest.mark.toolchain
def test_one_that_was_edited_is_stale_and_not_timed(check: Check, shipped: Path) -> None:
    (shipped / HEADER).write_text("// by hand\n")
    code, found = check()
    assert (code, found["verdict"], found["device"]) == (4, "stale", "")
    assert found["message"] == f"{HEADER} was changed after it was shipped."


@pytest.mark.toolchain
def test_without_a_device_nothing_is_said_of_times(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object) -> None:
        raise EmulatorError("qemu-aarch64 is not installed.")

    monkeypatch.setattr(halide_autotune.sdk.api.check, "find_devices", missing)
    code, found = check()
    assert (code, found["verdict"], found["message"]) == (7, "no device", "qemu-aarch64 is not installed.")


@pytest.mark.toolchain
def test_without_its_generator_only_files_are_checked(shipped: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert sdk_main.main(["check", str(shipped)]) == 0
    said = capfd.readouterr()
    assert "not timed" in said.out and "Pass it with --generator." in said.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "Missing argument"),
        (("RUN",), 1, "RUN is not a shipped folder: its ship.json cannot be read"),
        (("SHIPPED", "--fail-if-slower", "much"), 2, "'much' is not a share. Write it in per cent, such as 5%."),
        (("SHIPPED", "--device", "nobody"), 2, "nobody"),
        (("SHIPPED", "--junit", "RUN/check.xml"), 1, "RUN/check.xml cannot be written"),
        (("SHIPPED", "--generator", "RUN.cpp"), 1, "RUN.cpp"),
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
    assert sdk_main.main(["check", *given]) == code
    said = capfd.readouterr()
    assert said.out == "" and words in said.err and "Traceback" not in said.err


@pytest.mark.toolchain
def test_a_damaged_figure_is_told_with_its_place(
    check: Check, shipped: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with_facts(shipped, tuned_ms="fast")
    assert sdk_main.main(["check", str(shipped)]) == 1
    assert f"ship.json: {HEADER}: tuned_ms is 'fast', not a number above 0." in capfd.readouterr().err
