"""Keeping a lab host in a farm until it is told to stop: joining, and joining again when the scheduler was away."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from distributed import Worker
from distributed.core import rpc

from halide_autotune.autotune_loop.execute.worker import FarmWorker
from halide_autotune.autotune_loop.execute.worker_plugin import dask_worker_options
from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.certificates.certificate_files import RevokedError, check_host_certificate
from halide_autotune.autotune_loop.farm.probe_scheduler import probe_scheduler
from halide_autotune.autotune_loop.farm.quiet_dask import QUIET_CONFIG, PortlessWorker
from halide_autotune.autotune_loop.farm.scheduler import VERSIONS_KEY, stopped
from halide_autotune.autotune_loop.farm.versions import own_versions
from halide_autotune.targets.errors import FarmError
from halide_autotune.targets.process.stop_signal import StopSignal

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 10.0
# A predecessor whose host vanished is forgotten by the scheduler within a minute, which is how long it keeps one out.
_NOT_YET_LIMIT_S = 90.0
_JOIN_LIMIT_S = 30.0
_LEAVE_LIMIT_S = 5.0

Tell = Callable[[str], None]


class _NotYetError(FarmError):
    """The farm has put this worker out, or still has another one with one of these devices."""


class _RefusedError(FarmError):
    """The scheduler does not want this machine."""


# Trying again does not help.
_FINAL = (_RefusedError, RevokedError)


def serve_worker(farm_worker: FarmWorker, address: FarmAddress, tell: Tell, stop: StopSignal) -> None:
    """Serve runs until `stop` is set, then give the devices back.

    Args:
        tell: a line for the log.

    Raises:
        FarmError: the scheduler cannot be reached at the start, or refuses this machine.
        ToolchainError: Halide is not installed, so that its version cannot be compared.
    """
    from dask import config as dask_config

    if address.certificates is not None:
        check_host_certificate(address.certificates, "worker")
    with dask_config.set({**QUIET_CONFIG, "temporary-directory": str(farm_worker.workspace.work_folder)}):
        try:
            asyncio.run(_serve(farm_worker, address, tell, stop))
        finally:
            farm_worker.close()


async def _serve(farm_worker: FarmWorker, address: FarmAddress, tell: Tell, stop: StopSignal) -> None:
    stopping = asyncio.create_task(stopped(stop))
    was_in, told, pause_s, waited_s = False, "", _FIRST_PAUSE_S, 0.0
    while not stopping.done():
        try:
            dask_workers = await _join(farm_worker, address)
        except FarmError as error:
            not_yet = isinstance(error, _NotYetError)
            may_pass = waited_s <= _NOT_YET_LIMIT_S if not_yet else was_in and not isinstance(error, _FINAL)
            if not may_pass:
                raise
            if str(error) != told:
                told = str(error)
                tell(f"{told} Trying again.")
            # Nobody else may use them for as long as the scheduler is away.
            await asyncio.to_thread(farm_worker.close_idle)
            await asyncio.wait([stopping], timeout=pause_s)
            waited_s += pause_s
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            continue
        was_in, told, pause_s, waited_s = True, "", _FIRST_PAUSE_S, 0.0
        tell(f"{_described(farm_worker)} is ready, in the farm of {address.address}.")
        left = [asyncio.create_task(worker.finished()) for worker in dask_workers]
        await asyncio.wait([stopping, *left], return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            tell("The connection to the scheduler was lost. Trying again.")
        await _leave(farm_worker, dask_workers)
        for task in left:
            task.cancel()
    tell(f"{farm_worker.name} has left the farm.")


async def _join(farm_worker: FarmWorker, address: FarmAddress) -> list[Worker]:
    # Nobody but the scheduler that this worker joins may connect to it: what users want of it comes through that.
    security = address.security(only=await asyncio.to_thread(probe_scheduler, address))
    options = dask_worker_options(farm_worker)
    versions = asdict(own_versions(builds=farm_worker.build_slots > 0))
    connection = security.get_connection_args("worker")
    await _ask_admission(farm_worker.name, list(options), versions, address, connection)
    workers: list[Worker] = []
    try:
        for each in options.values():
            worker = PortlessWorker(address.address, security=security, dashboard=False, **each)
            worker.startup_information[VERSIONS_KEY] = lambda _: versions
            workers.append(worker)
            await asyncio.wait_for(worker, _JOIN_LIMIT_S)
    except (OSError, ValueError, RuntimeError, TimeoutError) as error:  # Dask wraps what a worker's start raises
        await _leave(farm_worker, workers)
        raise await _not_joined(farm_worker.name, error, address, connection) from error
    return workers


async def _ask_admission(
    name: str, workers: list[str], versions: dict[str, object], address: FarmAddress, connection: dict[str, Any]
) -> None:
    scheduler = rpc(address.address, connection_args=connection)
    try:
        answer = await asyncio.wait_for(
            scheduler.farm_admission(name=name, workers=workers, versions=versions), _JOIN_LIMIT_S
        )
    except (OSError, TimeoutError) as error:
        raise FarmError(f"The scheduler at {address.address} does not answer: {error}.") from error
    finally:
        await scheduler.close_rpc()
    if not isinstance(answer, dict):
        raise _RefusedError(
            f"The Dask scheduler at {address.address} was not started with `sdk farm scheduler`.",
            next_step="Start it with `sdk farm scheduler`.",
        )
    if "refused" in answer:
        raise _RefusedError(str(answer["refused"]))
    if "not_yet" in answer:
        raise _NotYetError(str(answer["not_yet"]))


async def _not_joined(name: str, error: Exception, address: FarmAddress, connection: dict[str, Any]) -> FarmError:
    """What to say of a join that has failed: the scheduler knows whether it could not reach this machine."""
    why, step = f"{error.__cause__ or error}", ""
    scheduler = rpc(address.address, connection_args=connection)
    with contextlib.suppress(OSError, TimeoutError):
        if told := await asyncio.wait_for(scheduler.farm_why_out(name=name), _JOIN_LIMIT_S):
            why, step = told, "Let the scheduler's machine connect to any port of this one: look at the firewall."
    await scheduler.close_rpc()
    return FarmError(f"{name} could not join the farm of {address.address}: {why}.", next_step=step)


async def _leave(farm_worker: FarmWorker, workers: list[Worker]) -> None:
    """Without waiting for tasks: what they were doing is done again by others."""
    for worker in workers:
        with contextlib.suppress(OSError, TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(worker.close(executor_wait=False, timeout=_LEAVE_LIMIT_S), 2 * _LEAVE_LIMIT_S)
    for run_id in farm_worker.runs:
        await asyncio.to_thread(farm_worker.end_run, run_id)


def _described(farm_worker: FarmWorker) -> str:
    names = list(farm_worker.devices)
    parts = [f"{'device' if len(names) == 1 else 'devices'} {', '.join(names)}"] if names else []
    if farm_worker.build_slots:
        parts.append(f"{farm_worker.build_slots} build slot{'' if farm_worker.build_slots == 1 else 's'}")
    return f"{farm_worker.name} ({'; '.join(parts)})"
