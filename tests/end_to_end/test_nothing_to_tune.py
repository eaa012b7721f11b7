"""Generators that the autoscheduler finds no schedule of: the Func is named, and what can be done instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autotune_loop.run.result import TuneResult
from targets.errors import GeneratorError
from tests.end_to_end.test_kernel_sources import STAGED

pytestmark = pytest.mark.toolchain

Tune = Callable[..., TuneResult]


def test_a_search_without_legal_schedules_names_the_func(tune: Tune, examples: Path, tmp_path: Path) -> None:
    profile = tmp_path / "tight.toml"
    profile.write_text('extends = "host"\n[autoscheduler]\nname = "Adams2019"\nparameters = {memory_limit = 1}\n')
    run = tmp_path / "run"
    with pytest.raises(GeneratorError, match="it found no schedule of repeat_edge that keeps within") as found:
        tune(str(examples / "separable_filter.cpp"), target=str(profile), rounds=1, run_folder=run)
    assert "--schedule own --schedule mullapudi2016" in found.value.next_step
    assert not run.exists()


def test_what_an_extern_stage_reads(tune: Tune, tmp_path: Path) -> None:
    (tmp_path / "staged.py").write_text(STAGED)
    with pytest.raises(GeneratorError, match="An extern stage of generator staged reads first") as found:
        tune(str(tmp_path / "staged.py"), rounds=1, run_folder=tmp_path / "run")
    assert found.value.next_step.startswith("What can be built is timed by: sdk bench staged.py:staged --schedule own")
