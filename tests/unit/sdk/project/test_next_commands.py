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
