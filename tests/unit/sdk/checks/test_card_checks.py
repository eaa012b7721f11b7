"""What `sdk doctor` and `sdk targets show` say of the card and the assembler, with a stand-in for the driver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.sdk.checks.card_checks import check_assembler, check_local_card
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.cuda.ptxas import find_ptxas
from halide_autotune.targets.profile.loader import load_profile
from tests.stand_in_cuda import StandInCuda, build_stand_in_cuda

pytestmark = pytest.mark.toolchain

START = "import sys, halide_autotune.sdk.main as sdk_main; sys.exit(sdk_main.main())"


@pytest.fixture
def stand_in(tmp_path: Path) -> StandInCuda:
    return build_stand_in_cuda(tmp_path)


def answer(environment: dict[str, str], *arguments: str) -> Any:
    """Of a process of its own: what libraries it loads is decided when it starts."""
    command = [sys.executable, "-c", START, *arguments, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    return json.loads(done.stdout)


def test_a_card_that_is_there(stand_in: StandInCuda, settings: Settings) -> None:
    environment = stand_in.environment(settings.environment, processes=2)
    checks = {check["name"]: check for check in answer(environment, "doctor", "--target", "cuda-sm86")["checks"]}
    card = "Stand-in 0 ?no card? (compute capability 8.6, 20 multiprocessors), driver for CUDA 12.4"
    assert checks["target cuda-sm86"]["passed"]
    assert checks["target cuda-sm86"]["found"] == f"{card}; in use by 2 other processes"
    assert checks["autoscheduler Anderson2021"]["passed"] and not checks["ptxas"]["needed"]
    shown = answer(environment, "targets", "show", "cuda-sm80")
    assert shown["card_here"].startswith(card) and shown["machine"]["gpu"]["name"] == "A100"
    assert ("(" in shown["ptxas"]) is (find_ptxas(settings.environment) is not None)


def test_a_card_that_is_too_old(stand_in: StandInCuda, settings: Settings) -> None:
    environment = stand_in.environment(settings.environment, major=5)
    result = answer(environment, "doctor", "--target", "cuda-sm75")
    check = next(check for check in result["checks"] if check["name"] == "target cuda-sm75")
    assert not result["passed"] and not check["passed"]
    assert "has compute capability 5.6, and profile cuda-sm75 compiles for 7.5." in check["found"]


def test_a_driver_that_is_not_there(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halide_autotune.sdk.checks.card_checks._DRIVERS", ("libcuda-of-nobody.so",))
    found = check_local_card(load_profile("cuda-sm75"), settings)
    assert (found.passed, found.found) == (False, "there is no CUDA driver (libcuda.so)")
    assert found.fix.startswith("Install NVIDIA's driver")
    assert check_assembler(settings).passed is (find_ptxas(settings.environment) is not None)
