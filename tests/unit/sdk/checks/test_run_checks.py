"""What `sdk doctor --run` says of a run folder that is whole, and of damaged ones."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from halide_autotune.sdk.checks.run_checks import check_run
from halide_autotune.sdk.main import main
from tests.recorded_run_folder import write_run_folder

WINNER = "batch_0_0/1/harris.schedule.h"
BEST = "samples/best.harris.schedule.h"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    write_run_folder(folder, 40)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def problems(folder: Path) -> dict[str, str]:
    """Check → what is wrong; each comes with what to do."""
    failed = [check for check in check_run(folder) if not check.passed]
    assert all(check.fix for check in failed)
    return {check.name: check.found for check in failed}


def execute(folder: Path, sql: str) -> None:
    with closing(sqlite3.connect(folder / "tuning.db")) as connection, connection:
        connection.execute(sql)


def test_a_whole_run_agrees_with_itself(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    assert main(["doctor", "--run", str(whole), "--json"]) == 0
    checks = {check["name"]: check["found"] for check in json.loads(capsys.readouterr().out)["checks"]}
    assert list(checks) == [
        "run",
        "tuning.db",
        "schedules",
        "files",
        "best.harris.schedule.h",
        "start.weights",
        "updated.weights",
    ]
    assert checks["schedules"] == "40 schedules chosen: 40 timed, 0 failed, 0 not timed because the run ended"
    assert checks["best.harris.schedule.h"] == "batch_0_0/1, as in the database"
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*")} == before, "it only reads"


@pytest.mark.parametrize(
    ("damage", "check", "told"),
    [
        (lambda f: (f / BEST).write_text("// mine\n"), "best.harris.schedule.h", "not what the run has published"),
        (lambda f: (f / BEST).unlink(), "best.harris.schedule.h", "not what the run has published"),
        (
            lambda f: (f / "samples" / "best.harris.benchmark.txt").write_text("1 ms\n"),
            "best.harris.schedule.h",
            "best.harris.benchmark.txt beside it",
        ),
        (lambda f: (f / "samples" / WINNER).unlink(), "files", "batch_0_0/1: "),
        (lambda f: (f / "samples" / WINNER).write_text("int main() {}"), "files", "batch_0_0/1: "),
        (lambda f: (f / "samples/batch_0_0/2/harris.sample").unlink(), "files", "batch_0_0/2: "),
        (
            lambda f: shutil.copy(f / "samples/batch_0_0/3/harris.sample", f / "samples/batch_0_0/4/harris.sample"),
            "files",
            "batch_0_0/4: harris.sample says ",
        ),
        (
            lambda f: shutil.copy(
                f / "samples/batch_0_0/3/harris.featurization", f / "samples/batch_0_0/4/harris.featurization"
            ),
            "files",
            "batch_0_0/4: harris.featurization is of another schedule",
        ),
        (lambda f: (f / "samples" / "updated.weights").write_bytes(b"no"), "updated.weights", "updated.weights"),
        (lambda f: (f / "samples" / "start.weights").unlink(), "start.weights", "start.weights"),
        (
            lambda f: execute(f, "DELETE FROM measurements WHERE symbol = 'harris_r0_a0_s7'"),
            "schedules",
            "39 timed, 0 failed, 0 not timed because the run ended, 1 with neither a time nor a failure",
        ),
        (
            lambda f: execute(f, "UPDATE measurements SET median_ms = 1 WHERE symbol = 'harris_r0_a0_s7'"),
            "files",
            "batch_0_0/7: harris.sample says ",
        ),
        (lambda f: (f / "tuning.db").write_bytes(b"no database"), "run", "tuning.db"),
        (lambda f: (f / "tuning.db").unlink(), "run", "tuning.db is missing"),
        (lambda f: (f / "run.toml").write_text("[x"), "run", "run.toml"),
        (shutil.rmtree, "run", "run"),
    ],
)
def test_what_does_not_agree_is_named_with_what_to_do(
    folder: Path, damage: Callable[[Path], object], check: str, told: str
) -> None:
    damage(folder)
    found = problems(folder)
    assert list(found) == [check] and told in found[check]
    assert main(["doctor", "--run", str(folder)]) == 1


def test_other_weights_than_those_that_were_recorded_are_noticed(folder: Path) -> None:
    samples = folder / "samples"
    data = bytearray((samples / "updated.weights").read_bytes())
    data[-1] ^= 1
    (samples / "updated.weights").write_bytes(data)
    assert problems(folder) == {"updated.weights": "they are not what the run has recorded"}


def test_a_few_of_many_are_named(folder: Path) -> None:
    for path in (folder / "samples").glob("batch_0_0/*/harris.sample"):
        path.unlink()
    assert problems(folder)["files"].endswith("(and 29 more)")


def test_a_run_in_use_may_differ_for_a_moment(folder: Path) -> None:
    lock = os.open(folder / ".lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        first = check_run(folder)[0]
    finally:
        os.close(lock)
    assert (first.name, first.passed) == ("in use", True)
    assert check_run(folder)[0].name == "run"


def test_it_checks_a_run_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--run", "tuned/x", "--target", "arm64"]) == 2
    assert "Leave --target out." in capsys.readouterr().err
