"""What a page says to type next: real commands, about this run."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.project.next_commands import next_commands, ship_line
from tests.recorded_run_folder import write_run_folder
from tests.run_specs import make_spec, make_task


def commands(folder: Path, *, samples: int = 3, **options: object) -> dict[str, str]:
    task = replace(make_task("harris", parameters={"gain": "2 x"}), estimates={"input": "640x480", "#0": "640x480"})
    write_run_folder(folder, samples, spec=make_spec(task, options=RunOptions.of(**options)))
    return next_commands(read_recorded_run(folder))


def test_every_command_is_about_this_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = commands(tmp_path / "tuned" / "harris-arm64-1", device=("one", "label:my board"))
    called = "/src/harris.py:harris --target arm64 -p 'gain=2 x'"
    header = "tuned/harris-arm64-1/samples/best.harris.schedule.h"
    assert told == {
        "use it": f"sdk build {called} --schedule {header}",
        "time it in turns": f"sdk bench {called} --estimate input=640x480 --device one --device 'label:my board'"
        f" --schedule adams2019 --schedule {header} --play-off",
        "ship it": "sdk ship tuned/harris-arm64-1 -o schedules",
        "say why it is fast": "sdk explain tuned/harris-arm64-1",
        "replay it": "sdk autotune --replay tuned/harris-arm64-1",
        "resume it": "sdk autotune --resume tuned/harris-arm64-1",
    }


def test_a_winner_is_decided_about_as_the_run_has_timed_it(tmp_path: Path) -> None:
    photo = tmp_path / "photo.npy"
    photo.touch()
    of_estimates = {"input": "640x480", "output": "640x480@-2x3"}
    told = commands(
        tmp_path / "run",
        sizes={**of_estimates, "mask": "32x24"},
        scalars={"gain": "1.5"},
        input_files={"photo": str(photo)},
        input_seed=7,
        objective="worst",
        worst_tolerance=0.1,
    )
    asked = "--estimate input=640x480 --input-seed 7 --size mask=32x24 --scalar gain=1.5"
    decided = f"{asked} --input photo={photo} --objective worst --worst-tolerance 0.1 --schedule adams2019 "
    assert decided in told["time it in turns"]


def test_a_run_for_several_sizes_has_no_command_that_decides(tmp_path: Path) -> None:
    told = commands(tmp_path / "run", also_sizes=("input=64x48",))
    assert "time it in turns" not in told and "ship it" in told


@pytest.mark.parametrize(
    ("winners", "options"),
    [
        ([(True, {}), (True, {"tile": "8"})], []),
        ([(True, {"tile": "8"}), (False, {})], ["--play-off"]),
        ([(True, {}), (False, {"tile": "8"})], None),  # only the run can confirm parameters
    ],
)
def test_what_is_not_confirmed_ships_with_a_play_off(
    winners: list[tuple[bool, dict[str, str]]], options: list[str] | None
) -> None:
    expected = {} if options is None else {"ship it": shlex.join(["sdk", "ship", "run", "-o", "schedules", *options])}
    assert ship_line("run", winners) == expected


def test_names_cannot_become_commands(tmp_path: Path) -> None:
    hostile = "x; $(touch broken) '"
    for line in commands(tmp_path / "run", device=(hostile,)).values():
        assert all(hostile in word for word in shlex.split(line) if "touch" in word)


def test_a_run_that_has_timed_nothing_has_nothing_to_type_next(tmp_path: Path) -> None:
    assert commands(tmp_path / "run", samples=0) == {}
