"""The command `sdk history`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.history.history import History
from halide_autotune.sdk.main import main
from halide_autotune.targets.process.atomic_write import write_atomically
from tests.known_schedules import INLINED, PIPELINE, known
from tests.recorded_run_folder import write_run_folder


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return History(tmp_path / "config" / "history.sqlite3")


def describe(run: Path) -> None:
    """What a run that described its pipeline keeps."""
    pipeline = {"task_index": 0, "identity": asdict(PIPELINE), "conditions": "640x480, 4 threads", "schedules": []}
    kept = {"version": 1, "pipelines": [pipeline]}
    write_atomically(run / "history.json", json.dumps(kept).encode())


def test_runs_are_added_and_listed(history: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history"]) == 0
    assert "Nothing is known yet." in capsys.readouterr().out
    write_run_folder(tmp_path / "run", 5)
    describe(tmp_path / "run")
    assert main(["history", "add", "run"]) == 0
    assert "run: 5 new schedules" in capsys.readouterr().out
    assert main(["history", "add", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": 0}, "they are known"
    assert main(["history"]) == 0
    said = capsys.readouterr().out
    assert all(words in said for words in ("harris", "640x480, 4 threads", "arm-64", " ms", str(history.file)))
    assert main(["history", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["pipelines"]
    assert (told["pipeline"], told["schedules"], told["clock"]) == ("harris", 5, "wall")
    assert {one.found_by for one in history.schedules()} == {"full beam search", "sampling"}


def test_times_of_a_simulated_clock_say_so(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    history.add([known(4.0, clock="simulated")])
    assert main(["history"]) == 0
    said = capsys.readouterr().out
    assert "4.000 ms sim" in said and "simulated time, not a device's" in said.lower().replace("\n", " ")


def test_what_is_exported_is_merged_elsewhere(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [INLINED.replace("[]", f"[{' ' * number}]") for number in range(3)]
    history.add([known(1.0, texts[0]), known(2.0, texts[1]), known(3.0, texts[2], pipeline="blur")])
    assert main(["history", "export", "-o", "all.gz"]) == main(
        ["history", "export", "-o", "h.gz", "--pipeline", "harris"]
    )
    assert "all.gz: 3 schedules" in capsys.readouterr().out
    assert main(["history", "merge", "all.gz", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"all.gz": 0} and len(history.schedules()) == 3, "it is one's own"
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "elsewhere"))
    assert main(["history", "merge", "h.gz", "all.gz"]) == 0
    assert "h.gz: 2 new schedules\nall.gz: 1 new schedule\n" in capsys.readouterr().out
    merged = History(tmp_path / "elsewhere" / "history.sqlite3").schedules()
    assert {one.time_ms for one in merged} == {1.0, 2.0, 3.0} and "pi5" not in {one.device for one in merged}


def test_another_history_is_listed_and_pruned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    farms = History(tmp_path / "farm.sqlite3")
    farms.add([known(1.0), known(2.0)])
    assert main(["history", "--file", str(farms.file), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["pipelines"]
    assert told["schedules"] == 2
    assert main(["history", "--file", str(farms.file), "prune", "--keep", "1"]) == 0
    assert len(farms.schedules()) == 1
    capsys.readouterr()
    assert main(["history", "--file", "missing"]) == 2
    assert "There is no history missing. A farm's is where its scheduler keeps it." in capsys.readouterr().err


def test_pruning(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    history.add([known(1.0), known(2.0), known(3.0)])
    assert main(["history", "prune", "--keep", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"deleted": 1}
    assert main(["history", "prune", "--older-than", "1h"]) == 0
    assert "Deleted 2 schedules." in capsys.readouterr().out
    history.add([known(1.0), known(3.0, pipeline="blur")])
    assert main(["history", "prune", "--pipeline", "blur"]) == 0
    assert [one.pipeline for one in history.schedules()] == ["harris"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["prune"], 2, "Nothing says what to delete."),
        (["prune", "--keep", "0"], 2, "--keep"),
        (["prune", "--older-than", "soon"], 2, "'soon' is not a duration."),
        (["export", "-o", "x.gz"], 2, "Nothing is known yet. `sdk history` lists what is."),
        (["export", "-o", "x.gz", "--pipeline", "blur"], 2, "Nothing is known of a generator called 'blur'."),
        (["add", "nowhere"], 1, "is not a run folder"),
        (["add", "undescribed"], 2, "does not say what its pipelines compute"),
        (["merge", "missing.gz"], 1, "missing.gz cannot be read"),
        (["merge", "undescribed/run.toml"], 1, "not an exported history"),
    ],
)
def test_wrong_use_is_one_message(
    history: History, tmp_path: Path, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run_folder(tmp_path / "undescribed", 1)
    assert main(["history", *arguments]) == code
    told = capsys.readouterr().err
    assert said in told and "Traceback" not in told
    assert history.schedules() == []


def test_a_damaged_history_is_one_message(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    history.add([known(1.0)])
    history.file.write_bytes(b"damaged" * 100)
    assert main(["history"]) == 1
    assert "is damaged" in capsys.readouterr().err
