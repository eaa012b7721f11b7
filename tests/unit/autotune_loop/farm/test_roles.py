"""Who can do what in a farm: each row of the table in docs/farm.md, with real certificates and real TLS."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dask import config as dask_config
from distributed.comm import connect
from distributed.core import rpc

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.certificates.authority import make_certificates
from halide_autotune.autotune_loop.farm.certificates.certificate_files import check_host_certificate
from halide_autotune.autotune_loop.farm.certificates.revocation import revoke_certificates
from halide_autotune.autotune_loop.farm.probe_scheduler import probe_scheduler
from halide_autotune.autotune_loop.farm.quiet_dask import QUIET_CONFIG
from halide_autotune.targets.errors import FarmError
from tests.farm_certificates import farm_scheduler, farm_worker

# The folders of certificates, by whose they are; the scheduler has its own, and the authority's key lies there, too.
FOLDERS = {
    "the scheduler": "farm",
    "a host": "farm/hosts/lab1",
    "a user": "farm/users/ana",
    "a revoked host": "farm/hosts/lost",
    "a revoked user": "farm/users/gone",
    "another farm's host": "other",
    "nobody": "nobody",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    below = tmp_path_factory.mktemp("roles")
    make_certificates(below / "farm", ["lab1", "lost"], ["ana", "gone"])
    make_certificates(below / "other", [], [])
    revoke_certificates(below / "farm", ["lost", "gone"])
    # Who has no certificate may still know whom to trust.
    (below / "nobody").mkdir()
    shutil.copy(below / "farm" / "ca.pem", below / "nobody")
    return {who: below / folder for who, folder in FOLDERS.items()}


async def _use(folders: dict[str, Path], who: str) -> None:
    async with farm_scheduler(folders["the scheduler"], []) as scheduler:
        address = FarmAddress(scheduler.address, folders[who])
        await asyncio.to_thread(probe_scheduler, address)
        asked = rpc(scheduler.address, connection_args=address.security().get_connection_args("client"))
        assert (await asked.farm_versions())["halide"] == "21.0.0"
        await asked.close_rpc()


async def _join(folders: dict[str, Path], who: str) -> None:
    """As a program of somebody's own, which does not look at its certificate before."""
    told: list[str] = []
    async with farm_scheduler(folders["the scheduler"], told) as scheduler:
        shown = await asyncio.to_thread(probe_scheduler, FarmAddress(scheduler.address, folders[who]))
        try:
            async with farm_worker(scheduler.address, folders[who], shown):
                assert len(scheduler.workers) == 1
        except (RuntimeError, ValueError) as error:
            raise FarmError(told[-1]) from error


async def _connect_to_the_scheduler(folders: dict[str, Path], who: str) -> None:
    async with farm_scheduler(folders["the scheduler"], []) as scheduler:
        await asyncio.to_thread(_speak_to, scheduler.address, folders[who])


async def _connect_to_a_worker(folders: dict[str, Path], who: str) -> None:
    async with farm_scheduler(folders["the scheduler"], []) as scheduler:
        shown = await asyncio.to_thread(probe_scheduler, FarmAddress(scheduler.address, folders["a host"]))
        async with farm_worker(scheduler.address, folders["a host"], shown) as worker:
            await asyncio.to_thread(_speak_to, worker.address, folders[who])


def _speak_to(address: str, folder: Path) -> None:
    """Without a certificate, and without Dask: the other side says whether it wants one when it is read from."""
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.check_hostname = False
    parts = urlsplit(address)
    try:
        with (
            socket.create_connection((parts.hostname, parts.port or 0), 60) as plain,
            context.wrap_socket(plain) as secure,
        ):
            secure.recv(1)
    except ssl.SSLError as error:
        raise FarmError(str(error.reason)) from error


async def _serve(folders: dict[str, Path], who: str) -> None:
    """As a program of somebody's own, too; who connects has the list of revoked certificates."""
    async with farm_scheduler(folders[who], []) as scheduler:
        await asyncio.to_thread(probe_scheduler, FarmAddress(scheduler.address, folders["the scheduler"]))


