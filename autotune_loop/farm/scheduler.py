"""A Dask scheduler that takes only workers of its own versions, and serves a farm until it is told to stop."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from dask import config as dask_config
from distributed.comm import Comm, connect
from tornado.ioloop import PeriodicCallback

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.certificates.authority import name_of
from halide_autotune.autotune_loop.farm.certificates.certificate_files import check_host_certificate, is_of_host
from halide_autotune.autotune_loop.farm.certificates.tls import FarmSecurity
from halide_autotune.autotune_loop.farm.device import ANNOUNCEMENT, Announcement, read_announcement
from halide_autotune.autotune_loop.farm.ledger import FarmLedger
from halide_autotune.autotune_loop.farm.quiet_dask import QUIET_CONFIG, PortlessScheduler
from halide_autotune.autotune_loop.farm.state import PutOutWorker
from halide_autotune.autotune_loop.farm.versions import FarmVersions, check_versions, own_versions
from halide_autotune.targets.errors import FarmError
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.texts import printable

# What a worker says of itself when it registers has its versions under this name.
VERSIONS_KEY = "sdk_versions"
# What workers tell of themselves costs the scheduler as much as their measurements do, so it is shared out.
_HEARTBEATS_PER_S = 20
_LONGEST_HEARTBEAT_S = 10.0
# A worker that is not heard of for so long is given up; one whose process died is noticed at once.
_SILENCE_LIMIT = "60s"
# So often the list of revoked certificates is looked at.
_LOOK_S = 2.0
# So often all workers are asked for an answer at most, so many of them in a second; and how long that may take.
_ASK_S = 3.0
_ASKED_PER_S = 20
_ANSWER_LIMIT_S = 5.0
_TRIES = 2
# Several packets: a network that loses the large ones lets a few letters through.
_ASKED_BYTES = 4096
# What so many and most of them have at once is this machine's or the network's trouble.
_MANY_AT_ONCE = 3
# A worker that was put out does not come back before: it would take work that is then lost again.
_STAYS_OUT_S = 60.0
_LONGEST_REASON = 160
Handler = Callable[..., Awaitable[object]]
_SHOWN_CHARACTERS = 120


class FarmScheduler(PortlessScheduler):
    """Opens one port, for the farm alone, and keeps the ledger of runs.

    Args:
        versions: its own; a worker with others is refused.
        tell: a line for the log.
        handlers: of further questions, by their names.
        options: as `distributed.Scheduler` takes them.
    """

    def __init__(
        self,
        *,
        versions: FarmVersions,
        tell: Callable[[str], None],
        handlers: Mapping[str, Handler] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        self._ledger = FarmLedger()
        super().__init__(plugins=[self._ledger], **options)
        self._farm_versions = versions
        self._tell = tell
        self.handlers["farm_admission"] = self.farm_admission
        self.handlers["farm_versions"] = self.farm_versions
        self.handlers["farm_why_out"] = self.farm_why_out
        self.handlers.update(handlers)
        self._next_look_s = 0.0
        # Who may come back, and from when on; monotonic.
        self._back_s: dict[str, float] = {}
        self.periodic_callbacks["sdk-answers"] = PeriodicCallback(self._look_at_workers, 1000 * _ASK_S)
        if isinstance(self.security, FarmSecurity):
            # Dask starts and stops it with the scheduler.
            self.periodic_callbacks["sdk-revoked"] = PeriodicCallback(self._put_out_revoked, 1000 * _LOOK_S)

    async def farm_versions(self) -> dict[str, object]:
        """For a client, which compares them with its own."""
        return asdict(self._farm_versions)

    def handle_comm(self, comm: Comm) -> Any:
        """Called by Dask for a new connection, before anything is done for it."""
        # The list may have come while TLS shook hands.
        if self._is_revoked(comm):
            comm.abort()
        return super().handle_comm(comm)

    def _is_revoked(self, comm: Comm) -> bool:
        certificate = _shown_by(comm)
        return certificate is not None and self.security.is_revoked(certificate)

    def _put_out_revoked(self) -> None:
        """Where the list has changed, end the connections of those who are on it; new ones are refused by TLS."""
        try:
            if not self.security.refresh():
                return
        except (FarmError, OSError) as error:
            self._tell(f"The list of revoked certificates stays as it was: {error}")
            return
        # Dask keeps the connections that others have made here under this name.
        out = [comm for comm in list(self._comms) if self._is_revoked(comm)]
        names = Counter(name_of(certificate) for comm in out if (certificate := _shown_by(comm)) is not None)
        for comm in out:
            comm.abort()
        ended = ", ".join(f"{count} of {_shown(name)}" for name, count in sorted(names.items())) or "none"
        self._tell(f"The list of revoked certificates has changed. Connections that were ended: {ended}.")

    async def farm_admission(self, comm: Comm, name: str, workers: list[str], versions: object) -> dict[str, str]:
        """Say whether a worker's Dask workers may register.

        Returns:
            'refused' or 'not_yet' with a message; nothing if they may.
        """
        if message := self._refusal(comm, name, versions):
            self._tell(f"Refused: {message}")
            return {"refused": message}
        taken = [worker for worker in workers if worker in self.aliases]
        if taken:
            return {"not_yet": f"The farm already has {', '.join(map(_shown, taken))}, from another process."}
        if time.monotonic() < self._back_s.get(name, 0.0):
            out = f"{_shown(name)} was put out of the farm: {self._ledger.why_out(name)}."
            return {"not_yet": f"{out} It may come back after {_STAYS_OUT_S:.0f} s."}
        self._back_s.pop(name, None)
        return {}

    async def farm_why_out(self, name: str) -> str:
        """For a worker that could not join: why it is not in the farm; nothing where that is not known."""
        return self._ledger.why_out(name)

    def _refusal(self, comm: Comm, name: str, versions: object) -> str:
        if not _is_of_host(comm):
            # Nobody could connect to it, and so fetch what it has built.
            return (
                f"Worker {_shown(name)} has a user's certificate, and a worker needs a host's."
                " Make one with `sdk farm certificates --host NAME`."
            )
        try:
            its = FarmVersions.from_fields(versions)
            check_versions(self._farm_versions, its, "the scheduler", f"worker {_shown(name)}")
        except FarmError as error:
            return str(error)
        return ""

    async def _out_of_reach(self, address: str) -> str:
        """Why who wants to join could not be asked for its results; nothing for one that can be reached."""
        try:
            # It does not answer before it has joined, but Dask greets whoever connects.
            greeting = connect(address, timeout=_ANSWER_LIMIT_S, **self.connection_args)
            greeted = await asyncio.wait_for(greeting, _TRIES * _ANSWER_LIMIT_S)
        except (OSError, ValueError) as error:
            return f"the scheduler cannot connect to it at {address} ({_brief(error)})"
        greeted.abort()
        return ""

    async def _look_at_workers(self) -> None:
        """Put out workers that do not answer: nobody could have their results."""
        if time.monotonic() < self._next_look_s:
            return
        addresses = list(self.workers)
        processes = {self._ledger.announced(at).worker_id for at in addresses}
        answers = await asyncio.gather(*map(self._trouble_with, addresses))
        troubles = {at: trouble for at, trouble in zip(addresses, answers, strict=True) if trouble}
        silent = {self._ledger.announced(at).worker_id: at for at in troubles if at in self.workers}
        if len(silent) >= _MANY_AT_ONCE and 2 * len(silent) > len(processes):
            self._tell(
                f"{len(silent)} of {len(processes)} workers do not answer, so it is not they: nobody is put out."
            )
            silent = {}
        for address in silent.values():
            if address in self.workers:
                await self._put_out(self._ledger.announced(address), address, troubles[address])
        self._next_look_s = time.monotonic() + len(addresses) / _ASKED_PER_S

    async def _trouble_with(self, address: str) -> str:
        """Why a worker's results could not be fetched; nothing for one that answers."""
        trouble = ""
        # Asked twice: a time limit runs out, too, while this machine sleeps.
        for _ in range(_TRIES):
            sent = secrets.token_bytes(_ASKED_BYTES)
            try:
                answer = await asyncio.wait_for(self.rpc(address).echo(data=sent), _ANSWER_LIMIT_S)
            except TimeoutError:
                trouble = f"it does not answer at {address}"
            except Exception as error:  # whatever Dask makes of what comes
                trouble = f"it cannot be asked at {address} ({_brief(error)})"
            else:
                if answer == sent:
                    return ""
                trouble = f"it answers at {address} with something else than it was asked for"
        return trouble

    async def _put_out(self, told: Announcement, address: str, reason: str) -> None:
        """Remove all Dask workers of a worker's process; Dask tells the runs which of their tasks were lost."""
        self._note_out(told.worker, address, reason)
        self._back_s[told.worker] = time.monotonic() + _STAYS_OUT_S
        for other in [at for at in self.workers if self._ledger.announced(at).worker_id == told.worker_id]:
            await self.remove_worker(other, stimulus_id=f"sdk-put-out-{time.time()}")

    def _note_out(self, name: str, address: str, reason: str) -> None:
        self._ledger.put_out(PutOutWorker(name, address, reason, time.time()))
        self._tell(f"Put out: {_shown(name)}, because {reason}.")

    def heartbeat_worker(self, **fields: Any) -> dict[str, Any]:
        """Note that a worker is alive; the answer says when its next heartbeat is due."""
        answer: dict[str, Any] = super().heartbeat_worker(**fields)
        due_s = min(len(self.workers) / _HEARTBEATS_PER_S, _LONGEST_HEARTBEAT_S)
        answer["heartbeat-interval"] = max(answer.get("heartbeat-interval", 0.0), due_s)
        return answer

    async def add_worker(self, comm: Comm, *, name: str, extra: dict[str, Any], **fields: Any) -> None:
        """Register a worker; returns when it has left."""
        if message := self._refusal(comm, str(name), extra.get(VERSIONS_KEY)) or _cannot_be(extra):
            self._tell(f"Refused: {message}")
            await comm.write({"status": "error", "message": message, "time": time.time()})
            return
        address = str(fields["address"])
        if reason := await self._out_of_reach(address):
            told = extra.get(ANNOUNCEMENT)
            self._note_out(str(name) if told is None else read_announcement(told).worker, address, reason)
            await comm.write({"status": "error", "message": reason, "time": time.time()})
            return
        self._tell(f"Joined: {_shown(str(name))}, from {comm.peer_address}.")
        try:
            await super().add_worker(comm, name=name, extra=extra, **fields)
        finally:
            self._tell(f"Left: {_shown(str(name))}.")


