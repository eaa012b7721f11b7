"""How many schedules of a batch are waited for, as the budget passes: on a fake clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.candidate import (
    Built,
    BuiltObject,
    Candidate,
    Origin,
    SearchedSchedule,
    SearchFailure,
    Yardstick,
)
from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import Notice, SampleFailed
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuildObject, Link, Search
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.run_scale import RunScale
from halide_autotune.autotune_loop.search.batch_builder import BatchBuilder
from halide_autotune.autotune_loop.search.plan import full_beam_point
from halide_autotune.autotune_loop.search.pool import BatchInProgress, PoolSearch
from halide_autotune.autotune_loop.search.schedule_proposals import ScheduleProposals
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.build.executable import Executable, KernelObject
from halide_autotune.targets.errors import GeneratorError, KernelLinkError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from tests.contract.writing_process import candidate
from tests.fake_time import FakeTime
from tests.scripted_builder import builder, no_task
from tests.scripted_executor import ScriptedExecutor


def done() -> Future[Any]:
    made: Future[Any] = Future()
    made.set_result(None)
    return made


def test_the_longer_it_takes_the_fewer_are_enough(store: RunStore, now: FakeTime) -> None:
    with builder(store, no_task) as (made, _):
        fewest = made._builds.fewest(20, (0.25, 0.5), 1, None)
        enough = {}
        for now_s in (24.0, 26.0, 49.0, 51.0, 101.0):
            now.now_s = now_s
            enough[now_s] = fewest()
    assert enough == {24.0: 20, 26.0: 4, 49.0: 4, 51.0: 1, 101.0: 1}


def test_once_the_budget_is_spent_the_default_alone_is_enough(store: RunStore, now: FakeTime) -> None:
    full: Future[Any] = Future()
    with builder(store, no_task) as (made, _):
        waiting, ready = (made._builds.fewest(20, (0.25, 0.5), 1, one) for one in (full, done()))
        now.now_s = 99.0
        assert (waiting(), ready()) == (1, 1)
        now.now_s = 101.0
        assert (waiting(), ready()) == (1, 0)


def test_tasks_that_wait_for_their_first_batch_share_the_time(store: RunStore, now: FakeTime) -> None:
    with builder(store, no_task) as (made, _):
        fewest = made._builds.fewest(20, (0.2, 0.4), 2, None)
        now.now_s = 11.0
        assert fewest() == 4


def searched(task: Task[Any], store: RunStore, now: FakeTime, each_s: float) -> SearchedSchedule:
    """A search that takes so long and finds something new."""
    assert isinstance(task, Search)
    now.now_s += each_s
    return SearchedSchedule(task.point, task.output_folder, Path("f"), task.output_folder.name, each_s, None)


def pool_search(made: BatchBuilder) -> PoolSearch:
    return made._pool_search


def test_a_pool_that_is_late_is_left_as_it_is(store: RunStore, now: FakeTime) -> None:
    with builder(store, lambda task: searched(task, store, now, 20.0)) as (made, _):
        fewest = made._builds.fewest(16, (0.25, 0.5), 1, None)
        pool = pool_search(made).search(BatchInProgress(0, 0), Path("w"), 16, set(), fewest)
    assert 1 <= len(pool) <= 4


def test_searches_that_all_fail_are_an_error_but_not_once_the_default_is_there(store: RunStore, now: FakeTime) -> None:
    message = "It did not end within 15 s."

    def fail(task: Task[Any]) -> SearchFailure:
        assert isinstance(task, Search)
        now.now_s += 30.0
        return SearchFailure(task.point, GeneratorFailure(GeneratorFailureReason.TIMED_OUT, message, "", 30.0))

    with builder(store, fail) as (made, _):
        with pytest.raises(GeneratorError, match=f"All 12 searches failed.*{message}"):
            pool_search(made).search(
                BatchInProgress(0, 0), Path("w"), 2, set(), made._builds.fewest(2, (0.25, 0.5), 1, None)
            )
        beside_others = made._builds.fewest(2, (0.25, 0.5), 1, None, least=0)
        assert pool_search(made).search(BatchInProgress(0, 0), Path("w"), 2, set(), beside_others) == []
        fewest = made._builds.fewest(2, (0.25, 0.5), 1, done())
        assert pool_search(made).search(BatchInProgress(0, 0), Path("w"), 2, set(), fewest) == []


def test_builds_that_are_late_are_left_under_way(store: RunStore, now: FakeTime) -> None:
    """The first build fails after the budget is spent; with the default there, nothing else is waited for."""

    def build(task: Task[Any]) -> GeneratorFailure:
        assert isinstance(task, BuildObject)
        now.now_s += 101.0
        return GeneratorFailure(GeneratorFailureReason.TIMED_OUT, "It did not end.", "", 101.0)

    chosen = [candidate(store.candidate_folder(0, 0, index), 0, index) for index in range(6)]
    for one in chosen:
        store.database.add_candidate(one)
    work = BatchInProgress(0, 0)
    with builder(store, build) as (made, _):
        built, left = made._builds.build_all(work, chosen, made._submit_build, 1, done())
    assert built == [] and left == chosen[work.failed :]
    assert work.failed < 6


def linked_but(refused: set[str]) -> Callable[[Task[Any]], Executable]:
    """A linker that refuses some kernels, and names one of them at a time."""

    def link(task: Task[Any]) -> Executable:
        assert isinstance(task, Link)
        names = [kernel.name for kernel in task.kernels]
        for name in names:
            if name in refused:
                raise KernelLinkError(f"The kernels call __multi3.\nfrom {name}", kernels=(name,))
        return Executable(Path(task.file_name), tuple(names), "ab")

    return link


def built_of(store: RunStore, count: int) -> list[Built]:
    chosen = [candidate(store.candidate_folder(0, 0, index), 0, index) for index in range(count)]
    for one in chosen:
        store.database.add_candidate(one)
    return [Built(one, KernelObject(one.symbol, Path(f"{one.symbol}.o"))) for one in chosen]


def test_what_cannot_be_linked_has_failed_and_the_others_are_timed(store: RunStore) -> None:
    built = built_of(store, 5)
    symbols = [one.candidate.symbol for one in built]
    with builder(store, linked_but({symbols[1], symbols[4]})) as (made, heard):
        batch = made._builds.batch_of(BatchInProgress(0, 0), built, None)
    linked = (symbols[0], symbols[2], symbols[3])
    assert batch.executable is not None and batch.executable.kernels == linked
    assert tuple(one.symbol for one in batch.candidates) == linked and batch.failed == 2
    failed = [(one.sample_index, one.stage, one.message) for one in heard if isinstance(one, SampleFailed)]
    assert failed == [(1, "link", "The kernels call __multi3."), (4, "link", "The kernels call __multi3.")]
    assert {*store.database.failure_reasons(0)} == {symbols[1], symbols[4]}, "moves and vectors are judged by it"


def test_of_what_cannot_be_linked_at_all_nothing_is_timed(store: RunStore) -> None:
    built = built_of(store, 2)
    with builder(store, linked_but({one.candidate.symbol for one in built})) as (made, _):
        batch = made._builds.batch_of(BatchInProgress(0, 0), built, None)
    assert (batch.candidates, batch.executable, batch.failed) == ((), None, 2)


def test_a_yardstick_that_cannot_be_linked_is_no_candidates_fault(store: RunStore) -> None:
    yardstick = Yardstick(KernelObject("yardstick", Path("y.o")), RunScale("pi", [6.0]))
    with builder(store, linked_but({"yardstick"})) as (made, heard), pytest.raises(KernelLinkError):
        made._builds.batch_of(BatchInProgress(0, 0), built_of(store, 2), yardstick)
    assert not heard


def test_a_build_that_takes_long_holds_up_no_other(store: RunStore, now: FakeTime) -> None:
    """The second one's ends when all others have, in the other build slot."""
    others = threading.Event()
    ran: list[str] = []
    chosen = [candidate(store.candidate_folder(0, 0, index), 0, index) for index in range(12)]

    def build(task: Task[Any]) -> BuiltObject:
        assert isinstance(task, BuildObject)
        if task.symbol == chosen[1].symbol:
            assert others.wait(60.0), "the others were held up"
        ran.append(task.symbol)
        if len(ran) == len(chosen) - 1:
            others.set()
        task.output_folder.mkdir(parents=True)
        path = task.output_folder / "f.o"
        path.write_bytes(b"code")
        return BuiltObject(task.symbol, path, None, 1.0)

    for one in chosen:
        store.database.add_candidate(one)
    with builder(store, build) as (made, _):
        cast(ScriptedExecutor, made.executor).build_slots = 2
        built, left = made._builds.build_all(BatchInProgress(0, 0), chosen, made._submit_build, 1)
    assert ran[-1] == chosen[1].symbol
    assert [one.candidate for one in built] == chosen and left == []


