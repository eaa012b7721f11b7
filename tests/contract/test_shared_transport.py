"""Two runs of one process on one device: one connection, one lease, files of their own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble
from halide_autotune.devices.remote import transport as transport_module
from halide_autotune.targets.process.content_cache import ContentCache
from tests.contract.local_device import release_lease_of, take_lease_of
from tests.process_state import await_condition
from tests.remote_board import RemoteBoard

TIME_S = 60.0


def test_sharing(board: RemoteBoard, cache: ContentCache, tmp_path: Path) -> None:
    keeper = board.transport(cache)
    first, second = keeper.sharing(), keeper.sharing()
    stranger = board.transport(cache, owner="ann@elsewhere")
    assert first.open().boot == second.open().boot
    for number, transport in enumerate((first, second)):
        script = tmp_path / f"script{number}"
        script.write_text(f"#!/bin/sh\necho I am {number}\n")
        script.chmod(0o755)
        # One name, two files: neither run sees the other's.
        transport.push(script, "batch")
    outcomes = [transport.run("batch", [], TIME_S).output for transport in (first, second, first)]
    assert outcomes == ["I am 0\n", "I am 1\n", "I am 0\n"]
    first.close()
    assert second.run("batch", [], TIME_S).output == "I am 1\n", "what is the other's stays"
    second.close()
    with pytest.raises(DeviceTrouble, match="tester@here"):
        stranger.open()
    keeper.close()
    stranger.open()
    stranger.close()


def test_each_hears_once_that_the_lease_was_taken_away(board: RemoteBoard, cache: ContentCache) -> None:
    keeper = board.transport(cache)
    first, second = keeper.sharing(), keeper.sharing()
    first.open()
    second.open()
    stranger = board.transport(cache, owner="ann@elsewhere")
    take_lease_of(stranger, force=True)
    for transport in (first, second):
        with pytest.raises(DeviceTrouble, match="ann@elsewhere"):
            transport.open()
        # A renewal meets the stranger, too, at any time: that is no news.
        keeper._connection._renew()
    assert release_lease_of(stranger)
    for transport in (first, second):
        assert transport.open().boot
        transport.close()
    keeper.close()
    stranger.close()


def test_coming_and_going_leave_what_runs_alone(
    board: RemoteBoard, cache: ContentCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose run has ended waits a while for its turn, and then does without."""
    keeper = board.transport(cache)
    first, second = keeper.sharing(), keeper.sharing()
    begun, may_end, script = tmp_path / "begun", tmp_path / "may_end", tmp_path / "script"
    script.write_text(f"#!/bin/sh\n: > {begun}\nwhile [ ! -e {may_end} ]; do sleep 0.05; done\necho all of it\n")
    script.chmod(0o755)
    first.open()
    second.open()
    first.push(script, "slow")
    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as impatient:
        impatient.setattr(transport_module, "_CLOSING_S", 0.2)
        running = pool.submit(first.run, "slow", [], TIME_S)
        await_condition(begun.exists)
        second.close()
        keeper.sharing().close()
        may_end.touch()
        outcome = running.result()
    assert (outcome.exit_code, outcome.output) == (0, "all of it\n")
    assert first.run("slow", [], TIME_S).output == "all of it\n", "over the same connection"
    first.close()
    keeper.close()
