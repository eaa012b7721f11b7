"""`sdk doctor`, on this machine and on one that lacks things."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halide_autotune.sdk.checks.check import Check
from halide_autotune.sdk.checks.machine_checks import check_machine
from halide_autotune.sdk.main import main
from halide_autotune.sdk.project.history import open_history
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.profile.loader import list_profiles, load_profile
from tests.known_schedules import known

BOARD = """
extends = "arm64"
[emulator]
command = "qemu-of-nobody"
system_root = "/no/such/root"
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SDK_PROFILE_DIR", str(tmp_path))
    monkeypatch.setenv("SDK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def checks_of(folder: Path, *, must_run_here: bool = False, path: str = "/usr/bin:/bin") -> dict[str, Check]:
    settings = read_settings({"HOME": str(folder), "PATH": path})
    checks = check_machine(settings, list_profiles(folder), must_run_here=must_run_here)
    return {check.name: check for check in checks}


def test_what_the_tests_themselves_need_is_found(folders: Path) -> None:
    checks = checks_of(folders)
    for name in (
        "Python",
        "Halide",
        "autoscheduler Adams2019",
        "C toolchain (zig)",
        "TensorFlow",
        "target host",
    ):
        assert checks[name].passed, checks[name]
        assert checks[name].fix == ""


def test_what_is_missing_comes_with_its_fix(folders: Path) -> None:
    (folders / "board.toml").write_text(BOARD)
    (folders / "broken.toml").write_text("x = 1")
    checks = checks_of(folders, path=str(folders))
    assert not checks["C++ compiler"].passed
    assert "apt-get install g++" in checks["C++ compiler"].fix
    board = checks["target board"]
    assert not board.passed
    assert "qemu-of-nobody" in board.found
    assert "/no/such/root" in board.found
    assert board.fix == "On Debian: apt-get install qemu-user libc6-arm64-cross"
    assert not checks["target broken"].passed
    assert "unknown key" in checks["target broken"].found


def test_a_vector_unit_of_another_machine_matters_only_when_asked_for(folders: Path) -> None:
    text = 'extends = "{}"\nhalide_target = "{}"\ndevice_kind = "local"\n[toolchain]\ntriple = "{}"\n'
    elsewhere = {
        "x86": ("arm64", "arm-64-linux-sve2", "aarch64-linux-gnu"),
        "arm": ("x86-64", "x86-64-linux", "x86_64-linux-gnu"),
    }
    here = load_profile("host").halide_target.split("-")[0]
    (folders / "elsewhere.toml").write_text(text.format(*elsewhere[here]))
    lax = checks_of(folders)["target elsewhere"]
    strict = checks_of(folders, must_run_here=True)["target elsewhere"]
    assert (lax.passed, lax.needed) == (False, False)
    assert (strict.passed, strict.needed) == (False, True)


def test_emulators_without_plug_ins_have_no_simulated_clock(folders: Path) -> None:
    for name in ("qemu-aarch64", "qemu-riscv64"):
        (folders / name).write_text(f"#!/bin/sh\necho '{name} version 10.0.13'\n")
        (folders / name).chmod(0o700)
    clock = checks_of(folders, path=str(folders))["simulated clock"]
    assert (clock.passed, clock.needed) == (False, False)
    assert f"{folders}/qemu-aarch64 takes no plug-ins" in clock.found
    assert f"{folders}/qemu-riscv64: no simulated clock either." in clock.found
    assert "--clock emulated" in clock.fix


def test_a_cache_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = read_settings({"HOME": "/h", "PATH": "/bin", "SDK_CACHE_DIR": str(tmp_path / "file" / "cache")})
    checks = {check.name: check for check in check_machine(settings, [], must_run_here=False)}
    assert not checks["cache folder"].passed
    assert "SDK_CACHE_DIR" in checks["cache folder"].fix


def test_the_command(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    text = capsys.readouterr().out
    assert "Halide" in text
    assert "target arm64" in text


def test_the_command_as_json_and_its_exit_code(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folders / "board.toml").write_text(BOARD)
    assert main(["doctor", "--target", "board", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["passed"] is False
    names = [check["name"] for check in answer["checks"]]
    assert "target board" in names
    assert "target arm64" not in names


def test_an_unknown_target_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--target", "arm46"]) == 1
    assert "the nearest is 'arm64'" in capsys.readouterr().err


def test_a_damaged_history_is_found(folders: Path) -> None:
    history = open_history(read_settings({"HOME": str(folders)}))
    assert checks_of(folders)["history"].found == "nothing yet"
    history.add([known(1.0), known(2.0)])
    assert checks_of(folders)["history"].found == "2 schedules of 1 generator"
    history.file.write_bytes(b"damaged" * 100)
    check = checks_of(folders)["history"]
    assert not check.passed and "is damaged" in check.found and "sdk history add RUN" in check.fix
