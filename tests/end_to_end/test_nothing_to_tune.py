"""Generators that no search of Halide's gives a schedule of: other techniques go on, or the Func is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import sdk
from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.autotune_loop.shipping.sizes.request import SizeVerdict
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.sdk.options.ship_options import ShipOptions
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from tests.end_to_end.test_kernel_sources import STAGED, TRIPLE_CPP

pytestmark = pytest.mark.toolchain

Tune = Callable[..., TuneResult]

# With `varies`, no two processes have the same output, so whatever is compared with the reference has failed.
VARYING = """
#include "Halide.h"
HalideExtern_1(float, process, float);
struct Varying : Halide::Generator<Varying> {
    GeneratorParam<bool> varies{"varies", false};
    Input<Buffer<float, 2>> input{"input"};
    Output<Buffer<float, 2>> output{"output"};
    void generate() {
        Var x("x"), y("y");
        Func doubled("doubled");
        doubled(x, y) = input(x, y) * 2.0f;
        output(x, y) = varies ? process(doubled(x, y)) : doubled(x, y) + doubled(x, y);
        input.set_estimates({{0, 128}, {0, 64}});
        output.set_estimates({{0, 128}, {0, 64}});
    }
};
HALIDE_REGISTER_GENERATOR(Varying, varying)
"""
PROCESS_C = """
#include <stdlib.h>
#include <unistd.h>
float process(float x) {
    static int seeded = 0;
    if (!seeded) srand(getpid());
    seeded = 1;
    return x + (float)rand();
}
"""


def tight(folder: Path) -> str:
    """A profile with which Adams2019 has no memory for any schedule."""
    profile = folder / "tight.toml"
    profile.write_text('extends = "host"\n[autoscheduler]\nname = "Adams2019"\nparameters = {memory_limit = 1}\n')
    return str(profile)


def check_tuned_without_search(result: TuneResult, heard: list[Event], told: str) -> None:
    (notice,) = (each.text for each in heard if isinstance(each, Notice) and told in each.text)
    assert "No search of Adams2019 gives a schedule, so only other techniques propose some." in notice
    assert result.outcome is Outcome.FINISHED and result.totals.samples_timed >= 3
    (tuned,) = result.tuned
    assert tuned.published.no_default is not None and tuned.published.tuned is not None
    assert tuned.published.no_default.what == "no search of Adams2019 gives a schedule"


def test_a_dead_end_names_the_func_and_other_techniques_go_on(
    tune: Tune, settings: Settings, examples: Path, tmp_path: Path
) -> None:
    heard: list[Event] = []
    run = tmp_path / "run"
    generator, where = str(examples / "separable_filter.cpp"), {"target": tight(tmp_path), "run_folder": run}
    result = tune(generator, rounds=2, batch_size=3, listen=heard.append, **where)
    check_tuned_without_search(result, heard, "it found no schedule of repeat_edge that keeps within")
    again = tune(generator, rounds=3, batch_size=3, resume=True, **where)
    assert again.totals.samples_timed > result.totals.samples_timed
    options = ShipOptions(allow_unconfirmed=True)
    with_profile = replace(settings, profile_folder=tmp_path)
    (shipped,) = sdk.ship([run], tmp_path / "shipped", options, settings=with_profile).schedules
    assert shipped.sizes and shipped.sizes[0].verdict is SizeVerdict.ACCEPTED


def test_where_searches_alone_are_asked_for_a_dead_end_ends_the_run(tune: Tune, examples: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(GeneratorError, match="it found no schedule of repeat_edge that keeps within") as found:
        tune(
            str(examples / "separable_filter.cpp"),
            target=tight(tmp_path),
            rounds=1,
            technique=(TechniqueName.SAMPLING,),
            run_folder=run,
        )
    assert "--schedule own --schedule mullapudi2016" in found.value.next_step
    assert not run.exists()


def test_what_an_extern_stage_reads_is_scheduled_by_other_techniques(tune: Tune, tmp_path: Path) -> None:
    for name, text in {"staged.py": STAGED, "triple.cpp": TRIPLE_CPP}.items():
        (tmp_path / name).write_text(text)
    build = CppBuild(kernel_sources=(tmp_path / "triple.cpp",))
    generator = sdk.GeneratorSpec(str(tmp_path / "staged.py"), build=build)
    heard: list[Event] = []
    result = tune([generator], rounds=2, batch_size=3, run_folder=tmp_path / "run", listen=heard.append)
    check_tuned_without_search(result, heard, "An extern stage of generator staged reads first")


def test_a_task_of_which_nothing_can_be_timed_leaves_the_others_alone(tune: Tune, tmp_path: Path) -> None:
    for name, text in {"varying.cpp": VARYING, "process.c": PROCESS_C}.items():
        (tmp_path / name).write_text(text)
    build = CppBuild(kernel_sources=(tmp_path / "process.c",))
    both = sdk.GeneratorSpec(str(tmp_path / "varying.cpp"), (), (("varies=true",), ("varies=false",)), build=build)
    heard: list[Event] = []
    result = tune([both], rounds=2, batch_size=16, run_folder=tmp_path / "run", listen=heard.append)
    warnings = [each.text for each in heard if isinstance(each, Notice) and each.warning]
    assert any("None of the first schedules of varying could be timed" in text for text in warnings)
    failed, tuned = result.tuned
    assert tuned.is_published and tuned.confirmed
    assert not failed.confirmed and failed.verdict is None