def _brief(error: Exception) -> str:
    """An error's first words, on one line."""
    return printable(str(error) or type(error).__name__)[:_LONGEST_REASON].rstrip(".")


def _cannot_be(extra: dict[str, Any]) -> str:
    """What is wrong with what a worker says of its device; empty if nothing is, or it says nothing."""
    try:
        if ANNOUNCEMENT in extra:
            read_announcement(extra[ANNOUNCEMENT])
    except FarmError as error:
        return str(error)
    return ""


def _is_of_host(comm: Comm) -> bool:
    """Whether who is at the other end shows a host's certificate; anybody may where nothing is encrypted."""
    certificate = _shown_by(comm)
    return certificate is None or is_of_host(certificate)


def _shown_by(comm: Comm) -> x509.Certificate | None:
    """What the other end has shown; None where nothing is encrypted, or the connection is closed."""
    socket = getattr(getattr(comm, "stream", None), "socket", None)
    if not isinstance(socket, ssl.SSLSocket):
        return None
    shown = socket.getpeercert(binary_form=True)
    return None if shown is None else x509.load_der_x509_certificate(shown)


def _shown(worker_name: str) -> str:
    """A worker's name for people: 'device pi5', 'build slots of lab1'."""
    kind, _, name = worker_name.partition(":")
    text = {"device": f"device {name}", "build": f"build slots of {name}"}.get(kind, worker_name)
    return printable(text[:_SHOWN_CHARACTERS])


