"""Fair queueing: shares by weight, nobody starves, nobody saves time up."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.farm import fair_share
from halide_autotune.autotune_loop.farm.fair_share import FairShare, RunPriority
from halide_autotune.autotune_loop.farm.use import FARM_AHEAD_S
from halide_autotune.autotune_loop.measure.device_state import DeviceQueue

_WINDOW = 2


class Queue:
    """One device that serves the waiting task with the least start tag, as a worker does."""

    def __init__(self, lengths_s: list[float], weights: list[float]) -> None:
        self.shares = [FairShare(weight) for weight in weights]
        self.lengths_s = lengths_s
        self.served_s: defaultdict[int, float] = defaultdict(float)
        self.longest_wait_s: defaultdict[int, float] = defaultdict(float)
        self._last_s: defaultdict[int, float] = defaultdict(float)
        self._waiting: list[tuple[float, int, int, float]] = []
        self._numbers = 0
        self.now_s = 0.0

    def submit(self, run: int) -> None:
        start_s, charged_s = self.shares[run].submitted()
        self._numbers += 1
        heapq.heappush(self._waiting, (start_s, self._numbers, run, charged_s))

    def serve(self) -> None:
        """The next task, whose run submits another one."""
        _, _, run, charged_s = heapq.heappop(self._waiting)
        self.longest_wait_s[run] = max(self.longest_wait_s[run], self.now_s - self._last_s[run])
        self.now_s += self.lengths_s[run]
        self.served_s[run] += self.lengths_s[run]
        self._last_s[run] = self.now_s
        self.shares[run].done(charged_s, self.lengths_s[run])
        for share in self.shares:
            busy = [other.virtual_s for other in self.shares if other is not share and other.under_way]
            share.others_are_at(min(busy, default=share.virtual_s))
        self.submit(run)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.05, 5.0), st.sampled_from([priority.weight for priority in RunPriority])),
        min_size=2,
        max_size=5,
    )
)
def test_device_seconds_follow_the_weights(runs: list[tuple[float, float]]) -> None:
    lengths_s, weights = [length for length, _ in runs], [weight for _, weight in runs]
    queue = Queue(lengths_s, weights)
    for run in range(len(runs)):
        for _ in range(_WINDOW):
            queue.submit(run)
    while queue.now_s < 400 * max(lengths_s):
        queue.serve()
    for run, weight in enumerate(weights):
        fair = weight / sum(weights)
        # A few tasks more or less are inevitable: they are not cut short.
        slack = 8 * max(lengths_s) / queue.now_s
        assert abs(queue.served_s[run] / queue.now_s - fair) < 0.05 * fair + slack
        # Each run's first tasks are charged by an estimate, which short tasks are far from.
        longest_s = 10 * sum(lengths_s) + _WINDOW * fair_share._FIRST_ESTIMATE_S
        assert queue.longest_wait_s[run] < longest_s * max(weights) / min(weights)


def test_a_newcomer_begins_where_the_others_are() -> None:
    old, new = FairShare(1.0), FairShare(1.0)
    for _ in range(100):
        _, charged_s = old.submitted()
        old.done(charged_s, 1.0)
    old.submitted()
    new.others_are_at(old.virtual_s)
    start_s, _ = new.submitted()
    assert start_s == old.virtual_s


def test_a_run_that_waits_for_builds_saves_nothing_up() -> None:
    share = FairShare(2.0)
    share.others_are_at(50.0)
    assert share.submitted()[0] == 50.0
    # While it has work under way it is not moved on: what it has waited for is its own.
    share.others_are_at(80.0)
    assert share.virtual_s < 60.0


def test_a_lost_measurement_costs_nothing() -> None:
    share = FairShare(1.0)
    _, charged_s = share.submitted()
    share.done(charged_s, None)
    assert share.virtual_s == 0.0
    assert share.under_way == 0


_BEAT_S = 0.5


class Network:
    """Devices whose tasks and answers are under way for a while, and runs that keep as many ahead as a dispatcher."""

    def __init__(self, lengths_s: list[float], weights: list[float], devices: int, latency_s: float) -> None:
        self.lengths_s, self.latency_s = lengths_s, latency_s
        self.shares = [FairShare(weight) for weight in weights]
        self.queues = [[DeviceQueue(1, FARM_AHEAD_S) for _ in range(devices)] for _ in lengths_s]
        self.served_s = [0.0] * len(lengths_s)
        self.now_s = 0.0
        self._queues: list[list[tuple[float, int, int, float]]] = [[] for _ in range(devices)]
        self._is_busy = [False] * devices
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = 0
        self._beat()

    def join(self, run: int) -> None:
        self._tell()
        for device in range(len(self._queues)):
            self._fill(run, device)

    def run_until(self, end_s: float) -> None:
        while self._events[0][0] < end_s:
            self.now_s, _, happens = heapq.heappop(self._events)
            happens()
        self.now_s = end_s

    def _after(self, delay_s: float, happens: Callable[[], None]) -> None:
        self._numbers += 1
        heapq.heappush(self._events, (self.now_s + delay_s, self._numbers, happens))

    def _fill(self, run: int, device: int) -> None:
        while self.queues[run][device].has_room:
            self.queues[run][device].in_flight += 1
            start_s, charged_s = self.shares[run].submitted()
            self._numbers += 1
            task = (start_s, self._numbers, run, charged_s)
            self._after(self.latency_s, partial(self._arrives, task, device))

    def _arrives(self, task: tuple[float, int, int, float], device: int) -> None:
        heapq.heappush(self._queues[device], task)
        self._begin(device)

    def _begin(self, device: int) -> None:
        if self._is_busy[device] or not self._queues[device]:
            return
        _, _, run, charged_s = heapq.heappop(self._queues[device])
        self._is_busy[device] = True
        self._after(self.lengths_s[run], lambda: self._ends(run, device, charged_s))

    def _ends(self, run: int, device: int, charged_s: float) -> None:
        self._is_busy[device] = False
        self.served_s[run] += self.lengths_s[run]
        self._after(self.latency_s, lambda: self._answered(run, device, charged_s))
        self._begin(device)

    def _answered(self, run: int, device: int, charged_s: float) -> None:
        self.shares[run].done(charged_s, self.lengths_s[run])
        self.queues[run][device].in_flight -= 1
        self.queues[run][device].held(self.lengths_s[run])
        self._fill(run, device)

    def _beat(self) -> None:
        self._tell()
        self._after(_BEAT_S, self._beat)

    def _tell(self) -> None:
        for share in self.shares:
            busy = [other.virtual_s for other in self.shares if other is not share and other.under_way]
            share.others_are_at(min(busy, default=share.virtual_s))


@pytest.mark.parametrize("latency_s", [0.01, 0.2, 0.5])
@pytest.mark.parametrize(
    ("lengths_s", "weights"),
    [((0.15, 0.7), (2.0, 2.0)), ((0.3, 0.3), (4.0, 2.0)), ((2.0, 0.2), (2.0, 2.0)), ((0.2, 0.5, 0.3), (2.0, 2.0, 1.0))],
)
@pytest.mark.parametrize("devices", [1, 4])
def test_a_slow_network_and_short_schedules_cost_nobody_a_share(
    lengths_s: tuple[float, ...], weights: tuple[float, ...], latency_s: float, devices: int
) -> None:
    farm = Network(list(lengths_s), list(weights), devices, latency_s)
    # The last one comes when the others have had the farm for a while: nobody is made to wait for that.
    for run in range(len(lengths_s) - 1):
        farm.join(run)
    farm.run_until(20.0)
    before_s = list(farm.served_s)
    farm.join(len(lengths_s) - 1)
    farm.run_until(140.0)
    served_s = [after - before for after, before in zip(farm.served_s, before_s, strict=True)]
    assert sum(served_s) > 0.95 * 120.0 * devices
    for run, weight in enumerate(weights):
        assert served_s[run] / sum(served_s) == pytest.approx(weight / sum(weights), rel=0.1)
