"""A wall clock that is set an hour forward or back in the middle: nothing is lost, counted twice or left behind."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from halide_autotune.autotune_loop.farm.certificates import authority, certificate_files, revocation
from halide_autotune.autotune_loop.farm.certificates.authority import make_certificates, read_authority
from halide_autotune.autotune_loop.farm.certificates.revocation import revoke_certificates
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.report.run_page import PageOptions, print_page
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.lease.token import LeaseToken, keep_token, new_token, read_token
from halide_autotune.devices.remote_place import RemotePlace, SshAddress
from halide_autotune.targets.process import scratch_folder as scratch
from halide_autotune.targets.process.scratch_folder import scratch_folder
from tests.contract.writing_process import RECORD, candidate, measurement, symbol
from tests.recorded_run_folder import write_run_folder

JumpClock = Callable[[float], None]
PLACE = RemotePlace(SshAddress("board"))

pytestmark = pytest.mark.parametrize("jump_s", [3600.0, -3600.0], ids=["forward", "back"])


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> JumpClock:
    """Sets the wall clock; the monotonic one goes on."""
    real = time.time

    def set_clock(jump_s: float) -> None:
        def now(zone: datetime.tzinfo) -> datetime.datetime:
            return datetime.datetime.fromtimestamp(real() + jump_s, zone)

        monkeypatch.setattr(time, "time", lambda: real() + jump_s)
        clock = SimpleNamespace(datetime=SimpleNamespace(now=now), timedelta=datetime.timedelta, UTC=datetime.UTC)
        for module in (authority, certificate_files, revocation):
            monkeypatch.setattr(module, "datetime", clock)

    return set_clock


def test_results_keep_their_order_and_count_once(tmp_path: Path, jump: JumpClock, jump_s: float) -> None:
    store = RunStore(tmp_path / "run", RECORD, resume=False)
    for index in range(4):
        if index == 2:
            jump(jump_s)
        store.database.add_candidate(candidate(store.candidate_folder(0, 0, index), 0, index))
        if index != 3:
            store.database.add_measurement(measurement(symbol(0, index), 1e-3 * (index + 1)), "sample", 0.1)
    store.close()
    store = RunStore(tmp_path / "run", RECORD, resume=True)
    timed = [row.candidate.symbol for row in store.database.measured()]
    unfinished = [name for name, _, _ in store.database.unfinished()]
    store.close()
    assert (timed, unfinished) == ([symbol(0, 0), symbol(0, 1), symbol(0, 2)], [symbol(0, 3)])


def test_a_report_is_drawn_of_a_run_in_which_it_was_set(tmp_path: Path, jump: JumpClock, jump_s: float) -> None:
    write_run_folder(tmp_path / "run", samples=3)
    jump(jump_s)
    run = read_recorded_run(tmp_path / "run")
    assert len(run.samples) == 3 and print_page(run, PageOptions()).startswith("<!")


def test_a_lease_that_was_taken_by_hand_is_kept_or_over(tmp_path: Path, jump: JumpClock, jump_s: float) -> None:
    kept = LeaseToken(new_token(), time.time() + 600)
    keep_token(tmp_path, PLACE, kept)
    jump(jump_s)
    assert read_token(tmp_path, PLACE) == kept
    # What is left is only how long a claim asks for: the device's own clock ends the lease.
    assert (kept.left_s > 0) == (jump_s < 0)


def test_temporary_files_in_use_stay(
    tmp_path: Path, jump: JumpClock, jump_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch._delete_left_over.cache_clear()
    with scratch_folder("first", tmp_path) as first:
        jump(jump_s)
        scratch._delete_left_over.cache_clear()
        with scratch_folder("second", tmp_path):
            assert first.is_dir()
    scratch._delete_left_over.cache_clear()
    assert list(tmp_path.iterdir()) == []


def test_certificates_and_the_list_of_revoked_ones_are_valid(tmp_path: Path, jump: JumpClock, jump_s: float) -> None:
    make_certificates(tmp_path, ["lab"], ["ana"])
    revoke_certificates(tmp_path, ["lab"])
    jump(jump_s)
    read_authority(tmp_path)
    assert [one.is_new for one in revoke_certificates(tmp_path, ["ana"])] == [True]
    assert [one.is_new for one in revoke_certificates(tmp_path, ["ana"])] == [False]
