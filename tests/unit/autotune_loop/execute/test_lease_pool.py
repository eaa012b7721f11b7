"""The leases that a worker gives back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from halide_autotune.autotune_loop.execute.lease_pool import LeasePool
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.remote.transport import AgentTransport

LIMIT_S = 60.0


class _Board:
    """A transport whose end takes as long as a test says."""

    def __init__(self) -> None:
        self.closing, self.may_close = threading.Event(), threading.Event()

    def sharing(self) -> _Board:
        return self

    def close(self) -> None:
        self.closing.set()
        assert self.may_close.wait(LIMIT_S)


def _device(name: str) -> Device:
    return Device(name, "ssh", "arm64", Clock.WALL, 1, uses_host_cores=False)


def test_a_dead_board_keeps_no_other_from_being_given_back_or_used() -> None:
    opened: dict[str, list[_Board]] = {}

    def open_board(device: Device) -> AgentTransport:
        opened.setdefault(device.name, []).append(_Board())
        return cast(AgentTransport, opened[device.name][-1])

    pool = LeasePool(open_board)
    for name in ("dead", "live", "busy"):
        pool.share(_device(name), "busy" if name == "busy" else "over")
    pool.leave("over")
    (dead,), (live,) = opened["dead"], opened["live"]
    with ThreadPoolExecutor(2) as threads:
        closing = threads.submit(pool.close_unused)
        assert dead.closing.wait(LIMIT_S) and live.closing.wait(LIMIT_S), "at the same time"
        live.may_close.set()
        pool.share(_device("live"), "next")
        pool.share(_device("busy"), "next")
        assert len(opened["live"]) == 2 and len(opened["busy"]) == 1
        again = threads.submit(pool.share, _device("dead"), "next")
        assert not again.done(), "it would meet this worker's own lease"
        dead.may_close.set()
        again.result(LIMIT_S)
        closing.result(LIMIT_S)
    assert len(opened["dead"]) == 2
    assert pool.users("dead") == ["next"]
