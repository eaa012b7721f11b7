"""`sdk suggest`, for real: schedules that nobody has timed, which compile and are right, and what wrong use is told."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.suggest import lowered_once
from halide_autotune.autotune_loop.suggest.suggestion import Suggestion, Suggestions
from halide_autotune.sdk.options.generator_spec import GeneratorSpec
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.lowering.lower import Lowered, Refused
from tests.unit.sdk.commands.conftest import Run

SMALL = ("-p", "width=128", "-p", "height=64")


@pytest.mark.toolchain
def test_what_is_suggested_is_right_and_the_same_each_time(run: Run, blur: Path, tmp_path: Path) -> None:
    done = run("suggest", blur, *SMALL, "--count", "3", "-o", "new/first.schedule.h", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    paths = [Path(one["header"]) for one in told["schedules"]]
    assert [path.name for path in paths] == ["first.schedule.h", "first-2.schedule.h", "first-3.schedule.h"]
    ratios = [one["expected_ratio"] for one in told["schedules"]]
    assert ratios[0] == 1.0 and ratios == sorted(ratios) and told["compared"] > 30
    assert told["cores"] == len(os.sched_getaffinity(0)), "the target is this machine"
    texts = [path.read_text() for path in paths]
    assert len({*texts}) == 3 and "and not timed." in texts[0] and "apply_schedule_separable_filter(" in texts[0]
    done = run("bench", blur, *SMALL, "--schedule", "own", *(f"--schedule={path}" for path in paths), "--turns", "1")
    assert done.code == 0, "each compiles, and its output is that of the generator's own schedule"
    done = run("suggest", blur, *SMALL)
    assert done.code == 0 and "schedules were compared for" in done.out and "None was timed." in done.out
    assert f"time it: sdk bench {blur} -p width=128 -p height=64 --schedule=suggested.separable_filter" in done.out
    assert (tmp_path / "suggested.separable_filter.schedule.h").read_text() == texts[0]


@pytest.mark.toolchain
def test_a_damaged_file_of_what_was_learnt_is_told_and_passed_over(
    run: Run, blur: Path, settings: Settings, tmp_path: Path
) -> None:
    learnt = settings.config_folder / "weights" / "host.nests.npz"
    learnt.parent.mkdir(parents=True, exist_ok=True)
    learnt.write_text("nothing")
    try:
        done = run("suggest", blur, *SMALL)
    finally:
        learnt.unlink()
    assert done.code == 0 and f"{learnt} cannot be read" in done.err and "What comes with the SDK is used" in done.err


@pytest.mark.toolchain
def test_a_pipeline_of_which_halide_refuses_everything_is_one_message(
    run: Run, blur: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = lambda *arguments: Lowered(tuple(Refused("Not so.") for _ in arguments[2]), 0.0)  # noqa: E731
    monkeypatch.setattr(lowered_once, "lower_schedules", refused)
    done = run("suggest", blur, *SMALL)
    assert done.code == 1 and "for generator separable_filter: Not so." in done.err
    assert "sdk build --schedule mullapudi2016" in done.err


def test_the_next_command_is_one_that_times_what_was_suggested(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Suggestions("blur", (Suggestion("// a header", ("mullapudi2016",), 1.0),), compared=1, refused=0, cores=4)
    monkeypatch.setattr("halide_autotune.sdk.api.suggest.suggest", lambda *arguments, **named: found)
    timed: list[tuple[GeneratorSpec, tuple[str, ...], RunOptions]] = []

    def bench(
        generator: GeneratorSpec, schedules: tuple[str, ...], *, options: RunOptions, **named: object
    ) -> list[Any]:
        timed.append((generator, schedules, options))
        return []

    monkeypatch.setattr("halide_autotune.sdk.api.bench.bench", bench)
    given = ("--target", "arm64", "--parallelism", "2", "--estimate", "input=64x48", "-p", "gain=2", "-p", "width=512")
    done = run("suggest", "blur.py", *given)
    assert done.code == 0, done.err
    assert run(*shlex.split(done.out.split("time it: sdk ")[1])).code == 0
    ((generator, schedules, options),) = timed
    assert (generator.parameters, schedules) == (("gain=2", "width=512"), ("suggested.blur.schedule.h",))
    assert generator.estimates.given == {"input": "64x48"}
    assert (options.devices.target, options.devices.parallelism) == ("arm64", 2)


def test_wrong_use_is_told_before_anything_is_built(run: Run, folder: Path) -> None:
    done = run("suggest", "blur.py", "--target", "cuda-sm86")
    assert done.code == 2 and "Schedules can be suggested for processors only, and cuda-sm86 has a GPU." in done.err
    done = run("suggest", "blur.py", "-o", "blur.h")
    assert done.code == 2 and "blur.h" in done.err and "ends in .schedule.h" in done.err
    done = run("suggest", "blur.py", "--count", "0")
    assert done.code == 2 and "--count" in done.err
