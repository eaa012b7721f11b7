"""A few faults and a few kills of the storms' kinds: nothing is lost, doubled or left."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from benchmarks import fault_storm, kill_storm
from benchmarks.fault_storm import direct_storm, recovery_table
from benchmarks.killed_tuner import Account, Event, Tuner, account_of, heed_interrupts, left_behind
from benchmarks.storm_kinds import KINDS
from halide_autotune.autotune_loop.events import SampleFailed
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.sdk.settings import Settings
from tests.loopback_lab import LoopbackLab
from tests.recorded_run_folder import write_run_folder
from tests.remote_board import RemoteBoard

# Of options that are given twice, the last counts. Faults hit what is under way, however much of it there is.
FEW = ("--epochs", "5", "--play-off-turns", "8")


class LabBesideOthers(LoopbackLab):
    """Boards whose times say nothing: other tests come and go on this machine, and nobody waits for a steady speed."""

    def __init__(self, folder: Path, boards: Sequence[RemoteBoard], settings: Settings) -> None:
        super().__init__(folder, boards, settings)
        text = self.inventory.read_text()
        self.inventory.write_text(re.sub(r"(?m)^(transport = .*)$", r"\1\nemulated = true", text))
        assert self.inventory.read_text().count("emulated = true") == len(boards)


def account(figures: Event) -> Account:
    return Account(**cast("dict[str, int]", figures["account"]))


def lessen(patch: pytest.MonkeyPatch, storm: ModuleType, schedules: str) -> None:
    """A smaller kernel, fewer schedules a round, and less that is learnt from them."""
    patch.setattr(storm, "PARAMETERS", (*storm.PARAMETERS, "radius=1"))
    patch.setattr(storm, "ASKED", (*storm.ASKED, *FEW, "-s", schedules))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("sshd", path="/usr/sbin:/usr/bin"), reason="sshd is not installed")
def test_a_short_storm_loses_nothing(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_storm, "LoopbackLab", LabBesideOthers)
    lessen(monkeypatch, fault_storm, "8")
    figures = direct_storm(tmp_path, 5, random.Random(4), settings)
    assert figures["faults"] == 5
    assert account(figures).is_whole, figures
    assert figures["left behind"] == []
    assert len(recovery_table([figures]).splitlines()) > 2, "something was recovered from"


@pytest.mark.slow
def test_a_few_kills_lose_nothing(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    lessen(monkeypatch, kill_storm, "4")
    killed = kill_storm.killed_run(tmp_path / "killed", 3, random.Random(2), settings)
    assert (killed.kills, killed.left) == (3, [])
    assert killed.account.is_whole, killed


def test_what_is_lost_or_doubled_does_not_add_up(tmp_path: Path) -> None:
    write_run_folder(tmp_path / "run", samples=5)
    assert account_of(tmp_path / "run", {"samples_timed": 5}).is_whole
    told_too_few = account_of(tmp_path / "run", {"samples_timed": 4})
    assert (told_too_few.doubled, told_too_few.is_whole) == (1, False)
    for field in ("lost", "doubled", "given_up"):
        whole = {"chosen": 3, "timed": 2, "failed": 1, "given_up": 0, "doubled": 0, "lost": 0}
        assert Account(**whole).is_whole and not Account(**{**whole, field: 1}).is_whole


def test_what_was_stopped_and_done_later_counts_once(tmp_path: Path) -> None:
    write_run_folder(tmp_path / "run", samples=5)
    database = RunDatabase(tmp_path / "run" / "tuning.db")
    timed = database.measured()[0].candidate
    for reason in ("stopped", "stopped"):
        database.add_failure(SampleFailed(0, 0, 0, "interrupted", reason, "It ended."), symbol=timed.symbol)
    database.add_failure(SampleFailed(0, 0, 0, "race", "crashed", "It died."), symbol=timed.symbol)
    database.close()
    assert account_of(tmp_path / "run", {"samples_timed": 5}).is_whole


def test_files_that_were_not_to_stay_are_found(tmp_path: Path) -> None:
    for name in ("tmp", "run"):
        (tmp_path / name).mkdir()
    for path in (tmp_path / "run" / ".lock", tmp_path / "run" / "tuning.db"):
        path.touch()
    assert left_behind(tmp_path) == []
    unwanted = [tmp_path / "tmp" / "x", tmp_path / "run" / ".run.toml.abcdefgh"]
    for path in unwanted:
        path.touch()
    assert left_behind(tmp_path) == [f"file {path}" for path in unwanted]


def test_there_are_all_the_kinds() -> None:
    assert len(KINDS) == 16
    assert sum(kind.in_a_kernel for kind in KINDS.values()) == 14
    assert [name for name, kind in KINDS.items() if kind.concerns_all] == [
        "killed tuner",
        "lost worker",
        "killed scheduler",
    ]


def test_a_tuner_hears_interrupts_though_a_shell_started_the_storm_in_the_background(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    tuner, heard = Tuner(tmp_path, ["no-such-generator.py"], {"PATH": os.defpath}), threading.Event()

    def interrupt() -> None:
        heard.wait(60.0)
        tuner.interrupt()

    stop = threading.Thread(target=interrupt)
    try:
        heed_interrupts()
        with pytest.MonkeyPatch.context() as patch:
            asleep = "import signal, time; print('{}', flush=True); time.sleep(600)"
            patch.setattr("benchmarks.killed_tuner.sdk_program", lambda: ("-c", asleep))
            stop.start()
            code, _ = tuner.run(lambda event: heard.set())
    finally:
        heard.set()
        stop.join()
        signal.signal(signal.SIGINT, before)
    assert code == -signal.SIGINT
