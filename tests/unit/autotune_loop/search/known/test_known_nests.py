"""A run's model of loop nests begins with what random programs teach, and with what the history has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from halide_autotune.autotune_loop.events import Event, Notice, ignore
from halide_autotune.autotune_loop.history.history import History
from halide_autotune.autotune_loop.history.known_schedule import threads_text
from halide_autotune.autotune_loop.lowered.lowered_file import pack_lowered
from halide_autotune.autotune_loop.search.known.known_nests import LIMITS, prior_of_run
from halide_autotune.autotune_loop.search.models.nest_prior import read_prior, write_prior
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.lowering.loop_nest import VERSION, Computation, Loop, LoopNest
from tests.known_schedules import known
from tests.run_specs import make_record, make_spec, make_task

THREADS = 4


def nest(operations: float, *, extent: float = 1.0) -> bytes:
    work = Computation("f", {"float_add": operations}, ())
    loop = Loop("f.y", "f", "parallel", extent, 0, (work,), (), ())
    return pack_lowered(LoopNest(VERSION, 32, Loop("", "", "root", 1.0, 0, (work,), (), (loop,))))


@pytest.fixture
def open_run(tmp_path: Path) -> Iterator[Callable[..., RunStore]]:
    """Opens a run's store, by the name of its folder."""
    with ExitStack() as opened:

        def run(name: str, *, resume: bool = False, model: str = "lowered") -> RunStore:
            spec = replace(make_spec(make_task("harris"), options=RunOptions.of(model=model)), parallelism=THREADS)
            store = RunStore(tmp_path / name, make_record(spec), resume=resume)
            opened.callback(store.close)
            return store

        yield run


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.sqlite3")


def fill(history: History, store: RunStore, pipeline: str, count: int = LIMITS.fewest_each) -> None:
    """The more operations, the longer."""
    target = store.record.spec.profile.halide_target
    place = {"halide_target": target, "conditions": f"640x480, {threads_text(THREADS)}", "as_timed": pipeline * 64}
    schedules = [known(float(ms), f"{pipeline}{ms}", **place) for ms in range(1, count + 1)]
    history.add(schedules, {one.nest_key: nest(100 * one.time_ms + ord(pipeline)) for one in schedules})


def test_without_a_history_it_is_the_shipped_one(open_run: Callable[..., RunStore], history: History) -> None:
    heard: list[Event] = []
    shipped = read_prior()
    assert shipped is not None
    for asked in ((), (history,)):
        prior = prior_of_run(open_run(f"run{len(asked)}"), None, asked, heard.append)
        assert prior is not None and np.array_equal(prior.rows, shipped.rows)
    assert (
        not heard and prior_of_run(open_run("other", model="gaussian_process"), None, (history,), heard.append) is None
    )


def test_the_history_adds_to_it_and_a_resumed_run_has_the_same(
    open_run: Callable[..., RunStore], history: History
) -> None:
    heard: list[Event] = []
    store, shipped = open_run("run"), read_prior()
    fill(history, store, "a")
    fill(history, store, "b")
    prior = prior_of_run(store, None, (history,), heard.append)
    assert prior is not None and shipped is not None
    assert len(prior.rows) == len(shipped.rows) + 2 * LIMITS.fewest_each
    (notice,) = heard
    assert isinstance(notice, Notice) and "32 schedules of 2 pipelines of earlier runs" in notice.text
    store.close()
    fill(history, store, "c")
    again = prior_of_run(open_run("run", resume=True), None, (history,), heard.append)
    assert again is not None and np.array_equal(again.rows, prior.rows)
    assert np.array_equal(again.log_times, prior.log_times)
    assert len(heard) == 1


def test_a_history_that_had_nothing_adds_nothing_to_a_resumed_run(
    open_run: Callable[..., RunStore], history: History
) -> None:
    store, shipped = open_run("run"), read_prior()
    assert prior_of_run(store, None, (history,), ignore) is not None and shipped is not None
    fill(history, store, "a")
    store.close()
    again = prior_of_run(open_run("run", resume=True), None, (history,), ignore)
    assert again is not None and np.array_equal(again.rows, shipped.rows)


def test_what_was_learnt_for_the_devices_takes_the_place_of_the_shipped_one(
    open_run: Callable[..., RunStore], history: History, tmp_path: Path
) -> None:
    shipped, learnt = read_prior(), tmp_path / "board.nests.npz"
    assert shipped is not None
    write_prior(replace(shipped, rows=shipped.rows[:100], log_times=shipped.log_times[:100]), learnt)
    store = open_run("run")
    prior = prior_of_run(store, learnt, (), ignore)
    assert prior is not None and len(prior.rows) == 100
    store.close()
    learnt.unlink()
    again = prior_of_run(open_run("run", resume=True), learnt, (), ignore)
    assert again is not None and len(again.rows) == 100, "the run's folder has it"
    fill(history, store, "a")
    more = prior_of_run(open_run("second"), None, (history,), ignore)
    assert more is not None and len(more.rows) == len(shipped.rows) + LIMITS.fewest_each


@pytest.mark.parametrize(("is_damaged", "problem"), [(True, "cannot be read"), (False, "another version of the SDK")])
def test_what_was_learnt_and_cannot_be_used_is_told_and_the_history_counts(
    open_run: Callable[..., RunStore],
    history: History,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_damaged: bool,
    problem: str,
) -> None:
    heard: list[Event] = []
    shipped, learnt, store = read_prior(), tmp_path / "board.nests.npz", open_run("run")
    assert shipped is not None
    if is_damaged:
        learnt.write_bytes(b"no arrays")
    else:
        monkeypatch.setattr("halide_autotune.autotune_loop.search.models.nest_prior.VERSION", VERSION - 1)
        write_prior(shipped, learnt)
        monkeypatch.undo()
    fill(history, store, "a")
    prior = prior_of_run(store, learnt, (history,), heard.append)
    assert prior is not None and len(prior.rows) == len(shipped.rows) + LIMITS.fewest_each
    notice = heard[0]
    assert isinstance(notice, Notice) and notice.warning and problem in notice.text
    assert str(learnt) in notice.text and "goes on with what comes with the SDK" in notice.text


@pytest.mark.parametrize("bad", [b"no nest", nest(1.0, extent=0.0), nest(math.inf)])
def test_damaged_nests_are_left_out(open_run: Callable[..., RunStore], history: History, bad: bytes) -> None:
    store, shipped = open_run("run"), read_prior()
    fill(history, store, "a", LIMITS.fewest_each + 1)
    one = next(one for one in history.schedules() if one.time_ms == 1.0)
    history.add([], {one.nest_key: bad})
    prior = prior_of_run(store, None, (history,), lambda event: None)
    assert prior is not None and shipped is not None and len(prior.rows) == len(shipped.rows) + LIMITS.fewest_each
    other = next(one for one in history.schedules() if one.time_ms == 2.0)
    history.add([], {other.nest_key: bad})
    fewer = prior_of_run(open_run("second"), None, (history,), lambda event: None)
    assert fewer is not None and len(fewer.rows) == len(shipped.rows), "what is left of the pipeline is too little"


def test_a_damaged_history_costs_nothing_but_its_knowledge(open_run: Callable[..., RunStore], history: History) -> None:
    heard: list[Event] = []
    history.file.write_text("no database")
    assert prior_of_run(open_run("run"), None, (history,), heard.append) is not None
    (notice,) = heard
    assert isinstance(notice, Notice) and notice.warning and "goes on without it" in notice.text
