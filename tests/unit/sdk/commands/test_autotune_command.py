"""`sdk autotune`: its options and its complaints. No tuning here."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy
import pytest

from halide_autotune.autotune_loop.farm.fair_share import RunPriority
from halide_autotune.autotune_loop.specification.measure_options import MeasureOptions
from halide_autotune.autotune_loop.specification.objective import Objective, ObjectiveKind
from halide_autotune.autotune_loop.specification.options import (
    DeviceOptions,
    FarmOptions,
    LearnOptions,
    Limits,
    RunOptions,
    SearchOptions,
)
from halide_autotune.autotune_loop.specification.play_off_options import PlayOffOptions
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.commands.autotune import autotune as command
from halide_autotune.sdk.main import main
from halide_autotune.sdk.options.autotune_options import CommandOptions, given_generators, run_options
from halide_autotune.sdk.options.generator_spec import GeneratorSpec
from halide_autotune.sdk.project.file import Project, find_project
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.toolchain.cpp_build import CppBuild

pytestmark = pytest.mark.usefixtures("folder")


def typed(arguments: str, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, object], CommandOptions]:
    """What the command makes of a command line."""
    seen: list[tuple[dict[str, object], CommandOptions]] = []
    monkeypatch.setattr(command, "_run", lambda *asked: seen.append(asked))
    assert main(["autotune", *shlex.split(arguments)]) == 0
    return seen[0]


def options_for(arguments: str, monkeypatch: pytest.MonkeyPatch, project: Project | None = None) -> RunOptions:
    return run_options(typed(arguments, monkeypatch)[0], project or Project(folder=Path.cwd()))


def generators_for(arguments: str, monkeypatch: pytest.MonkeyPatch, project: Project) -> tuple[GeneratorSpec, ...]:
    return given_generators(typed(arguments, monkeypatch)[0], project)


def test_nothing_but_a_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    values, asked = typed("blur.py", monkeypatch)
    assert (values, asked) == ({"generator": ("blur.py",)}, CommandOptions())
    assert given_generators(values, Project(folder=Path.cwd())) == (GeneratorSpec("blur.py"),)
    assert run_options(values, Project(folder=Path.cwd())) == RunOptions()


def test_every_option(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "now.h").write_text("")
    numpy.save(folder / "photo.npy", numpy.zeros((4, 6), numpy.uint8))
    values, asked = typed(
        "blur.py:blur -t arm64 -p radius=3 -p tiles=true --generator-arg-sets 'a=1;b=2 a=3' -f tuned_blur"
        " --size in=64x48 --size out=60x44 --scalar gain=-1.5 --scalar on=true --input image=photo.npy"
        " --input-seed 5 -r pi -r label:lab --inventory lab.toml --device-patience 1h --quiet-patience 20s"
        " --hexagon-sdk-root sdks/4.5"
        " --incumbent tuned_blur=now.h --objective weighted --device-weight pi=2 --play-off-turns 20"
        " --worst-tolerance 0.01 --parallelism 4 -n 7 -s 16 --budget 10m -b runs/here --seed 9"
        " -w mine.weights --loss rank --epochs 20 --learning-rate 0.01 --pool-factor 3 --random-share 0.5"
        " --diversity 0 -j 3 --search-limit 30 --full-search-limit 2m --memory-limit 4G --held-out-share 0.1"
        " --scheduler tls://lab --farm-certificates farm --priority high --json --quiet",
        monkeypatch,
    )
    assert asked == CommandOptions(run_folder=Path("runs/here"), as_json=True, quiet=True)
    assert given_generators(values, Project(folder=folder)) == (
        GeneratorSpec(
            "blur.py:blur", ("radius=3", "tiles=true"), (("a=1", "b=2"), ("a=3",)), function_name="tuned_blur"
        ),
    )
    assert run_options(values, Project(folder=folder)) == RunOptions(
        DeviceOptions("arm64", ("pi", "label:lab"), Path("lab.toml"), None, Path("sdks/4.5"), 4),
        FarmOptions("tls://lab", Path("farm"), RunPriority.HIGH),
        KernelInputs(5, {"in": "64x48", "out": "60x44"}, {"gain": "-1.5", "on": "true"}, {"image": Path("photo.npy")}),
        MeasureOptions(patience_s=3600.0, quiet_patience_s=20.0),
        Limits(7, 600.0, 3, 30.0, 120.0, 4 * 2**30),
        SearchOptions(batch_size=16, pool_factor=3.0, random_share=0.5, diversity=0.0, seed=9),
        LearnOptions("mine.weights", "rank", 20, 0.01, 0.1),
        PlayOffOptions(Objective(ObjectiveKind.WEIGHTED, {"pi": 2.0}, 0.01), 20, {"tuned_blur": Path("now.h")}),
    )


def test_long_names(monkeypatch: pytest.MonkeyPatch) -> None:
    short = typed("g.py -t x -p a=1 -f n -r qemu -n 2 -s 3 -b d -w w -j 1 -q", monkeypatch)
    long = typed(
        "g.py --target x --parameter a=1 --function-name n --device qemu --num-batches 2 --batch-size 3"
        " --run-dir d --weights w --jobs 1 --quiet",
        monkeypatch,
    )
    assert short == long
    assert typed("--plain", monkeypatch)[1].plain
    assert typed("--resume", monkeypatch)[1].resume


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--budget soon", "--budget: 'soon' is not a duration. Write it as 90s, 10m or 1.5h."),
        ("--budget 0s", "--budget: '0s' is not a duration."),
        ("--search-limit 1d", "--search-limit: '1d' is not a duration."),
        ("--full-search-limit ''", "--full-search-limit: '' is not a duration."),
        ("--memory-limit lots", "--memory-limit: 'lots' is not an amount of memory. Write it as 4G or 512M."),
        ("--objective best", "--objective must be one of mean, worst, weighted, not 'best'."),
        ("--device-weight pi", "--device-weight 'pi' is not of the form NAME=NUMBER, such as pi5=2."),
        ("--device-weight pi=0", "--device-weight 'pi=0' is not of the form NAME=NUMBER"),
        ("--device-weight pi=1 --objective worst", "--device-weight requires --objective weighted, not worst."),
        ("--worst-tolerance 1", "--worst-tolerance must be a share from 0 to below 1, not 1.0."),
        ("--incumbent no.h", "--incumbent: there is no file no.h."),
        ("--play-off-turns 7", "--play-off-turns must be an integer of at least 8, not 7."),
        ("-s 1", "--batch-size must be an integer from 2 to 1000, not 1."),
        ("-n 0", "--num-batches must be an integer of at least 1, not 0."),
        ("-n many", "Invalid value for '--num-batches' / '-n': "),
        ("--epochs 0", "--epochs must be an integer from 1 to 1000000, not 0."),
        ("--parallelism 0", "--parallelism must be an integer of at least 1, not 0."),
        ("-j 0", "--jobs must be an integer of at least 1, not 0."),
        ("--loss square", "--loss must be one of relative_throughput, rank, not 'square'."),
        ("--learning-rate 0", "--learning-rate must be a number above 0 and at most 1, not 0.0."),
        ("--learning-rate nan", "--learning-rate must be a number of at most 1, not nan."),
        ("--pool-factor 0.5", "--pool-factor must be a number from 1 to 100, not 0.5."),
        ("--pool-factor inf", "--pool-factor must be a number from 1 to 100, not inf."),
        ("--random-share 1.5", "--random-share must be a number from 0 to 1, not 1.5."),
        ("--diversity nan", "--diversity must be a number from 0 to 1000000, not nan."),
        ("--seed -1", "--seed must be an integer from 0 to 2147483647, not -1."),
        ("--input-seed 9223372036854775808", "--input-seed must be an integer from 0 to 9223372036854775807"),
        ("-p radius", "Generator parameter 'radius' must have the form key=value, such as -p radius=3."),
        ("-p target=host", "Generator parameter 'target' is set by the SDK."),
        ("-f 3d", "'3d' cannot be a function's name."),
        ("--generator-arg-sets ''", "--generator-arg-sets '' has an empty set."),
        ("--generator-arg-sets 'a=1 ;'", "--generator-arg-sets 'a=1 ;' has an empty set."),
        ("--generator-arg-sets 'a=1 b'", "--generator-arg-sets: Generator parameter 'b' must have the form"),
        ("--generator-arg-sets 'a=1;a=2'", "--generator-arg-sets: the set 'a=1;a=2' names a parameter twice."),
        ("--generator-arg-sets 'a=1 a=1'", "--generator-arg-sets: the set 'a=1' is there twice."),
        ("--tune tile", "--tune 'tile' must have the form name=values. Write a range such as 16..512:x2"),
        ("--tune tile=64..8:x2", "--tune tile=64..8:x2 is empty: 64 is above 8. Put the lower end first."),
        ("--tune tile=8,16 --tune tile=1,2", "--tune gives the parameter tile twice."),
        ("-r qemu -r local", "--device qemu cannot be combined with another device: their times do not compare."),
        ("-r pluto", "There is no device 'pluto'"),
        ("--device-patience long", "--device-patience: 'long' is not a duration."),
        ("--size in=", "--size 'in=' is not of the form NAME=VALUE. Write it as, for example, --size input=1920x1080."),
        ("--size in=axb", "--size in=axb: 'axb' is not a size. Write it as 1920x1080"),
        ("--size in=4x4 --size in=5x5", "--size names in twice."),
        ("--scalar gain", "--scalar 'gain' is not of the form NAME=VALUE."),
        ("--scalar gain=much", "--scalar gain=much: 'much' is not a value. Write a number, or true or false."),
        ("--input photo.npy", "--input 'photo.npy' is not of the form NAME=VALUE."),
        ("--input in=gone.npy", "--input in=gone.npy: there is no such file."),
        ("--input in=blur.py --size in=4x4", "--input in takes its size from its file: leave out --size in."),
        ("--resume --run-dir gone", "--resume: gone is not a run folder: it has no run.toml."),
        ("-v --quiet", "--verbose and --quiet exclude each other. Leave one of them out."),
        ("--plain --json", "--plain and --json exclude each other. Leave one of them out."),
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
    project, blur = find_project(folder), (GeneratorSpec("source/blur.py:blur"),)
    options = options_for("", monkeypatch, project)
    assert (options.devices.target, options.limits.budget_s) == ("arm64", 120.0)
    assert generators_for("", monkeypatch, project) == blur
    options = options_for("blur -t host --budget 5s", monkeypatch, project)
    assert (options.devices.target, options.limits.budget_s) == ("host", 5.0)
    assert generators_for("blur", monkeypatch, project) == blur
    assert options_for("-r pi", monkeypatch, project).devices.target is None, "devices that are named have a target"
    monkeypatch.chdir(below)
    project = find_project(below)
    assert generators_for("other.py", monkeypatch, project) == (GeneratorSpec("other.py"),)
    assert options_for("other.py", monkeypatch, project).devices.target == "arm64"


def test_the_project_has_defaults_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "sdk.toml").write_text(
        'budget = "2m"\n[autotune]\nbudget = "5m"\nbatch_size = 8\nmemory_limit = "2G"\ndevice_weight = {pi = 2}\n'
    )
    options = options_for("blur.py -s 4", monkeypatch, find_project(folder))
    assert (options.limits.budget_s, options.search.batch_size) == (300.0, 4)
    assert options.limits.memory_limit_bytes == 2 * 2**30
    assert options.play_off.objective == Objective(ObjectiveKind.WEIGHTED, {"pi": 2.0})
    for wrong, words in (
        ("batch_sise = 8", "unknown key 'batch_sise' in [autotune]; the nearest is 'batch_size'"),
        ("batch_size = 1", "batch_size must be an integer from 2 to 1000, not 1."),
        ('budget = "soon"', "budget: 'soon' is not a duration."),
        ("resume = true", "unknown key 'resume'"),
    ):
        (folder / "sdk.toml").write_text(f"[autotune]\n{wrong}\n")
        monkeypatch.undo()
        monkeypatch.chdir(folder)
        assert main(["autotune", "blur.py"]) == 2
        assert f"{folder}/sdk.toml: {words}" in capsys.readouterr().err


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
    project = find_project(folder)
    blur = GeneratorSpec("source/blur.py:blur", ("radius=2", "tiles=1"), incumbent=folder / "now.h")
    sharpen = GeneratorSpec("sharpen.cpp", ("tiles=1",), (("a=1",), ("a=2",)), "fast_sharpen")
    assert generators_for("-p tiles=1", monkeypatch, project) == (blur, sharpen)
    assert generators_for("blur other.py -p tiles=1", monkeypatch, project) == (
        blur,
        GeneratorSpec("other.py", ("tiles=1",)),
    )
    with pytest.raises(UsageError, match="--function-name cannot be given to several generators"):
        generators_for("blur other.py -f name", monkeypatch, project)


def test_how_a_generator_is_built_is_typed_or_in_the_projects_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "include").mkdir()
    (folder / "stage.cpp").write_text("")
    typed_build = CppBuild(
        (Path("stage.cpp"),), (Path("include"),), ("A", "B=2"), ("-std=c++20",), ("png",), ("libtiff-4",)
    )
    arguments = (
        "blur.cpp --source stage.cpp --include include --define A --define B=2 --cxxflag=-std=c++20 --library png"
        " --pkg-config libtiff-4"
    )
    assert generators_for(arguments, monkeypatch, Project(folder=folder)) == (
        GeneratorSpec("blur.cpp", build=typed_build),
    )
    listed = 'generator = "blur.cpp"\nbuild = {sources = ["stage.cpp"], definitions = ["A"]}\n'
    (folder / "sdk.toml").write_text(f"[[generators]]\nname = 'blur'\n{listed}")
    (spec,) = generators_for("blur --define C", monkeypatch, find_project(folder))
    assert spec.build == CppBuild(sources=(folder / "stage.cpp",), definitions=("C",))


def test_what_is_tuned_is_typed_or_in_the_projects_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = GeneratorSpec("blur.py", tune={"x": "8..64:x2", "order": "a,b"}, restrict=("x > 8",), search_too=True)
    arguments = "blur.py --tune x=8..64:x2 --tune order=a,b --restrict 'x > 8' --search-too"
    assert generators_for(arguments, monkeypatch, Project(folder=folder)) == (typed,)
    (folder / "sdk.toml").write_text(
        "[[generators]]\nname = 'blur'\ngenerator = 'blur.py'\n"
        "tune = { x = '8..64:x2', vector = [8, 16], fuse = [true, false] }\nrestrict = ['x > 8']\n"
    )
    (spec,) = generators_for("blur", monkeypatch, find_project(folder))
    assert spec.tune == {"x": "8..64:x2", "vector": "8,16", "fuse": "true,false"} and spec.restrict == ("x > 8",)
    (spec,) = generators_for("blur --tune x=1,2", monkeypatch, find_project(folder))
    assert spec.tune == {"x": "1,2"} and spec.restrict == ("x > 8",)
    with pytest.raises(UsageError, match="--tune cannot be given to several generators"):
        generators_for("blur other.py --tune x=1,2", monkeypatch, find_project(folder))


def test_a_bad_budget_of_the_project_names_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sdk.toml").write_text('budget = "long"')
    assert main(["autotune", "blur.py"]) == 2
    assert f"{folder}/sdk.toml: budget: 'long' is not a duration." in capsys.readouterr().err


def test_the_help_has_panels_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["autotune", "--help"]) == 0
    text = capsys.readouterr().out
    for word in ("Example: sdk autotune", "How long", "Run folder", "--budget", "--generator-arg-sets"):
        assert word in text
