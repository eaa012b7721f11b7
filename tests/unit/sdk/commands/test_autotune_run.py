"""`sdk autotune` for real, in processes of its own: a short run, one that is interrupted and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.sdk.settings import Settings
from tests.process_state import await_condition

ROOT = Path(__file__).parents[4]
GENERATOR = ROOT / "examples" / "separable_filter.py"
# A job in the background of a script has SIGINT ignored, and so would its children.
START = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
{beforehand}
from halide_autotune.sdk.main import main
sys.exit(main())
"""
# Ctrl-C at the moment when the first event of a kind is told: a test that was held up could only send it later.
CTRL_C_AT_THE_FIRST = """
import os
from halide_autotune.sdk.display.{module} import {display}
listen, told = {display}.listen, []
def interrupting(self, event):
    listen(self, event)
    if event.kind == "{kind}":
        told.append(event)
        if len(told) == 1:
            os.kill(os.getpid(), signal.SIGINT)
{display}.listen = interrupting
"""
CTRL_C_AT_THE_FIRST_TIME = CTRL_C_AT_THE_FIRST.format(
    module="json_display", display="JsonDisplay", kind="sample_measured"
)
CTRL_C_IN_THE_PLAY_OFF = CTRL_C_AT_THE_FIRST.format(module="plain_display", display="PlainDisplay", kind="play_off")
SMALL = (
    *(
        "--size",
        "input=192x96x3",
        "--size",
        "output=192x96x3",
        "-p",
        "radius=1",
        "-t",
        "host",
        "--search-limit",
        "240s",
    ),
    *("--pool-factor", "1", "--epochs", "5"),
    # On a busy machine a run would wait for a quiet one.
    *("--play-off-turns", "8", "--device-patience", "1s"),
)
# It does not end while a test is held up.
ENDLESS = ("-n", "1000")
_NO_LONGER_ONE_PRESS_S = 0.4
# The second press comes while the run still stops, however quickly that is done.
STOPS_FOR_LONG = """
import time
from halide_autotune.autotune_loop.run.rounds import Rounds
Rounds._abandon = lambda self, upcoming: time.sleep(600)
"""

# The first run compiles everything, which takes minutes on a busy machine.
pytestmark = pytest.mark.toolchain


def started(folder: Path, settings: Settings, *arguments: str, beforehand: str = "") -> subprocess.Popen[str]:
    environment = {
        "PATH": os.defpath,
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "SDK_CACHE_DIR": str(settings.cache_folder),
        "MARK": str(folder),
    }
    return subprocess.Popen(
        [sys.executable, "-c", START.format(beforehand=beforehand), "autotune", str(GENERATOR), *SMALL, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def events_of(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def children_left(folder: Path) -> list[str]:
    """Command lines of processes that still carry the environment of the run in `folder`."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if f"MARK={folder}\0".encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text())
            except OSError:
                continue
    return found


def test_a_whole_run_as_json(tmp_path: Path, settings: Settings) -> None:
    with started(tmp_path, settings, "-n", "1", "-s", "4", "--json") as process:
        out, error = process.communicate()
    assert (process.returncode, error) == (0, "")
    *events, result = events_of(out.splitlines())
    kinds = {event["event"] for event in events}
    assert {"run_started", "search_progress", "sample_measured", "best_improved", "batch_done"} <= kinds
    (begun,) = [event for event in events if event["event"] == "run_started"]
    assert begun["generator"] == "separable_filter"
    folder = Path(begun["run_folder"])
    assert folder == tmp_path / "tuned" / "separable_filter-host-1"
    assert result["event"] == "result"
    assert (result["outcome"], result["clock"], result["target"]) == ("finished", "wall", "host")
    timed = [event for event in events if event["event"] == "sample_measured"]
    assert result["samples_timed"] == len(timed) > 0
    (tuned,) = result["tuned"]
    assert tuned["confirmed"] is True
    assert tuned["speed_up"] >= 1
    assert "apply_schedule_separable_filter" in Path(tuned["header"]).read_text()
    for name in ("run.toml", "tuning.db", "samples/updated.weights", "samples/best.separable_filter.benchmark.txt"):
        assert (folder / name).is_file(), name
    kept = [path.parent.name for path in (folder / "samples").glob("batch_0_0/*/separable_filter.schedule.h")]
    assert sorted(kept) == sorted(str(event["sample_index"]) for event in timed)
    assert "--num-batches 2" in result["resume_command"]
    assert children_left(tmp_path) == []


def lines_until(process: subprocess.Popen[str], words: str) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line
        if words in line:
            return


def test_ctrl_c_keeps_the_best_and_resume_goes_on(tmp_path: Path, settings: Settings) -> None:
    with started(tmp_path, settings, *ENDLESS, "-s", "6", "--json", beforehand=CTRL_C_AT_THE_FIRST_TIME) as process:
        out, error = process.communicate()
    assert (process.returncode, error) == (130, "sdk: interrupted.\n")
    *events, result = events_of(out.splitlines())
    assert "stopping; press Ctrl-C again to stop at once" in [event.get("text") for event in events]
    assert (result["event"], result["outcome"]) == ("result", "interrupted")
    assert 1 <= result["samples_timed"] < 6
    (tuned,) = result["tuned"]
    assert tuned["confirmed"] is False
    assert Path(tuned["header"]).is_file()
    assert children_left(tmp_path) == []

    # The second round may have been built when the first was interrupted.
    with started(tmp_path, settings, "-n", "3", "-s", "4", "--resume", "--plain") as process:
        out, error = process.communicate()
    assert (process.returncode, error) == (0, "")
    assert f"resumes {tmp_path}/tuned/separable_filter-host-1" in out
    assert f"Resumed with {result['samples_timed']} timed" in out
    assert "  round 3/3  " in out
    assert any(words in out for words in ("  speed-up   ", "the default stays", "your own schedule stays"))


def test_ctrl_c_in_the_play_off_says_what_is_unconfirmed(tmp_path: Path, settings: Settings) -> None:
    with started(tmp_path, settings, "-n", "1", "-s", "4", "--plain", beforehand=CTRL_C_IN_THE_PLAY_OFF) as process:
        out, error = process.communicate()
    assert (process.returncode, error) == (130, "sdk: interrupted.\n")
    assert "  default    " in out and "  default    not timed" not in out
    assert "; unconfirmed\n" in out and "  play-off   Unconfirmed: " in out
    assert "  ended      " in out and "interrupted; everything measured is saved" in out
    assert (tmp_path / "tuned/separable_filter-host-1/samples/best.separable_filter.schedule.h").is_file()
    assert children_left(tmp_path) == []


def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path, settings: Settings) -> None:
    with started(tmp_path, settings, *ENDLESS, "-s", "6", "--json", beforehand=STOPS_FOR_LONG) as process:
        list(lines_until(process, '"search_progress"'))
        process.send_signal(signal.SIGTERM)
        list(lines_until(process, "stopping;"))
        time.sleep(_NO_LONGER_ONE_PRESS_S)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in error
    await_condition(lambda: children_left(tmp_path) == [], "the end of all that was killed")
    assert (tmp_path / "tuned" / "separable_filter-host-1" / "run.toml").is_file()


def test_a_reader_that_goes_away_ends_it_in_order(tmp_path: Path, settings: Settings) -> None:
    with started(tmp_path, settings, *ENDLESS, "-s", "6", "--json") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        error = process.stderr.read()
        assert process.wait() == 1
    assert error == ""
    assert children_left(tmp_path) == []
