"""A run that is killed at any moment loses nothing that was measured, leaves no process, and is gone on with."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.run.result import Outcome
from halide_autotune.sdk.settings import Settings
from tests.end_to_end.conftest import SMALL, Tune
from tests.end_to_end.run_files import check_run_folder, rows

# Prints a line for every measurement that it was told of, which is after it was committed.
SCRIPT = """
import sys
from pathlib import Path
from tests.flat_tuning import tune_flat
generator, folder, resume = sys.argv[1:4]
def listen(event):
    if event.kind == "sample_measured":
        print(f"{event.round_index}/{event.task_index}/{event.sample_index}", flush=True)
tune_flat(generator, parameters=sys.argv[4:], run_folder=Path(folder), resume=resume == "resume", parallelism=1,
    rounds=500, patience_s=1.0, batch_size=5, pool_factor=1.0, seed=3, epochs=5, listen=listen)
"""


def run_and_kill(command: list[str], settings: Settings, wait_s: float) -> set[str]:
    """Start it, kill it a while after its second measurement; returns the measurements it told of."""
    child = subprocess.Popen(command, env=dict(settings.environment), stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    told = [child.stdout.readline(), child.stdout.readline()]
    time.sleep(wait_s)
    os.kill(child.pid, signal.SIGKILL)
    rest = child.stdout.read()  # not by communicate: with a limit, that passes over what readline has read ahead
    child.stdout.close()
    child.wait()
    assert child.returncode == -signal.SIGKILL, told
    return {line.strip() for line in [*told, *rest.splitlines(keepends=True)] if line.endswith("\n")}


def processes_of(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + os.readlink(process / "cwd").encode()
        except OSError:
            continue
        if str(folder).encode() in words:
            found.append(words.decode(errors="replace"))
    return found


@pytest.mark.slow
def test_a_killed_run_is_gone_on_with(tune: Tune, settings: Settings, examples: Path, tmp_path: Path) -> None:
    source = random.Random(11)
    folder = tmp_path / "run"
    # The generator lies below the folder, so that every process of the run can be found by it.
    generator = tmp_path / "blur.py"
    generator.write_bytes((examples / "separable_filter.py").read_bytes())
    told: set[str] = set()
    for how in ("new", "resume"):
        command = [sys.executable, "-c", SCRIPT, str(generator), str(folder), how, *SMALL]
        fresh = run_and_kill(command, settings, source.uniform(0.0, 2.0))
        assert not told & fresh, "a measurement was done twice"
        told |= fresh
    deadline_s = time.monotonic() + 120
    while processes_of(tmp_path) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert not processes_of(tmp_path)
    kept = rows(folder, "SELECT symbol, count(*) FROM measurements WHERE purpose = 'sample' GROUP BY 1")
    before = {symbol for symbol, count in kept if count == 1}
    assert len(before) == len(kept)
    assert {f"separable_filter_r{r}_a{a}_s{s}" for r, a, s in (name.split("/") for name in told)} <= before
    rounds = rows(folder, "SELECT max(round) FROM candidates")[0][0] + 2
    result = tune(str(generator), parameters=SMALL, run_folder=folder, resume=True, rounds=rounds)
    assert result.outcome in (Outcome.FINISHED, Outcome.EXHAUSTED)
    after = {symbol for (symbol,) in rows(folder, "SELECT symbol FROM measurements WHERE purpose = 'sample'")}
    assert before <= after and result.totals.samples_timed == len(after)
    chosen = {symbol for (symbol,) in rows(folder, "SELECT symbol FROM candidates")}
    failed = {symbol for (symbol,) in rows(folder, "SELECT symbol FROM failures WHERE reason <> 'stopped'")}
    assert chosen <= after | failed and result.totals.not_done == 0, "what was chosen is timed, or has failed"
    assert result.best.confirmed and result.best.default_ms is not None
    check_run_folder(result, "separable_filter", "wall")