@pytest.mark.parametrize(("technique", "count"), [("sampling", 5), ("evolution", 4)])
def test_what_is_not_built_when_a_few_are_enough_is_left_to_the_next_batch(
    store: RunStore, now: FakeTime, monkeypatch: pytest.MonkeyPatch, technique: str, count: int
) -> None:
    """Each takes 7 s of 100 s; what has children has 15 s, others have 40. What is under way is not begun again."""
    ran: list[str] = []
    is_queued, is_over = threading.Event(), threading.Event()
    monkeypatch.setattr(ScheduleProposals, "techniques", lambda proposals, task_index: (technique,))

    def build(task: Task[Any]) -> BuiltObject:
        assert isinstance(task, BuildObject)
        ran.append(task.symbol)
        if len(ran) > count:  # until another one waits for it, or enough are built
            while not (is_queued.is_set() or is_over.is_set()):
                time.sleep(0.001)
        now.now_s += 7.0
        if len(ran) > count:
            is_over.wait()
        task.output_folder.mkdir(parents=True)
        path = task.output_folder / "f.o"
        path.write_bytes(b"code")
        return BuiltObject(task.symbol, path, None, 4.0)

    chosen = [candidate(store.candidate_folder(0, 0, index), 0, index) for index in range(20)]
    for one in chosen:
        store.database.add_candidate(one)
    with builder(store, build) as (made, _):
        submit_build = made._submit_build

        def submit(candidate: Candidate) -> Future[BuiltObject | GeneratorFailure]:
            future = submit_build(candidate)
            if candidate == chosen[count + 1]:
                is_queued.set()
            return future

        monkeypatch.setattr(made, "_submit_build", submit)
        assert [one.candidate for one in made._build(BatchInProgress(0, 0), chosen, 1, None)] == chosen[:count]
        is_over.set()
        left = made.proposals.left.take(0, 3)
        assert left == chosen[count : count + 3]
        # Each batch has a builder of its own.
        later = replace(made, deadline=Deadline.after(1000.0))
        assert [one.candidate for one in later._build(BatchInProgress(1, 0), left, 1, None)] == left
        assert made.proposals.left.take(0, 100) == chosen[count + 3 :]
        assert made.proposals.left.take(0, 100) == []
    assert ran == [one.symbol for one in chosen[: count + 3]], "each is built once"


