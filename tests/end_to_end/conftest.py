"""Real runs of the whole loop, kept small: tiny images, a handful of schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.measure import machine_watch
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.autotune_loop.specification.objective import LOOKS
from halide_autotune.sdk.settings import Settings
from tests.flat_tuning import tune_flat

# With one tap each side, Halide compiles the same two Funcs in half the time that the usual three take.
SMALL = ("width=192", "height=96", "radius=1")
TINY_BATCH: dict[str, Any] = {"batch_size": 5, "pool_factor": 1.0, "seed": 3}
QUICK_LEARNING: dict[str, Any] = {"epochs": 5}

Tune = Callable[..., TuneResult]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """How busy this machine is, is not tested here, and nobody waits for it to become quiet.

    Fixtures that tests of other folders share are not the place: what a session's fixture changes stays for all.
    """
    if not item.path.is_relative_to(Path(__file__).parent):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_watch, "_LEAST_TIMINGS", math.inf)
        return (yield)


@pytest.fixture(scope="session")
def tune(settings: Settings, forked_tensorflow: None) -> Tune:
    """`sdk.autotune` with the session's cache, small batches and one thread."""
    return partial(
        tune_flat,
        parallelism=1,
        rounds=2,
        **TINY_BATCH,
        **QUICK_LEARNING,
        play_off_turns=LOOKS[0],
        max_time_s=0.05,
        settings=settings,
    )


@pytest.fixture(scope="session")
def python_run(tune: Tune, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> TuneResult:
    """A finished run of a Python generator on this machine, shared by the tests that look at it."""
    folder = tmp_path_factory.mktemp("python_run") / "run"
    return tune(str(examples / "separable_filter.py"), parameters=SMALL, run_folder=folder)
