"""`sdk explain`, for real: a schedule of a generator on an emulated board, and what it says of wrong use."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.recorded_run_folder import write_run_folder
from tests.unit.sdk.commands.conftest import Run

SMALL = ("-p", "width=128", "-p", "height=64")


@pytest.mark.toolchain
@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-aarch64 is not installed")
def test_loads_and_stores_are_counted_on_an_emulated_board(run: Run, blur: Path) -> None:
    done = run("explain", "own", blur, *SMALL, "--schedule", "mullapudi2016", "--target", "arm64", "--json")
    assert done.code == 0, done.err
    (told,) = json.loads(done.out)
    assert [one["label"] for one in told["schedules"]] == ["mullapudi2016", "own"] and told["limits"] is None
    own = told["schedules"][1]
    columns = next(func for func in own["funcs"] if func["name"] == "columns")
    assert own["call_s"] is None and own["missing"] == [], "simulated time tells nothing of Funcs"
    assert columns["counts"]["within"] == "output" and columns["counts"]["realizations"] == 3 * 64
    assert columns["counts"]["points"] >= columns["needed_points"] == (128 + 6) * 64 * 3
    assert any(text.startswith("columns: computed within output in 192 pieces") for text in told["changes"])


def test_a_run_has_its_own_generator(run: Run, blur: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_run_folder(folder, 4)
    done = run("explain", folder, blur)
    assert done.code == 2 and "A run has its generator, its parameters and sizes, and what it is compared" in done.err
    assert run("explain", folder, *SMALL).err == done.err, "nothing that is typed is passed over"
    done = run("explain", folder, "--schedule", "own")
    assert done.code == 2 and "explain the run's header instead of its folder" in done.err


@pytest.mark.toolchain
def test_what_is_no_schedule_is_one_message(run: Run, blur: Path) -> None:
    done = run("explain", "nowhere.schedule.h", blur)
    assert done.code == 2 and "There is no schedule 'nowhere.schedule.h'." in done.err


def test_a_folder_that_is_not_there_needs_no_generator(run: Run) -> None:
    done = run("explain", "tuned/nowhere")
    assert done.code == 2 and "sdk: There is no run and no schedule tuned/nowhere. Give the folder of a run" in done.err