def test_what_takes_too_long_of_an_earlier_process_is_left_to_the_next_batch(store: RunStore, now: FakeTime) -> None:
    """Each takes 25 s of 100 s: after 40 s four are enough."""
    chosen = [candidate(store.candidate_folder(0, 0, index), 0, index) for index in range(9)]
    for one in chosen:
        store.database.add_candidate(one)

    def build(task: Task[Any]) -> object:
        if isinstance(task, Link):
            return Executable(Path(task.file_name), tuple(kernel.name for kernel in task.kernels), "ab")
        assert isinstance(task, BuildObject)
        now.now_s += 25.0
        task.output_folder.mkdir(parents=True)
        path = task.output_folder / "f.o"
        path.write_bytes(b"code")
        return BuiltObject(task.symbol, path, None, 25.0)

    with builder(store, build) as (made, _):
        batch = made.build_left_over(chosen, None)
        left = made.proposals.left.take(0, 100)
    assert batch.candidates and left and (*batch.candidates, *left) == tuple(chosen)


def test_the_default_is_waited_for_a_little_longer_than_the_budget(store: RunStore, now: FakeTime) -> None:
    full: Future[Any] = Future()
    full.set_running_or_notify_cancel()
    with builder(store, no_task, budget_s=10.0) as (made, heard):
        now.now_s = 14.0
        assert made._await_full(BatchInProgress(0, 0), full, Path("w"), others=True) == []
        assert [event.text for event in heard if isinstance(event, Notice)] == [
            "The budget ended before the search for the default schedule did."
        ]
        (reason,) = store.database._rows("SELECT symbol, reason FROM failures")
        assert str(reason[0]).endswith("_r0_a0_s0") and reason[1] == "over budget", "the published header says so"


@pytest.mark.parametrize(
    ("pool_s", "asked_s", "origin"),
    [
        ([], None, Origin.FULL_BEAM),
        ([0.2, 0.3, 9.0], None, Origin.FULL_BEAM),
        ([0.8, 1.0, 1.2], None, Origin.GREEDY),
        ([0.8, 1.0, 1.2], 18.0, Origin.FULL_BEAM),
    ],
)
def test_a_full_search_that_would_take_too_long_is_not_begun(
    store: RunStore, now: FakeTime, pool_s: list[float], asked_s: float | None, origin: Origin
) -> None:
    with builder(store, lambda task: searched(task, store, now, 0.1), full_search_limit_s=asked_s) as (made, heard):
        pool = [
            searched(Search(Path(f"{n}"), 0, full_beam_point(0, Path("w"))), store, now, s)
            for n, s in enumerate(pool_s)
        ]
        found = made._submit_default(BatchInProgress(0, 0), Path("w"), pool).result()
    assert found.point.origin is origin
    told = [event.text for event in heard if isinstance(event, Notice)]
    assert len(told) == (origin is Origin.GREEDY)
    assert all(
        "leaves 18 s for the full beam search; raise --budget or set --full-search-limit" in text for text in told
    )