def serve_scheduler(
    address: FarmAddress, tell: Callable[[str], None], stop: StopSignal, handlers: Mapping[str, Handler]
) -> None:
    """Listen at the address; returns when `stop` is set.

    Args:
        tell: a line for the log.
        handlers: of further questions, by their names.

    Raises:
        FarmError: the address cannot be listened at, or a certificate is missing or wrong.
        ToolchainError: Halide is not installed, so that its version cannot be compared.
    """
    if address.certificates is not None:
        check_host_certificate(address.certificates, "scheduler")
    asyncio.run(_serve(address, tell, stop, handlers))


async def _serve(
    address: FarmAddress, tell: Callable[[str], None], stop: StopSignal, handlers: Mapping[str, Handler]
) -> None:
    parts = urlsplit(address.address)
    with (
        scratch_folder("farm") as folder,
        dask_config.set(
            {**QUIET_CONFIG, "temporary-directory": str(folder), "distributed.scheduler.worker-ttl": _SILENCE_LIMIT}
        ),
    ):
        scheduler = FarmScheduler(
            versions=own_versions(builds=True),
            tell=tell,
            handlers=handlers,
            protocol=f"{parts.scheme}://",
            host=parts.hostname or None,
            port=parts.port or 0,
            dashboard=False,
            security=address.security(),
        )
        try:
            await scheduler
        except (OSError, RuntimeError) as error:
            # Dask wraps it.
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            reason = getattr(cause, "strerror", None) or str(cause)
            raise FarmError(
                f"The scheduler cannot listen at {address.address}: {reason.lower()}.",
                next_step="Stop the program that uses the port, or choose another port, for example --listen tls://:8787.",
            ) from error
        tell(f"The scheduler is ready at {scheduler.address}.")
        await stopped(stop)
        await scheduler.close(reason="stopped")


async def stopped(stop: StopSignal) -> None:
    """Wait for a stop signal without a thread."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    loop.add_reader(stop.fileno(), event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(stop.fileno())
