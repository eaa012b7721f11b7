"""The command `sdk compare`: runs, headers, and what cannot be compared."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.main import main
from tests.recorded_run_folder import HEADERS, write_run_folder
from tests.run_specs import make_spec, make_task


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write_run_folder(folder / "first", 40)
    write_run_folder(folder / "second", 20, spec=make_spec(make_task("harris"), options=RunOptions.of(batch_size=16)))
    write_run_folder(folder / "simulated", 10, clock="simulated")
    for number, header in enumerate(sorted(HEADERS.glob("*adams*.schedule.h"))[:2]):
        shutil.copy(header, folder / f"{number}.schedule.h")
    (folder / "broken.schedule.h").write_text("nothing")
    return folder


@pytest.fixture(autouse=True)
def in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def test_runs_are_tables_and_a_page(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "compare.html"
    assert main(["compare", "first", "second", "--loops", "-o", str(page)]) == 0
    said = capsys.readouterr().out
    for words in ("harris\n", "first ", "1.50 (than the default)", "batch_size", "sampling"):
        assert words in said, words
    assert page.read_text().startswith("<!doctype html>")
    line = said.split("To decide between their winners: ")[1].splitlines()[0]
    headers = [f"{run}/samples/best.harris.schedule.h" for run in ("first", "second")]
    assert line.startswith("sdk bench /src/harris.py:harris --target arm64")
    assert line.endswith(f"--schedule {headers[0]} --schedule {headers[1]} --play-off") and line in page.read_text()


def test_runs_whose_paths_are_no_utf8_have_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    write_run_folder(folder, 3)
    page = tmp_path / "compare.html"
    assert main(["compare", "first", str(folder), "-o", str(page)]) == 0, capsys.readouterr().err
    assert "caf?" in page.read_text()


def test_winners_of_different_sizes_are_not_timed_in_turns(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run_folder(project / "larger", 5, spec=make_spec(make_task("harris", parameters={"width": "4096"})))
    assert main(["compare", "first", "larger"]) == 0
    said = capsys.readouterr().out
    assert "The runs have different parameters or sizes" in said and "To decide" not in said


def test_times_of_different_clocks_are_kept_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "first", "simulated"]) == 0
    said = capsys.readouterr().out
    assert "Compare no time of one run with another's." in said and "4.000 ms sim" in said
    assert "sdk bench" not in said


def test_json_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "first", "second", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["settings"]["spec.options.search.batch_size"] == ["32", "16"]


def test_headers_are_compared_by_their_loops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "0.schedule.h", "1.schedule.h"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("--- 0.schedule.h\n+++ 1.schedule.h\n") and "\n+" in said
    assert main(["compare", "0.schedule.h", "0.schedule.h", "1.schedule.h", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"0.schedule.h", "1.schedule.h"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "Missing argument"),
        (["first"], 2, "A comparison needs at least two runs."),
        (["first", "nowhere"], 1, "is not a run folder"),
        (["first", "0.schedule.h"], 2, "A header is only compared with other headers."),
        (["0.schedule.h"], 2, "A header is only compared with other headers."),
        (["0.schedule.h", "1.schedule.h", "-o", "x.html"], 2, "Only runs can be compared on a page."),
        (["0.schedule.h", "missing.schedule.h"], 1, "missing.schedule.h"),
        (["0.schedule.h", "broken.schedule.h"], 1, "broken.schedule.h: The schedule has no function"),
        (["first", "second", "-o", "missing/x.html"], 1, "cannot be written"),
    ],
)
def test_wrong_use_is_one_message(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *arguments]) == code
    told = capsys.readouterr()
    assert said in told.err and "Traceback" not in told.err and told.out == ""
