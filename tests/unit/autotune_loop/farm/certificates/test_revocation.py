"""Certificates that are revoked: by name or file, for good, and while a scheduler runs."""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path

import pytest
from dask import config as dask_config
from distributed.core import rpc

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.certificates.authority import make_certificates
from halide_autotune.autotune_loop.farm.certificates.certificate_files import (
    RevokedError,
    check_certificate,
    read_revoked,
)
from halide_autotune.autotune_loop.farm.certificates.revocation import revoke_certificates
from halide_autotune.autotune_loop.farm.probe_scheduler import probe_scheduler
from halide_autotune.autotune_loop.farm.quiet_dask import QUIET_CONFIG
from halide_autotune.targets.errors import FarmError, UsageError
from tests.farm_certificates import farm_scheduler, farm_worker, until


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    folder = tmp_path / "farm"
    make_certificates(folder, ["lab1", "both"], ["ana", "bob", "both"])
    return folder


def _revoked_names(folder: Path) -> set[str]:
    return {one.name for one in make_certificates(folder, [], []) if one.is_revoked}


def test_a_name_means_every_certificate_that_was_made_for_it(farm: Path) -> None:
    lost = (farm / "users" / "ana" / "certificate.pem").read_bytes()
    make_certificates(farm, [], ["ana"], renew=True)
    first = revoke_certificates(farm, ["ana"])
    assert [(one.name, one.role, one.is_new) for one in first] == [("ana", "user", True)] * 2
    assert first[0].serial_number != first[1].serial_number and _revoked_names(farm) == {"ana"}
    assert not any(one.is_new for one in revoke_certificates(farm, ["ana"])), "once is enough"
    make_certificates(farm, [], ["ana"], renew=True)
    assert _revoked_names(farm) == set(), "the new one is good"
    # A list that follows another one within the same second is newer to OpenSSL, too, and keeps what was on it.
    before = read_revoked(farm)
    second = revoke_certificates(farm, [str(farm / "users" / "bob" / "certificate.pem")])
    after = read_revoked(farm)
    assert [one.name for one in second] == ["bob"] and _revoked_names(farm) == {"bob"}
    assert before is not None and after is not None
    assert after.last_update_utc > before.last_update_utc and len(after) == 3
    (farm / "users" / "ana" / "certificate.pem").write_bytes(lost)
    assert _revoked_names(farm) == {"ana", "bob"}


def test_what_cannot_be_revoked_is_one_message(farm: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make_certificates(other, [], [])
    with pytest.raises(UsageError, match=r"No host or user of .* is called 'anna'; the nearest is 'ana'"):
        revoke_certificates(farm, ["anna"])
    with pytest.raises(UsageError, match="A host and a user are called both"):
        revoke_certificates(farm, ["both"])
    with pytest.raises(UsageError, match="is the authority's own certificate"):
        revoke_certificates(farm, [str(farm / "ca.pem")])
    with pytest.raises(FarmError, match="was not made by this farm's authority"):
        revoke_certificates(farm, [str(other / "certificate.pem")])
    with pytest.raises(FarmError, match="not the key of its authority"):
        revoke_certificates(farm / "users" / "ana", ["ana"])
    with pytest.raises(FarmError, match="nowhere has no certificates of a farm. Give .* with --folder"):
        revoke_certificates(tmp_path / "nowhere", ["ana"])
    assert not (farm / "revoked.pem").exists()


def test_a_list_of_somebody_else_is_refused(farm: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make_certificates(other, [], ["eve"])
    revoke_certificates(other, ["eve"])
    shutil.copy(other / "revoked.pem", farm)
    with pytest.raises(FarmError, match="was not signed by the authority"):
        FarmAddress("tls://lab1:8786", farm).security()
    (farm / "revoked.pem").write_text("nonsense")
    with pytest.raises(FarmError, match="is not a list of revoked certificates"):
        read_revoked(farm)


def test_a_revoked_host_does_not_start(farm: Path) -> None:
    revoke_certificates(farm, ["lab1"])
    lab = farm / "hosts" / "lab1"
    check_certificate(lab)
    shutil.copy(farm / "revoked.pem", lab)
    with pytest.raises(RevokedError, match=r"certificate\.pem was revoked"):
        check_certificate(lab)


def _tried_for_seconds() -> dask_config.set:
    """Who is refused tries again for a while; here not for long."""
    return dask_config.set({"distributed.comm.timeouts.connect": "5s"})


def test_a_scheduler_that_runs_puts_the_revoked_out(
    farm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    monkeypatch.setattr("halide_autotune.autotune_loop.farm.scheduler._LOOK_S", 0.05)
    told: list[str] = []

    async def play() -> None:
        async with farm_scheduler(farm, told) as scheduler:

            def at(user: str) -> FarmAddress:
                return FarmAddress(scheduler.address, farm / "users" / user)

            users = {
                user: rpc(scheduler.address, connection_args=at(user).security().get_connection_args("client"))
                for user in ("ana", "bob")
            }
            for asked in users.values():
                assert (await asked.farm_versions())["halide"] == "21.0.0"
            async with farm_worker(scheduler.address, farm / "hosts" / "lab1") as worker:
                assert len(scheduler.workers) == 1
                revoke_certificates(farm, ["ana", "lab1"])
                await until(lambda: not scheduler.workers)
                await asyncio.wait_for(worker.finished(), 240)
            await until(lambda: any("ended:" in line for line in told))
            with _tried_for_seconds():
                with pytest.raises(OSError):
                    await users["ana"].farm_versions()
                with pytest.raises(
                    RevokedError, match=r"refuses the certificate .*ana.*: it was revoked\. Ask for a new one"
                ):
                    await asyncio.to_thread(probe_scheduler, at("ana"))
            await asyncio.to_thread(probe_scheduler, at("bob"))
            assert (await users["bob"].farm_versions())["halide"] == "21.0.0"
            # What is no list leaves the one before in force; so does none.
            (farm / "revoked.pem").write_text("nonsense")
            await until(lambda: any("stays as it was" in line for line in told))
            (farm / "revoked.pem").unlink()
            with _tried_for_seconds(), pytest.raises(RevokedError):
                await asyncio.to_thread(probe_scheduler, at("ana"))
            for asked in users.values():
                await asked.close_rpc()

    with dask_config.set({**QUIET_CONFIG, "temporary-directory": str(tmp_path)}):
        asyncio.run(play())
    ended = next(line for line in told if "ended:" in line)
    assert "of ana" in ended and "of lab1" in ended and "bob" not in ended
