"""What goes on in a farm: workers, devices, runs and their queue. A snapshot, for people and for choosing devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
from distributed import Client

from halide_autotune.autotune_loop.farm.device import DeviceReport, FarmDevice
from halide_autotune.autotune_loop.farm.told import Count, DurationS, read_told
from halide_autotune.devices.agent.protocol import Printable
from halide_autotune.targets.errors import FarmError
from halide_autotune.targets.values.checks import number

_ANSWER_S = 10.0


@dataclass(frozen=True)
class FarmDeviceState:
    """A device of the farm just now.

    Attributes:
        worker: the name of the worker that has it.
        waiting: runs whose tasks wait for it, the next one first; a run appears once for each task.
    """

    device: FarmDevice
    worker: Printable
    report: DeviceReport
    waiting: tuple[Printable, ...]


@dataclass(frozen=True)
class FarmWorkerState:
    """A worker of the farm.

    Attributes:
        address: where its scheduler reaches it.
        building: builds that it has been given.
    """

    name: Printable
    worker_id: Printable
    address: Printable
    build_slots: Count
    building: Count


@dataclass(frozen=True)
class FarmRun:
    """A run, as its client tells.

    Attributes:
        client: Dask's name of it.
        user, title: who, and what is tuned.
        virtual_s: device seconds that it has had, over its priority's weight.
        estimate_s: what one of its measurements takes.
        under_way: measurements that it has asked for and that are not done.
    """

    run_id: Printable
    client: Printable
    user: Printable
    title: Printable
    priority: Printable
    virtual_s: Annotated[float, number(-1e12, 1e12)]
    estimate_s: DurationS
    under_way: Count


@dataclass(frozen=True)
class FarmRunState:
    """A run that uses the farm.

    Attributes:
        position: tasks of others that come before its next one; 0 when one is served.
        start_s: seconds until its next one begins, as far as is known.
        building: builds that are waiting or under way.
        since_unix_s: when it joined.
        silent_s: how long it has not been heard of.
    """

    run: FarmRun
    position: Count
    start_s: DurationS
    building: Count
    since_unix_s: DurationS
    silent_s: DurationS


@dataclass(frozen=True)
class PutOutWorker:
    """A worker that was put out of the farm, because nobody could have its results.

    Attributes:
        address: where it was to be reached.
        reason: as the end of a sentence, without a full stop.
        unix_s: when.
    """

    name: Printable
    address: Printable
    reason: Printable
    unix_s: DurationS


@dataclass(frozen=True)
class FarmState:
    """Workers, devices and runs, each in the order of their names or of their joining.

    Attributes:
        put_out: workers that are not in the farm any more, and have not come back; the newest last.
    """

    workers: tuple[FarmWorkerState, ...]
    devices: tuple[FarmDeviceState, ...]
    runs: tuple[FarmRunState, ...]
    put_out: tuple[PutOutWorker, ...] = ()


def farm_state(client: Client) -> FarmState:
    """Ask a farm's scheduler.

    Raises:
        FarmError: it does not answer, or not like a farm's scheduler.
    """
    try:
        return read_state(client.sync(client.scheduler.sdk_state, callback_timeout=_ANSWER_S))
    except (OSError, TimeoutError, AttributeError, ValueError, TypeError, FarmError) as error:
        raise FarmError(
            f"Cannot read the farm's state from {client.scheduler.address}: {str(error).rstrip('.') or 'no answer'}.",
            next_step="Check that it still runs, with this SDK's version.",
        ) from error


def read_state(told: object) -> FarmState:
    """Return what a scheduler says of its farm.

    Raises:
        FarmError: it is not that.
    """
    if not isinstance(told, bytes):
        raise FarmError("The scheduler does not answer with a farm's state.")
    try:
        return read_told(FarmState, msgspec.msgpack.decode(told))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FarmError(f"The scheduler's answer is damaged: {error}.") from error