async def _reach_a_worker(folders: dict[str, Path], who: str) -> None:
    async with farm_scheduler(folders["the scheduler"], []) as scheduler:
        shown = await asyncio.to_thread(probe_scheduler, FarmAddress(scheduler.address, folders["a host"]))
        async with farm_worker(scheduler.address, folders["a host"], shown) as worker:
            security = FarmAddress(worker.address, folders[who]).security()
            # Who is refused is refused at once, but tries again until then.
            timeout_s = 120 if who == "the scheduler" else 5
            try:
                comm = await connect(worker.address, timeout=timeout_s, **security.get_connection_args("client"))
            except OSError as error:
                raise FarmError("The worker does not let it in.") from error
            await comm.close()


async def _start_a_scheduler(folders: dict[str, Path], who: str) -> None:
    check_host_certificate(folders[who], "scheduler")


async def _start_a_worker(folders: dict[str, Path], who: str) -> None:
    check_host_certificate(folders[who], "worker")


async def _add_and_revoke(folders: dict[str, Path], who: str) -> None:
    make_certificates(folders[who], [], ["new"])
    revoke_certificates(folders[who], ["new"])


_NOT_ALLOWED = "The worker does not let it in"
_NO_CERTIFICATE = "There is no"
_WANTS_ONE = "CERTIFICATE_REQUIRED"
_NO_KEY = "not the key of its authority"


@pytest.mark.parametrize(
    ("does", "who", "refusal"),
    [
        # Tune with the farm, see its status.
        (_use, "the scheduler", ""),
        (_use, "a host", ""),
        (_use, "a user", ""),
        (_use, "a revoked host", "it was revoked"),
        (_use, "a revoked user", "it was revoked"),
        (_use, "another farm's host", "another authority has made it"),
        (_use, "nobody", _NO_CERTIFICATE),
        (_connect_to_the_scheduler, "nobody", _WANTS_ONE),
        # sdk farm worker.
        (_start_a_worker, "the scheduler", ""),
        (_start_a_worker, "a host", ""),
        (_start_a_worker, "a user", "is a user's certificate, and a worker needs a host's"),
        (_start_a_worker, "nobody", _NO_CERTIFICATE),
        (_join, "the scheduler", ""),
        (_join, "a host", ""),
        (_join, "a user", "has a user's certificate, and a worker needs a host's"),
        (_join, "a revoked host", "it was revoked"),
        (_join, "a revoked user", "it was revoked"),
        (_join, "another farm's host", "another authority has made it"),
        # sdk farm scheduler.
        (_start_a_scheduler, "the scheduler", ""),
        (_start_a_scheduler, "a host", ""),
        (_start_a_scheduler, "a user", "is a user's certificate, and a scheduler needs a host's"),
        (_start_a_scheduler, "nobody", _NO_CERTIFICATE),
        (_serve, "the scheduler", ""),
        (_serve, "a host", ""),
        (_serve, "a user", "is not of this farm"),
        (_serve, "a revoked host", "was revoked"),
        (_serve, "another farm's host", "another authority has made it"),
        # Connect to a worker.
        (_reach_a_worker, "the scheduler", ""),
        (_reach_a_worker, "a host", _NOT_ALLOWED),
        (_reach_a_worker, "a user", _NOT_ALLOWED),
        (_reach_a_worker, "a revoked host", _NOT_ALLOWED),
        (_reach_a_worker, "a revoked user", _NOT_ALLOWED),
        (_reach_a_worker, "another farm's host", _NOT_ALLOWED),
        (_connect_to_a_worker, "nobody", _WANTS_ONE),
        # Add hosts and users, revoke; the authority's key lies with the scheduler's certificate here.
        (_add_and_revoke, "the scheduler", ""),
        (_add_and_revoke, "a host", _NO_KEY),
        (_add_and_revoke, "a user", _NO_KEY),
        (_add_and_revoke, "a revoked host", _NO_KEY),
        (_add_and_revoke, "a revoked user", _NO_KEY),
        (_add_and_revoke, "nobody", _NO_KEY),
    ],
)
def test_who_can_do_what(
    folders: dict[str, Path],
    tmp_path: Path,
    does: Callable[[dict[str, Path], str], Awaitable[None]],
    who: str,
    refusal: str,
) -> None:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    told = ""

    async def do() -> None:
        await does(folders, who)

    with dask_config.set({**QUIET_CONFIG, "temporary-directory": str(tmp_path)}):
        try:
            asyncio.run(do())
        except FarmError as error:
            told = str(error)
    assert (refusal in told) if refusal else not told
