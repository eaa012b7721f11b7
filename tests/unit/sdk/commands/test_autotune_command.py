"""`sdk autotune`: its options, its complaints, and what it says to type next. No tuning here."""

from __future__ import annotations

import inspect
import shlex
from dataclasses import fields, replace
from pathlib import Path

import numpy
import pytest

from autotune_loop.farm.fair_share import RunPriority
from autotune_loop.run.result import Outcome
from autotune_loop.specification.objective import Objective, ObjectiveKind
from autotune_loop.specification.tune_request import LearningOptions, SamplingOptions, TuneRequest
from devices.timing.measure_settings import KernelInputs
from sdk.commands import autotune as command
from sdk.commands.autotune_follow_up import follow_up
from sdk.main import main
from sdk.options.autotune_arguments import DEFAULTS, AutotuneArguments
from sdk.options.autotune_call import AutotuneCall, read_arguments
from sdk.options.generator_spec import GeneratorSpec
from sdk.project.file import Project, find_project
from targets.errors import UsageError
from tests.unit.sdk.display.recorded_run import RESULT, TUNED


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, with a file that could be a generator."""
    for name in ("CACHE", "CONFIG", "PROFILE"):
        monkeypatch.setenv(f"SDK_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blur.py").write_text("")
    return tmp_path


def given(arguments: str, monkeypatch: pytest.MonkeyPatch) -> AutotuneArguments:
    """What the command makes of a command line."""
    seen: list[AutotuneArguments] = []
    monkeypatch.setattr(command, "_run", seen.append)
    assert main(["autotune", *shlex.split(arguments)]) == 0
    return seen[0]


def call_for(arguments: str, monkeypatch: pytest.MonkeyPatch) -> AutotuneCall:
    return read_arguments(given(arguments, monkeypatch), Project(Path.cwd()))


def test_the_parameters_are_the_fields() -> None:
    parameters = inspect.signature(command.autotune).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        field.name: field.default for field in fields(AutotuneArguments)
    }


def test_nothing_but_a_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    assert given("blur.py", monkeypatch) == replace(DEFAULTS, generator=["blur.py"])
    call = call_for("blur.py", monkeypatch)
    assert (call.target, call.devices, call.inventory) == (None, (), None)
    assert call.generators == (GeneratorSpec("blur.py"),)
    assert (call.incumbents, call.objective, call.play_off_turns) == ({}, Objective(), TuneRequest.play_off_turns)
    assert (call.rounds, call.budget_s, call.run_folder, call.resume) == (TuneRequest.rounds, None, None, False)
    assert (call.sampling, call.learning) == (SamplingOptions(), LearningOptions())
    assert (call.inputs, call.input_files) == (KernelInputs(), {})
    assert (call.search_limit_s, call.full_search_limit_s, call.memory_limit_bytes) == (
        TuneRequest.search_limit_s,
        None,
        None,
    )


def test_every_option(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "now.h").write_text("")
    numpy.save(folder / "photo.npy", numpy.zeros((4, 6), numpy.uint8))
    arguments = given(
        "blur.py:blur -t arm64 -p radius=3 -p tiles=true --generator-arg-sets 'a=1;b=2 a=3' -f tuned_blur"
        " --size in=64x48 --size out=60x44 --scalar gain=-1.5 --scalar on=true --input image=photo.npy"
        " --input-seed 5 -r pi -r label:lab --inventory lab.toml --device-patience 1h --hexagon-sdk-root sdks/4.5"
        " --incumbent tuned_blur=now.h --objective weighted --device-weight pi=2 --play-off-turns 20"
        " --worst-tolerance 0.01 --parallelism 4 -n 7 -s 16 --budget 10m -b runs/here --seed 9"
        " -w mine.weights --loss rank --epochs 20 --learning-rate 0.01 --pool-factor 3 --random-share 0.5"
        " --diversity 0 -j 3 --search-limit 30 --full-search-limit 2m --memory-limit 4G --json --quiet",
        monkeypatch,
    )
    assert (arguments.as_json, arguments.quiet, arguments.plain) == (True, True, False)
    assert read_arguments(arguments, Project(folder)) == AutotuneCall(
        generators=(
            GeneratorSpec(
                "blur.py:blur", ("radius=3", "tiles=true"), (("a=1", "b=2"), ("a=3",)), function_name="tuned_blur"
            ),
        ),
        target="arm64",
        devices=("pi", "label:lab"),
        inventory=Path("lab.toml"),
        patience_s=3600.0,
        clock=None,
        hexagon_sdk_root=Path("sdks/4.5"),
        scheduler=None,
        farm_certificates=None,
        priority=RunPriority.NORMAL,
        incumbents={"tuned_blur": Path("now.h")},
        objective=Objective(ObjectiveKind.WEIGHTED, {"pi": 2.0}, 0.01),
        play_off_turns=20,
        parallelism=4,
        run_folder=Path("runs/here"),
        resume=False,
        rounds=7,
        budget_s=600.0,
        weights="mine.weights",
        sampling=SamplingOptions(batch_size=16, pool_factor=3.0, random_share=0.5, diversity=0.0, seed=9),
        learning=LearningOptions(loss="rank", epochs=20, learning_rate=0.01),
        inputs=KernelInputs(seed=5, sizes={"in": "64x48", "out": "60x44"}, scalars={"gain": "-1.5", "on": "true"}),
        input_files={"image": Path("photo.npy")},
        build_jobs=3,
        search_limit_s=30.0,
        full_search_limit_s=120.0,
        memory_limit_bytes=4 * 2**30,
    )


def test_long_names(monkeypatch: pytest.MonkeyPatch) -> None:
    short = given("g.py -t x -p a=1 -f n -r qemu -n 2 -s 3 -b d -w w -j 1 -q", monkeypatch)
    long = given(
        "g.py --target x --parameter a=1 --function-name n --device qemu --num-batches 2 --batch-size 3"
        " --run-dir d --weights w --jobs 1 --quiet",
        monkeypatch,
    )
    assert short == long
    assert given("--plain", monkeypatch).plain
    assert given("--resume", monkeypatch).resume


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--budget soon", "--budget: 'soon' is not a duration. Write it as 90s, 10m or 1.5h."),
        ("--budget 0s", "--budget: '0s' is not a duration."),
        ("--search-limit 1d", "--search-limit: '1d' is not a duration."),
        ("--full-search-limit ''", "--full-search-limit: '' is not a duration."),
        ("--memory-limit lots", "--memory-limit: 'lots' is not an amount of memory. Write it as 4G or 512M."),
        ("--objective best", "--objective must be mean, worst or weighted, not 'best'."),
        ("--device-weight pi", "--device-weight 'pi' is not NAME=NUMBER, such as pi5=2."),
        ("--device-weight pi=0", "--device-weight 'pi=0' is not NAME=NUMBER"),
        ("--device-weight pi=1 --objective worst", "--device-weight goes with --objective weighted, not worst."),
        ("--worst-tolerance 1", "--worst-tolerance must be a share from 0 to below 1, not 1."),
        ("--incumbent no.h", "--incumbent: there is no file no.h."),
        ("--play-off-turns 7", "Invalid value for '--play-off-turns'"),
        ("-s 1", "Invalid value for '--batch-size' / '-s': "),
        ("-n 0", "Invalid value for '--num-batches' / '-n'"),
        ("-n many", "Invalid value for '--num-batches' / '-n': "),
        ("--epochs 0", "Invalid value for '--epochs'"),
        ("--parallelism 0", "Invalid value for '--parallelism'"),
        ("-j 0", "Invalid value for '--jobs' / '-j'"),
        ("--loss square", "--loss must be relative_throughput or rank, not 'square'."),
        ("--learning-rate 0", "--learning-rate must be above 0 and at most 1, not 0."),
        ("--learning-rate nan", "--learning-rate must be above 0 and at most 1, not nan."),
        ("--pool-factor 0.5", "--pool-factor must be from 1 to 100, not 0.5."),
        ("--pool-factor inf", "--pool-factor must be from 1 to 100, not inf."),
        ("--random-share 1.5", "--random-share must be from 0 to 1, not 1.5."),
        ("--diversity nan", "--diversity must be from 0 to 1e+06, not nan."),
        ("--seed -1", "--seed must be from 0 to 2147483647, not -1."),
        ("--input-seed 9223372036854775808", "--input-seed must be from 0 to 9223372036854775807"),
        ("-p radius", "Generator parameter 'radius' must have the form key=value, such as -p radius=3."),
        ("-p target=host", "Generator parameter 'target' is set by the SDK."),
        ("-f 3d", "'3d' cannot be a function's name."),
        ("--generator-arg-sets ''", "--generator-arg-sets '' has an empty set."),
        ("--generator-arg-sets 'a=1 ;'", "--generator-arg-sets 'a=1 ;' has an empty set."),
        ("--generator-arg-sets 'a=1 b'", "--generator-arg-sets: Generator parameter 'b' must have the form"),
        ("--generator-arg-sets 'a=1;a=2'", "--generator-arg-sets: the set 'a=1;a=2' names a parameter twice."),
        ("--generator-arg-sets 'a=1 a=1'", "--generator-arg-sets: the set 'a=1' is there twice."),
        ("-r qemu -r local", "--device qemu cannot be joined by another device: their times do not compare."),
        ("-r pluto", "There is no device 'pluto'"),
        ("--device-patience long", "--device-patience: 'long' is not a duration."),
        ("--size in=", "--size 'in=' is not of the form NAME=VALUE. Such as input=1920x1080."),
        ("--size in=axb", "--size in=axb: 'axb' is not a size. Write it as 1920x1080"),
        ("--size in=4x4 --size in=5x5", "--size names in twice."),
        ("--scalar gain", "--scalar 'gain' is not of the form NAME=VALUE."),
        ("--scalar gain=much", "--scalar gain=much: 'much' is not a value. Write a number, or true or false."),
        ("--input photo.npy", "--input 'photo.npy' is not of the form NAME=VALUE."),
        ("--input in=gone.npy", "--input in=gone.npy: there is no such file."),
        ("--input in=blur.py --size in=4x4", "--input in takes its size from its file: leave out --size in."),
        ("--resume --run-dir gone", "--resume: gone holds no run (it has no run.toml)."),
        ("--plain --json", "--plain and --json exclude each other: give one of them."),
        ("--target", "requires an argument"),
        ("--frobnicate", "No such option: --frobnicate"),
    ],
)
def test_bad_values(arguments: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["autotune", "blur.py", *shlex.split(arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sdk: ")
    assert captured.err.count("\n") == 1
    assert expected in captured.err
    assert not Path("tuned").exists()


def test_without_a_generator_or_a_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["autotune"]) == 2
    assert "No GENERATOR was given" in capsys.readouterr().err


def test_what_is_missing_is_told_before_anything_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["autotune", "gone.py", "--plain"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sdk: There is no generator file gone.py. Give a path such as")
    assert main(["autotune", "blur.py", "-t", "arm46"]) == 1
    assert "the nearest is 'arm64'" in capsys.readouterr().err
    assert not Path("tuned").exists()


PROJECT = """
default_generator = "blur"
default_target = "arm64"
budget = "2m"
[generators]
blur = "source/blur.py:blur"
"""


def test_the_project_fills_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sdk.toml").write_text(PROJECT)
    below = folder / "below"
    below.mkdir()
    call = read_arguments(given("", monkeypatch), find_project(folder))
    assert (call.generators, call.target, call.budget_s) == ((GeneratorSpec("source/blur.py:blur"),), "arm64", 120.0)
    call = read_arguments(given("blur -t host --budget 5s", monkeypatch), find_project(folder))
    assert (call.generators, call.target, call.budget_s) == ((GeneratorSpec("source/blur.py:blur"),), "host", 5.0)
    monkeypatch.chdir(below)
    call = read_arguments(given("other.py", monkeypatch), find_project(below))
    assert (call.generators[0].generator, call.target) == ("other.py", "arm64")


LISTED = """
[[generators]]
name = "blur"
generator = "source/blur.py:blur"
parameters = ["radius=2"]
incumbent = "now.h"
[[generators]]
generator = "sharpen.cpp"
argument_sets = "a=1 a=2"
function_name = "fast_sharpen"
"""


def test_a_project_that_lists_generators_tunes_all_in_one_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "sdk.toml").write_text(LISTED)
    blur = GeneratorSpec("source/blur.py:blur", ("radius=2", "tiles=1"), incumbent=folder / "now.h")
    call = read_arguments(given("-p tiles=1", monkeypatch), find_project(folder))
    sharpen = GeneratorSpec("sharpen.cpp", ("tiles=1",), (("a=1",), ("a=2",)), "fast_sharpen")
    assert call.generators == (blur, sharpen)
    call = read_arguments(given("blur other.py -p tiles=1", monkeypatch), find_project(folder))
    assert call.generators == (blur, GeneratorSpec("other.py", ("tiles=1",)))
    parsed = given("blur other.py -f name", monkeypatch)
    with pytest.raises(UsageError, match="--function-name cannot be given to several generators"):
        read_arguments(parsed, find_project(folder))


def test_a_bad_budget_of_the_project_names_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sdk.toml").write_text('budget = "long"')
    assert main(["autotune", "blur.py"]) == 2
    assert f"{folder}/sdk.toml: budget: 'long' is not a duration." in capsys.readouterr().err


def test_resume_without_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tuned" / "blur-host-1").mkdir(parents=True)
    assert main(["autotune", "blur.py", "-f", "blur", "--resume"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sdk: --resume: there is no run of blur for host in ")
    assert "Leave --resume out to start one" in error


def next_lines(arguments: str, monkeypatch: pytest.MonkeyPatch, **changes: object) -> tuple[str | None, str | None]:
    parsed = given(arguments, monkeypatch)
    result = replace(RESULT, **changes)
    lines = follow_up(parsed, read_arguments(parsed, Project(Path.cwd())), result)
    return lines.build[0], lines.resume


def test_how_to_go_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, resume = next_lines(
        "blur.py -t arm64 -p a=1 --seed 4 --scalar 'gain=1' -n 5 --quiet",
        monkeypatch,
        tuned=(replace(TUNED, parameters={"a": "1", "b": "x y"}, header=folder / "runs" / "best.h"),),
        run_folder=folder / "runs",
        outcome=Outcome.INTERRUPTED,
    )
    assert build == "sdk build blur.py --target arm64 -p a=1 -p 'b=x y' --schedule runs/best.h"
    assert resume == (
        "sdk autotune blur.py --target arm64 -p a=1 --scalar gain=1 --seed 4 --num-batches 5 --run-dir runs --resume"
    )
    # What is typed next is understood, and is of the same run.
    (folder / "runs").mkdir()
    (folder / "runs" / "run.toml").write_text("")
    again = call_for(resume.removeprefix("sdk autotune "), monkeypatch)
    assert (again.generators[0].parameters, again.sampling.seed, again.resume) == (("a=1",), 4, True)


def test_a_run_in_its_last_round_needs_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert " --num-batches 200 " in str(
        next_lines("blur.py", monkeypatch, totals=replace(RESULT.totals, rounds=100))[1]
    )
    spent = Outcome.BUDGET_SPENT
    assert " --num-batches 4 " in str(
        next_lines("blur.py -n 2", monkeypatch, totals=replace(RESULT.totals, rounds=2), outcome=spent)[1]
    )
    assert "--num-batches" not in str(
        next_lines("blur.py", monkeypatch, totals=replace(RESULT.totals, rounds=99), outcome=spent)[1]
    )


def test_where_nothing_is_left_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = (replace(TUNED, header=None),)
    assert next_lines("blur.py", monkeypatch, outcome=Outcome.EXHAUSTED, tuned=tuned) == (None, None)


def test_the_help_has_panels_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["autotune", "--help"]) == 0
    text = capsys.readouterr().out
    for word in ("Example: sdk autotune", "How long", "Run folder", "--budget", "--generator-arg-sets"):
        assert word in text


def test_a_run_that_timed_nothing_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = replace(RESULT, outcome=Outcome.BUDGET_SPENT, tuned=(replace(TUNED, header=None, tuned=None),))
    monkeypatch.setattr(command, "_tune", lambda *_: nothing)
    assert main(["autotune", "blur.py", "--quiet"]) == 1
    out, error = capsys.readouterr()
    assert "nothing was timed" in out
    assert "was timed, so there is none to use. See the warnings" in error
    monkeypatch.setattr(command, "_tune", lambda *_: replace(RESULT, outcome=Outcome.BUDGET_SPENT))
    assert main(["autotune", "blur.py", "--quiet"]) == 0
