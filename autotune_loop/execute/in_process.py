"""A farm of one machine, inside this process: no ports opened."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from functools import partial

from dask import config as dask_config
from distributed import Client, SpecCluster

from autotune_loop.execute.worker import FarmMember, MemberPlace
from autotune_loop.farm.device import devices_of_this_run
from autotune_loop.farm.quiet_dask import QUIET_CONFIG, PortlessScheduler, PortlessWorker, quiet_logs
from autotune_loop.specification.run_context import RunContext
from devices.device import Device
from devices.remote.open import open_remote
from devices.remote.transport import AgentTransport
from targets.process.content_cache import ContentCache


@contextlib.contextmanager
def in_process_farm(context: RunContext, build_slots: int) -> Iterator[tuple[Client, FarmMember]]:
    """A Dask client, and the one member: it has the run's devices and this machine's cores."""
    quiet_logs()
    member = FarmMember(
        "here", _place(context), devices_of_this_run(context.devices), build_slots, partial(_open_remote, context)
    )
    # Dask's own scratch files go where they are removed with the run's.
    settings = dask_config.set({**QUIET_CONFIG, "temporary-directory": str(context.work_folder)})
    with settings, warnings.catch_warnings():
        # It looks for this machine's address, which nobody is told here, and warns where there is none.
        warnings.simplefilter("ignore", RuntimeWarning)
        cluster = SpecCluster(
            workers={
                name: {"cls": PortlessWorker, "options": {**options, "protocol": "inproc://", "dashboard": False}}
                for name, options in member.worker_options().items()
            },
            scheduler={"cls": PortlessScheduler, "options": {"protocol": "inproc://", "dashboard": False}},
            silence_logs=logging.CRITICAL,
        )
        client = Client(cluster, set_as_default=False)
    try:
        yield client, member
    finally:
        try:
            member.close()
        finally:
            client.close()
            cluster.close()


def _place(context: RunContext) -> MemberPlace:
    return MemberPlace(
        cache_folder=context.cache_folder,
        work_folder=context.work_folder,
        lock_folder=context.lock_folder,
        environment=context.environment,
        cores=context.cores,
        connections=context.connections,
        ndk_root=context.ndk_root,
    )


def _open_remote(context: RunContext, device: Device) -> AgentTransport:
    assert context.connections is not None, "remote devices come with connections"
    return open_remote(device, context.connections, ContentCache(context.cache_folder))
