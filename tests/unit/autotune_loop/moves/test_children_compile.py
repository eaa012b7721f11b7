"""Nearly every child of a schedule can be compiled: what moves take for legal is legal for Halide."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.moves.mutation import Mutation
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorRequest, run_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.schedule.plugins import replay_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.drafted_pipelines import recorded, starting_drafts

TARGET = "x86-64-linux-avx-avx2-f16c-fma-sse41-no_runtime"
LIMITS = ProcessLimits(time_s=60.0, memory_bytes=4 * 2**30)
CHILDREN = 30
# A tap each side of a pixel: the Funcs and loops are those of the usual three, and there is less code to make.
PARAMETERS = {"separable_filter": {"radius": "1"}}
SCAN = Path(__file__).parents[1] / "draft" / "generators" / "scan.py"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["separable_filter", "matrix_product", "scan"])
def test_nine_of_ten_children_can_be_compiled(
    name: str,
    examples: Path,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    settings: Settings,
    tmp_path: Path,
) -> None:
    names, source = recorded(name), Random(17)
    mutation = Mutation(names)
    file = SCAN if name == "scan" else examples / f"{name}.py"
    preparation = PipelinePreparation(build_preparation_plugin(cpp_compiler))
    failed: Counter[str] = Counter()
    population = list(starting_drafts(name))
    with contextlib.closing(
        open_generator(parse_generator(str(file)), halide, cpp_compiler, settings.environment)
    ) as program:
        for index in range(CHILDREN):
            parent, other = source.choice(population), source.choice(population)
            child = mutation.crossed(parent, other, source) if index % 5 == 4 else None
            while child is None:  # now and then nothing fits a parent
                child = mutation.child(source.choice(population), source, {}, source.choice((1, 2, 3)))
            data = tmp_path / f"{index}.json"
            data.write_text(print_json(schedule_of(child.draft, names, "f")))
            folder = tmp_path / str(index)
            folder.mkdir()
            replay = preparation.before(replay_autoscheduler(data, cpp_compiler))
            request = GeneratorRequest(name, "f", "f", folder, ("object",), TARGET, PARAMETERS.get(name, {}), replay)
            result = run_generator(program, request, LIMITS)
            if isinstance(result, GeneratorFailure):
                failed[f"{child.moves}: {result.reason.value}: {result.message}"] += 1
            else:
                # As in a run, where only what could be timed has children.
                population[source.randrange(len(population))] = child.draft
    assert failed.total() <= CHILDREN // 10, "\n".join(failed)
