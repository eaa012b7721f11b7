"""Generators of several files, built by a farm's builder from what it is sent."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.candidate import Origin, SearchedSchedule, SearchPoint
from halide_autotune.autotune_loop.execute.farm_executor import FarmExecutor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Search
from halide_autotune.autotune_loop.farm.use import DeviceWish, FarmUse
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.devices.local.cores import plan_cores
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.reference import GeneratorReference
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import write_weights
from tests.generator_projects import cpp_project, python_project
from tests.loopback_farm import LoopbackFarm, loopback_farm
from tests.run_specs import make_context, make_spec

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

_LIMIT_S = 240.0


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator[LoopbackFarm]:
    with loopback_farm(tmp_path_factory.mktemp("farm"), settings) as processes:
        processes.start_worker("builder", settings, build_slots=1)
        yield processes


@pytest.mark.parametrize("project", [cpp_project, python_project])
def test_a_generator_of_several_files_is_built_by_a_builder(
    farm: LoopbackFarm,
    halide: HalideInstall,
    settings: Settings,
    tmp_path: Path,
    project: Callable[[Path], GeneratorReference],
) -> None:
    home = tmp_path / "home"
    spec = make_spec(TuningTask(project(home), "filter"), profile="x86-64", parallelism=1)
    cores = plan_cores(frozenset(os.sched_getaffinity(0)), 0)
    context = make_context(spec, (), tmp_path, cores, dict(os.environ))
    here = replace(context.workspace, cache_folder=settings.cache_folder)
    weights = tmp_path / "used.weights"
    write_weights(baseline_weights(halide.plugin_path("Adams2019")), weights)
    point = SearchPoint(Origin.GREEDY, 0, 1, 100, weights)
    use = FarmUse(farm.address, DeviceWish("x86-64", ()))
    with contextlib.closing(FarmExecutor(replace(context, workspace=here), 1, use)) as executor:
        shutil.rmtree(home)  # nobody but the builder has it now
        found = executor.submit(Search(tmp_path / "run" / "0", 0, point, "kernel")).result(_LIMIT_S)
    assert isinstance(found, SearchedSchedule), found
    assert found.built is not None and found.built.object_path.stat().st_size > 0
