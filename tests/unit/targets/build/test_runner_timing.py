"""Repetitions. Nothing here depends on how fast this machine is."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.targets.conftest import Runner

QUICK = ("--warm-up-s", "0", "--min-repetition-s", "0")


def test_reports_every_repetition(runner: Runner) -> None:
    options = ("--precision", "0", "--min-repetitions", "3", "--max-repetitions", "7", "--max-time-s", "100")
    result = runner("--kernel", "blur_tiled", "--time", *QUICK, *options)
    assert result.exit_code == 0
    timed = result.one("timed")
    assert len(timed["repetitions_s"]) == 7
    assert all(0 < time_s < 60 for time_s in timed["repetitions_s"])
    assert timed["iterations_per_repetition"] == 1
    assert timed["warm_up_calls"] == 1
    assert timed["stopped_by"] == "repetitions"
    assert result.events[-1] == {"event": "done"}


def test_stops_when_precise_enough(runner: Runner) -> None:
    options = (
        "--precision",
        "1",
        "--min-repetitions",
        "6",
        "--max-repetitions",
        "1000",
        "--max-time-s",
        "100",
    )
    timed = runner("--kernel", "blur_plain", "--time", *options).one("timed")
    assert timed["stopped_by"] == "precision"
    assert 6 <= len(timed["repetitions_s"]) < 1000


def test_stops_at_the_time_cap(runner: Runner) -> None:
    options = ("--precision", "0", "--min-repetitions", "3", "--max-time-s", "0")
    timed = runner("--kernel", "blur_plain", "--time", *QUICK, *options).one("timed")
    assert timed["stopped_by"] == "time"
    assert len(timed["repetitions_s"]) == 1


def test_gives_up_on_what_is_too_slow(runner: Runner, tmp_path: Path) -> None:
    options = ("--precision", "0", "--give-up-over-s", "1e-9", "--warm-up-s", "0")
    timed = runner("--kernel", "blur_plain", "--time", *options).one("timed")
    assert timed["stopped_by"] == "gave_up"
    assert len(timed["repetitions_s"]) == 1
    assert timed["iterations_per_repetition"] == 1


def test_short_kernels_are_called_several_times_a_repetition(runner: Runner) -> None:
    options = (
        # The fastest of several calls: the first one alone may have been held up.
        "--warm-up-s",
        "0.1",
        "--min-repetition-s",
        "0.002",
        "--min-repetitions",
        "2",
        "--max-repetitions",
        "2",
    )
    timed = runner("--kernel", "single_number", "--time", *options).one("timed")
    assert timed["iterations_per_repetition"] > 1
    assert timed["warm_up_calls"] > timed["iterations_per_repetition"]
    # The times are those of one call.
    assert max(timed["repetitions_s"]) < 0.002


def test_the_checked_call_counts_as_warm_up(runner: Runner, tmp_path: Path) -> None:
    runner("--kernel", "blur_plain", "--write-reference", tmp_path / "ref")
    options = ("--reference", tmp_path / "ref", "--max-repetitions", "5", *QUICK)
    result = runner("--kernel", "blur_tiled", "--time", *options)
    assert [event["event"] for event in result.events][-3:] == ["compared", "timed", "done"]
    assert result.one("timed")["warm_up_calls"] == 1


def test_threads(native_runner: Runner) -> None:
    """As many as are asked for: Halide's own choice, which the environment gives it here, is one."""
    options = ("--precision", "0", "--max-time-s", "60", "--max-repetitions", "1000000", *QUICK)
    command = [str(native_runner.executable.path), "--kernel", "blur_tiled", "--time", "--threads", "3", *options]
    environment = {**os.environ, "HL_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        tasks = Path(f"/proc/{process.pid}/task")
        most = 0
        while most < 3 and process.poll() is None:
            with contextlib.suppress(FileNotFoundError):
                most = max(most, len(list(tasks.iterdir())))
        process.kill()
    assert most == 3


@pytest.mark.parametrize("threads", ["1", "2"])
def test_any_number_of_threads_is_taken(runner: Runner, threads: str) -> None:
    options = ("--threads", threads, "--max-repetitions", "5", *QUICK)
    assert runner("--kernel", "blur_tiled", "--time", *options).exit_code == 0


def fresh_pages(runner: Runner, repetitions: int, *options: str | Path) -> int:
    """How many pages the system gave a program that calls a kernel so often, and the processes that it makes."""
    command = [str(runner.executable.path), "--kernel", "several_blocks", "--time", *QUICK, "--precision", "0"]
    command += ["--max-time-s", "100", "--max-repetitions", str(repetitions), *map(str, options)]
    counting = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt)"
    )
    done = subprocess.run([sys.executable, "-c", counting, *command], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.parametrize("beside", [(), ("--beside", "several_blocks", "--lost-over", "1000")], ids=["alone", "beside"])
def test_no_call_waits_for_memory_that_an_earlier_one_has_freed(
    native_runner: Runner, tmp_path: Path, beside: tuple[str, ...]
) -> None:
    """Else it would depend on what a process has allocated before: a yardstick's has not read the reference."""
    native_runner("--kernel", "several_blocks", "--write-reference", tmp_path / "reference")
    for options in (beside, (*beside, "--reference", str(tmp_path / "reference"))):
        few, many = (fresh_pages(native_runner, repetitions, *options) for repetitions in (10, 110))
        assert many - few < 500, "a call without this has some 500 of its own"
