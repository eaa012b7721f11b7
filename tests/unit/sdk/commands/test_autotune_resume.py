"""`sdk autotune --resume`, and what it says to type next. No tuning here."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.published import NOTHING
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk.commands.autotune import autotune as command
from halide_autotune.sdk.commands.autotune.follow_up import follow_up
from halide_autotune.sdk.main import main
from halide_autotune.sdk.options.resume_options import resumed_options
from tests.run_specs import make_record, make_spec, make_task
from tests.unit.sdk.display.recorded_run import RESULT, TUNED


def test_resume_without_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tuned" / "blur-host-1").mkdir(parents=True)
    for arguments, words in (
        (["blur.py", "-t", "host"], "--resume: there is no run of blur.py for host in "),
        ([], "There is no run in "),
        (["tuned/blur-hots-1"], "--resume: there is no run folder tuned/blur-hots-1"),
        (["tuned/blur-host-1"], "--resume: tuned/blur-host-1 is not a run folder: it has no run.toml."),
    ):
        assert main(["autotune", *arguments, "--resume"]) == 2
        assert capsys.readouterr().err.startswith(f"sdk: {words}")


@pytest.fixture
def run(folder: Path) -> Path:
    """A run folder in tuned/ with a record, and without anything else."""
    made = folder / "tuned" / "blur-arm64-1"
    made.mkdir(parents=True)
    task = make_task(file=folder / "blur.py", parameters={"radius": "3"})
    options = RunOptions.of(seed=4, batch_size=16, budget_s=60, objective="worst")
    make_record(make_spec(task, options=options)).write(made)
    return made


def resumed(arguments: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, RunOptions]:
    """The folder that is resumed, and what the run is asked then."""
    seen: list[tuple[Path, RunOptions]] = []

    def resume(folder: Path, *, changes: Mapping[str, object], **rest: object) -> TuneResult:
        seen.append((folder, resumed_options(read_run_record(folder), changes)))
        return replace(RESULT, run_folder=folder)

    with monkeypatch.context() as patched:
        patched.setattr("halide_autotune.sdk.api.autotune.resume", resume)
        assert main(["autotune", *shlex.split(arguments), "--quiet"]) == 0
    return seen[0]


@pytest.mark.parametrize(
    "arguments",
    [
        "--resume tuned/blur-arm64-1",
        "tuned/blur-arm64-1 --resume",
        "--resume -b tuned/blur-arm64-1",
        "--resume",
        "--resume blur.py",
        "--resume -t arm64",
        "--resume blur.py -b tuned/blur-arm64-1 -p radius=3 -f blur --seed 4 -t arm64 --parallelism 4",
    ],
)
def test_resume_needs_nothing_else(arguments: str, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, options = resumed(arguments, monkeypatch)
    assert (folder.absolute(), options) == (run, read_run_record(run).spec.options)


def test_what_a_resumed_run_may_be_asked_anew(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = read_run_record(run).spec.options
    _, options = resumed("--resume -n 200 --budget 1h -s 8 --objective mean -r pi --jobs 3", monkeypatch)
    changes = {"rounds": 200, "budget_s": 3600, "batch_size": 8, "objective": "mean", "device": ["pi"], "build_jobs": 3}
    assert options == old.with_values(changes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("-p radius=4", "This run was made with -p radius=3, not --parameter radius=4. Resume it without -p,"),
        ("--generator-arg-sets 'radius=3 radius=4'", "Resume it without --generator-arg-sets, or start a new run."),
        ("-f other", "This run was made with -f blur, not -f other. Resume it without -f,"),
        ("--seed 5", "This run was made with --seed 4, not --seed 5. Resume it without --seed,"),
        ("-t x86-64", "This run was made with --target arm64, not --target x86-64. Resume it without --target,"),
        ("--define TILES=4", "made with no --define, not --define TILES=4. Resume it without --define,"),
        ("--parallelism 2", "This run was made with --parallelism 4, not --parallelism 2."),
        ("--loss rank", "made with --loss relative_throughput, not --loss rank."),
        ("--scalar gain=2", "made with no --scalar, not --scalar gain=2."),
        ("-w baseline", "made with no --weights, not --weights baseline."),
    ],
)
def test_what_would_be_another_run_is_refused(
    arguments: str, words: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (run / "run.toml").read_text()
    assert main(["autotune", "--resume", str(run), *shlex.split(arguments)]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1 and error.endswith("or start a new run.\n")
    assert (run / "run.toml").read_text() == before


def test_a_run_of_an_older_version_is_refused_in_one_message(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "run.toml").write_text("[identity]\ngenerator = 'blur'\n[settings]\nrounds = '9'\n")
    assert main(["autotune", "--resume", str(run)]) == 1
    error = capsys.readouterr().err
    assert "an earlier version of the SDK" in error and "start a new run" in error and error.count("\n") == 1


def next_lines(folder: Path, **changes: Any) -> tuple[str | None, str | None]:
    lines = follow_up(replace(RESULT, run_folder=folder, **changes))
    return lines.get("use it"), lines.get("resume it")


def test_how_to_go_on(run: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, resume = next_lines(
        run,
        tuned=(replace(TUNED, parameters={"a": "1", "b": "x y"}, header=folder / "runs" / "best.h"),),
        outcome=Outcome.INTERRUPTED,
    )
    assert build == f"sdk build blur.py:blur --target {RESULT.target} -p a=1 -p 'b=x y' --schedule runs/best.h"
    assert resume == "sdk autotune --resume tuned/blur-arm64-1"
    # What is typed next is understood, and is of the same run.
    again, options = resumed(resume.removeprefix("sdk autotune "), monkeypatch)
    assert (again.absolute(), options.search.seed) == (run, 4)


def test_what_is_unconfirmed_ships_after_a_play_off(run: Path) -> None:
    def ships(confirmed: bool) -> str:
        tuned = replace(TUNED, published=replace(TUNED.published, confirmed=confirmed))
        return follow_up(replace(RESULT, run_folder=run, tuned=(tuned,)))["ship it"]

    assert ships(confirmed=True).endswith("-o schedules")
    assert ships(confirmed=False).endswith("-o schedules --play-off")


def test_a_run_in_its_last_round_needs_more_of_them(run: Path) -> None:
    def rounds(done: int, **changes: Any) -> str:
        totals = replace(RESULT.totals, rounds=done)
        return str(next_lines(run, totals=totals, **changes)[1])

    assert rounds(100).endswith(" --num-batches 200")
    assert rounds(100, outcome=Outcome.BUDGET_SPENT).endswith(" --num-batches 200")
    assert "--num-batches" not in rounds(99, outcome=Outcome.BUDGET_SPENT)


def test_where_nothing_is_left_to_do(run: Path) -> None:
    tuned = (replace(TUNED, header=None),)
    assert next_lines(run, outcome=Outcome.EXHAUSTED, tuned=tuned) == (None, None)


def test_a_run_that_timed_nothing_is_no_success(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = replace(RESULT, outcome=Outcome.BUDGET_SPENT, run_folder=run)
    nothing = replace(spent, tuned=(replace(TUNED, header=None, published=NOTHING),))
    monkeypatch.setattr(command, "_prepare", lambda *_: lambda **_: nothing)
    assert main(["autotune", "blur.py", "--quiet"]) == 1
    out, error = capsys.readouterr()
    assert "nothing was timed" in out
    assert "was timed. Read the warnings" in error
    monkeypatch.setattr(command, "_prepare", lambda *_: lambda **_: spent)
    assert main(["autotune", "blur.py", "--quiet"]) == 0
