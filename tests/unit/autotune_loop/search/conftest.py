"""Proposals of runs whose executors say what their scripts say."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.events import Event
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule
from halide_autotune.autotune_loop.search.schedule_proposals import ScheduleProposals
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.contract.writing_process import RECORD
from tests.drafted_pipelines import recorded
from tests.proposal_setting import NAME, Make, Setting
from tests.run_specs import make_record, make_spec, make_task
from tests.scripted_executor import ScriptedExecutor


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path / "run", RECORD, resume=False)
    yield made
    made.close()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes a run's proposals; each run has a folder of its own."""
    with contextlib.ExitStack() as opened:

        def setting(
            technique: str = "sampling,sketches,evolution",
            script: Callable[[Task[Any]], object] | None = None,
            gpu: object = None,
            space: object = None,
            halide_target: str = "x86-64-linux",
            seed: int = 3,
            budget_s: float | None = None,
            known: Sequence[KnownSchedule] = (),
            model: str = "lowered",
            acquisition: str = "bound",
            at_once: int = 1,
            pool_factor: float = 2.0,
            only_records: bool = False,
        ) -> Setting:
            folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
            store = RunStore(folder, make_record(make_spec(make_task(NAME))), resume=False)
            opened.callback(store.close)
            asked: list[Task[Any]] = []

            def answer(task: Task[Any]) -> object:
                asked.append(task)
                return script(task) if script is not None else recorded(NAME).shape

            options = RunOptions.of(
                technique=technique.split(","),
                seed=seed,
                model=model,
                acquisition=acquisition,
                pool_factor=pool_factor,
            )
            context = SimpleNamespace(
                spec=SimpleNamespace(options=options),
                profile=SimpleNamespace(
                    machine=SimpleNamespace(gpu=gpu),
                    halide_target=halide_target,
                    has_doubtful_vectors="hvx" in halide_target,
                ),
                tasks=[SimpleNamespace(function_name=NAME, parameters={}, space=space)] * 2,
                workspace=SimpleNamespace(work_folder=store.work),
                limits=SimpleNamespace(search_s=30.0, budget_s=budget_s),
                parallelism=4,
                sample_file_name=NAME,
                devices=(SimpleNamespace(kind="ssh", at_once=at_once),),
                only_records=only_records,
            )
            executor = opened.enter_context(contextlib.closing(ScriptedExecutor(answer)))
            heard: list[Event] = []
            place = (executor, store, cast(Any, context), heard.append)
            proposals = ScheduleProposals(*place, lambda index, shape: known, StopSignal())
            return Setting(proposals, store, asked, heard)

        yield setting
