"""What the commands do and say about the two ways to link for Android."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.sdk.main import main
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.toolchain.ndk import NDK_VARIABLES, SDK_VARIABLE
from tests.stand_in_ndk import EMULATOR, REVISION, make_stand_in_ndk

FALLBACK = "for aarch64-linux-musl, static"
NDK = f"Android NDK {REVISION}, clang "
SMALL = ("-p", "width=64", "-p", "height=32", "-p", "channels=1")

Answer = Callable[..., tuple[int, Any, str]]

pytestmark = pytest.mark.skipif(not shutil.which(EMULATOR[0]), reason=f"{EMULATOR[0]} is not installed")


@pytest.fixture(scope="module")
def ndk_root(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_stand_in_ndk(tmp_path_factory.mktemp("ndk"), settings.cache_folder / "zig")


@pytest.fixture
def answer(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Answer:
    """Runs a command with --json where the NDK is at a path, or nowhere."""
    for variable in (*NDK_VARIABLES, SDK_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SDK_CACHE_DIR", str(settings.cache_folder))
    monkeypatch.setenv("SDK_CONFIG_DIR", str(settings.config_folder))
    monkeypatch.chdir(tmp_path)

    def ask(*arguments: str | Path, ndk: Path | None = None) -> tuple[int, Any, str]:
        if ndk is not None:
            monkeypatch.setenv(NDK_VARIABLES[0], str(ndk))
        capfd.readouterr()
        code = main([*(str(argument) for argument in arguments), "--json"])
        said = capfd.readouterr()
        return code, json.loads(said.out) if said.out else None, said.err

    return ask


def test_show_says_which_is_used(answer: Answer, ndk_root: Path) -> None:
    code, shown, _ = answer("targets", "show", "arm64-android")
    assert code == 0
    assert FALLBACK in shown["toolchain_in_use"] and NDK_VARIABLES[0] in shown["toolchain_in_use"]
    _, shown, _ = answer("targets", "show", "arm64-android", ndk=ndk_root)
    assert shown["toolchain_in_use"].startswith(NDK) and FALLBACK in shown["toolchain_in_use"]
    code, shown, _ = answer("targets", "show", "arm64-android", ndk=Path("/no/ndk"))
    assert code == 0, "a profile can be looked at without what it needs"
    assert "The Android NDK in /no/ndk cannot be used" in shown["toolchain_in_use"]
    _, shown, _ = answer("targets", "show", "arm64")
    assert "toolchain_in_use" not in shown


def test_doctor_says_which_is_used(answer: Answer, ndk_root: Path) -> None:
    def check(ndk: Path | None) -> dict[str, Any]:
        _, found, _ = answer("doctor", "--target", "arm64-android", ndk=ndk)
        return next(check for check in found["checks"] if check["name"] == "C toolchain (arm64-android)")

    without, broken, there = check(None), check(Path("/no/ndk")), check(ndk_root)
    assert without["passed"] and FALLBACK in without["found"]
    assert there["passed"] and there["found"].startswith(NDK)
    assert not broken["passed"] and "/no/ndk" in broken["found"] and NDK_VARIABLES[0] in broken["fix"]


@pytest.mark.skipif(not Path(EMULATOR[2]).is_dir(), reason=f"{EMULATOR[2]} is missing")
def test_build_links_with_the_ndk_and_says_so(answer: Answer, ndk_root: Path, examples: Path) -> None:
    arguments = (
        "build",
        examples / "separable_filter.py",
        *SMALL,
        "-t",
        "arm64-android",
        "--schedule",
        "mullapudi2016",
    )
    code, files, errors = answer(*arguments, ndk=ndk_root)
    assert code == 0, errors
    assert files["toolchain"].startswith(NDK)
    listing = subprocess.run([*EMULATOR, files["benchmark"], "--list"], capture_output=True, text=True, check=True)
    assert '"arm-64-android' in listing.stdout


def test_a_broken_ndk_is_one_message(answer: Answer, examples: Path) -> None:
    code, files, errors = answer(
        "build", examples / "separable_filter.py", *SMALL, "-t", "arm64-android", ndk=Path("/no/ndk")
    )
    assert (code, files) == (1, None)
    assert errors.startswith("sdk: The Android NDK in /no/ndk cannot be used: ")
    assert NDK_VARIABLES[0] in errors and len(errors.strip().splitlines()) == 1


# The first static program of a session waits until zig has built musl.
@pytest.mark.slow
def test_bench_under_the_emulator_links_statically_and_says_so(answer: Answer, examples: Path) -> None:
    code, timed, errors = answer(
        "bench", examples / "separable_filter.py", *SMALL, "-t", "arm64-android", "--turns", "1", ndk=Path("/no/ndk")
    )
    assert code == 0, errors
    assert timed[0]["toolchain"].endswith(FALLBACK)
    assert timed[0]["failure"] is None and timed[0]["output_compared_with"] is not None
