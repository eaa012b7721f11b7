"""The commands build and retrain, for real."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest

from halide_autotune.autotune_loop.cost_model.training_report import TrainingOutcome, TrainingReport
from halide_autotune.autotune_loop.specification.options import LearnOptions
from halide_autotune.autotune_loop.store.sample_file import Sample, write_sample
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.runner_input_file import write_input_file
from halide_autotune.weights.weights_file import Weights, read_weights
from tests.run_specs import make_record
from tests.unit.autotune_loop.store.test_featurization import random_featurization
from tests.unit.sdk.commands.conftest import Run
from tests.unit.targets.raw_arrays import read_arrays

pytestmark = pytest.mark.toolchain

SMALL = ("-p", "width=128", "-p", "height=64")


def test_build_gives_files_that_run(run: Run, blur: Path, tmp_path: Path) -> None:
    done = run("build", blur, *SMALL, "-o", "out", "-f", "my_blur", "--json")
    assert done.code == 0, done.err
    files = json.loads(done.out)
    assert files.pop("toolchain").startswith("zig ")
    assert (
        {Path(path).name for path in files.values()}
        == {
            "my_blur.o",
            "my_blur.a",
            "my_blur.h",
            "my_blur_benchmark",
        }
        == {path.name for path in (tmp_path / "out").iterdir()}
    )
    assert "my_blur(" in Path(files["header"]).read_text()
    benchmark = [files["benchmark"], "--kernel", "my_blur", "--time", "--max-time-s", "0.01"]
    assert '"repetitions_s"' in subprocess.run(benchmark, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-aarch64 is not installed")
def test_build_for_another_architecture(run: Run, blur: Path) -> None:
    done = run("build", blur, *SMALL, "-t", "arm64", "--schedule", "mullapudi2016", "--json")
    assert done.code == 0, done.err
    benchmark = json.loads(done.out)["benchmark"]
    assert Path(benchmark).read_bytes()[18:20] == b"\xb7\x00", "it is no AArch64 program"
    command = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", benchmark, "--list"]
    assert "separable_filter" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_function_in_a_namespace_and_features_of_the_target(run: Run, blur: Path) -> None:
    """The runner calls the mangled kernel; what ships has no checks, and the kernel that is timed keeps them."""
    features = ("--target-features", "strict_float,no_bounds_query", "--target-features", "no_asserts")
    done = run("build", blur, *SMALL, "-o", "out", "-f", "image::filters::smooth", *features, "--json")
    assert done.code == 0, done.err
    files = json.loads(done.out)
    assert Path(files["header"]).name == "smooth.h" and "namespace filters {" in Path(files["header"]).read_text()
    assert b"_ZN5image7filters6smoothEP15halide_buffer_tS2_" in Path(files["object"]).read_bytes()
    benchmark = [files["benchmark"], "--kernel", "smooth", "--time", "--max-time-s", "0.01"]
    said = subprocess.run(benchmark, capture_output=True, text=True, check=True).stdout
    words = json.loads(said.splitlines()[0])["target"].split("-")
    assert {"strict_float", "c_plus_plus_name_mangling"} <= set(words)
    assert not {"no_asserts", "no_bounds_query"} & set(words)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("no.py",), 1, "no generator file no.py"),
        ((), 2, "No GENERATOR was given"),
        (("BLUR", "-t", "arm65"), 1, "arm65"),
        (("BLUR", "-p", "radius"), 2, "key=value"),
        (("BLUR", "-p", "radius="), 2, "must have a value"),
        (("BLUR", "-p", "radius=9"), 1, "radius is 9; it must be from 1 to 4"),
        (("BLUR", "-p", "colour=3"), 1, "no generator parameter"),
        (("BLUR", "-p", "target=host"), 2, "'target' is set by the SDK"),
        (("BLUR", "--schedule", "no.schedule.h"), 2, "There is no schedule 'no.schedule.h'"),
        (("BLUR", "--schedule", "BLUR"), 1, "has no function `inline void apply_schedule_<name>"),
        (("BLUR", "-f", "a-b"), 2, "cannot be a function's name"),
        (("BLUR", "-f", "a::"), 2, "cannot be a function's name"),
        (("BLUR", "--target-features", "strict_flota"), 2, "is not a feature of a Halide target; the nearest is"),
        (("BLUR:other",), 1, "no generator 'other'"),
        (("BLUR", "--frobnicate"), 2, "frobnicate"),
        (("BLUR", "-o", "/proc/nothing"), 1, "cannot be written"),
    ],
)
def test_a_wrong_build_is_one_message_and_leaves_nothing(
    run: Run, blur: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = run("build", *(argument.replace("BLUR", str(blur)) for argument in arguments))
    assert (done.code, done.out) == (code, "")
    assert words in done.err and done.err.splitlines()[-1]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


_PARTICULAR = """
import halide as hl

x, y = hl.Var("x"), hl.Var("y")


@hl.generator(name="particular")
class Particular(hl.Generator):
    image = hl.InputBuffer(hl.UInt(8), 2)
    gain = hl.InputScalar(hl.Int(32))
    output = hl.OutputBuffer(hl.Int(32), 2)

    def generate(self):
        told = (self.gain == 3) & (self.output.output_buffer().dim(0).extent() == 40)
        self.output[x, y] = hl.require(told, hl.i32(self.image[x, y]) * self.gain, 4242)
        self.image.set_estimates([(0, 64), (0, 32)])
        self.output.set_estimates([(0, 64), (0, 32)])
        self.gain.set_estimate(2)
"""
_AS_TOLD = ("--scalar", "gain=3", "--size", "output=40x20", "--input", "image=image.npy")


def test_bench_calls_kernels_as_it_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "particular.py").write_text(_PARTICULAR)
    numpy.save(tmp_path / "image.npy", numpy.full((20, 40), 7, dtype=numpy.uint8))
    done = run("bench", "particular.py", "--turns", "1")
    assert done.code == 1 and "4242" in done.err
    done = run("bench", "particular.py", "--turns", "1", *_AS_TOLD)
    assert done.code == 0, done.err
    (tmp_path / "sdk.toml").write_text("[autotune]\nscalar = {gain = '3'}\nsize = {output = '40x20'}\n")
    assert run("bench", "particular.py", "--turns", "1").code == 0
    for wrong, words in ((("--size", "moon=3"), "no argument 'moon'"), (("--input", "image=image.py"), "no such")):
        done = run("bench", "particular.py", *wrong)
        assert done.code != 0 and words in done.err
    numpy.save(tmp_path / "image.npy", numpy.zeros((20, 40)))
    done = run("bench", "particular.py", *_AS_TOLD)
    assert done.code == 2 and "holds float64 in 2 dimensions; the input 'image' is uint8" in done.err


def test_raw_inputs_have_the_type_of_their_argument(run: Run, tmp_path: Path) -> None:
    (tmp_path / "particular.py").write_text(_PARTICULAR)
    (tmp_path / "image.raw").write_bytes(bytes([7] * 800))
    told = ("--scalar", "gain=3", "--size", "output=40x20")
    assert run("bench", "particular.py", "--turns", "1", *told, "--input", "image=image.raw:40x20").code == 0
    done = run("build", "particular.py", *told, "--input", "image=image.raw:40x20", "-o", "made", "--json")
    assert done.code == 0, done.err
    assert read_arrays(tmp_path / "made/particular_image.raw")[0].values.tolist() == [[7] * 40] * 20
    done = run("bench", "particular.py", *told, "--input", "image=image.raw:40x21")
    assert done.code == 2 and "image.raw has 800 bytes, but 40x21 elements of uint8 take 840." in done.err
    done = run("bench", "particular.py", *told, "--input", "image=image.raw")
    assert done.code == 2 and "such as image.raw:1920x1080x3" in done.err.replace("\n", " ")


def test_a_benchmark_is_built_for_what_it_is_called_with(run: Run, tmp_path: Path) -> None:
    """Its folder may be moved; what it is called with wins."""
    (tmp_path / "particular.py").write_text(_PARTICULAR)
    numpy.save(tmp_path / "image.npy", numpy.full((20, 40), 7, dtype=numpy.uint8))
    done = run("build", "particular.py", *_AS_TOLD, "-o", "made", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["inputs"] == ["made/particular_image.raw"]
    (tmp_path / "made").rename(tmp_path / "moved")
    program = [str(tmp_path / "moved/particular_benchmark"), "--kernel", "particular"]
    subprocess.run([*program, "--write-reference", "out"], capture_output=True, check=True)
    assert read_arrays(tmp_path / "out")[0].values.tolist() == [[21] * 40] * 20
    other = subprocess.run([*program, "--scalar", "gain=4"], capture_output=True, text=True, check=False)
    assert other.returncode == 3 and "4242" in other.stdout
    sized = [*program, "--size", "image=44x22"]
    subprocess.run([*sized, "--write-reference", "out"], capture_output=True, check=True)
    assert len(set(read_arrays(tmp_path / "out")[0].values.flat)) > 1, "the data are random, not the file's"
    other = subprocess.run([*sized, "--input", "image=any"], capture_output=True, text=True, check=False)
    assert other.returncode == 2 and "takes its size from its file: remove --size" in other.stdout


def test_a_benchmark_that_is_built_for_a_size_takes_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "particular.py").write_text(_PARTICULAR)
    write_input_file(numpy.full((20, 40), 7, dtype=numpy.uint8), tmp_path / "image.raw")
    sizes = ("--scalar", "gain=3", "--size", "output=40x20", "--size", "image=64x32")
    done = run("build", "particular.py", *sizes, "-o", "made")
    assert done.code == 0, done.err
    program = [str(tmp_path / "made/particular_benchmark"), "--kernel", "particular"]
    given = ["--input", f"image={tmp_path}/image.raw"]
    subprocess.run([*program, *given, "--write-reference", "out"], capture_output=True, check=True)
    assert read_arrays(tmp_path / "out")[0].values.tolist() == [[21] * 40] * 20


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--size", "imag=3x4"), "--size imag=3x4: the generator has no argument 'imag'; the nearest is 'image'."),
        (("--scalar", "image=3"), "image is a buffer of 2 dimensions. Write it as --size image=64x32."),
        (("--size", "gain=3x3"), "gain is a scalar. Write it as --scalar gain=2."),
        (("--input", "imag=there.npy"), "there.npy: the generator has no argument 'imag'; the nearest is 'image'."),
        (("--input", "image=image.npy"), "image.npy: there is no such file."),
    ],
)
def test_a_benchmark_is_not_built_for_unknown_arguments(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "particular.py").write_text(_PARTICULAR)
    numpy.save(tmp_path / "there.npy", numpy.zeros((32, 64), dtype=numpy.uint8))
    done = run("build", "particular.py", *arguments, "-o", "made")
    assert (done.code, done.out) == (2, "") and words in done.err
    assert not (tmp_path / "made").exists() or not list((tmp_path / "made").iterdir())


@pytest.fixture(scope="module")
def recorded_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with made-up samples of one pipeline."""
    folder = tmp_path_factory.mktemp("recorded")
    make_record(devices=("qemu",), clock="emulated").write(folder)
    pipeline = random_featurization(seed=0).pipeline_features
    for index in range(20):
        features = random_featurization(seed=index)
        made = type(features)(features.schedule_features, pipeline)
        (folder / f"samples/batch_0_0/{index}").mkdir(parents=True)
        write_sample(Sample(made, 1.0 + index, 7, index), folder / f"samples/batch_0_0/{index}/blur.sample")
    return folder


def test_retrain_writes_weights_or_says_why_not(recorded_run: Path, settings: Settings, tmp_path: Path) -> None:
    output = tmp_path / "new.weights"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "halide_autotune.sdk.main",
            "retrain",
            recorded_run,
            "-o",
            output,
            "--epochs",
            "3",
            "--json",
        ],
        env=dict(settings.environment),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["written"] else 1), done.stderr
    assert output.exists() == bool(report["written"])
    if report["written"]:
        read_weights(output)


def test_a_guessed_number_of_cores_is_told(
    run: Run, recorded_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores: list[int] = []

    def train(
        start: Weights, samples: Sequence[Sample], learn: LearnOptions, num_cores: int, seed: int
    ) -> TrainingReport:
        cores.append(num_cores)
        assert len(samples) == 19
        return TrainingReport(TrainingOutcome.TOO_FEW_SAMPLES, "too few", None, (), None, None, "", 0, 0, 0, 0.0)

    monkeypatch.setattr("halide_autotune.sdk.api.weights.retrain.train", train)
    monkeypatch.setattr("halide_autotune.sdk.api.weights.retrain.export_variables", lambda variables: None)
    folder = Path(shutil.copytree(recorded_run, tmp_path / "run"))
    (folder / "run.toml").unlink()
    (torn := next(folder.rglob("*.sample"))).write_bytes(b"short")
    command = ("retrain", folder, "-o", "new.weights", "--target", "arm64")
    guess = "The samples do not say how many cores they were timed on"
    left_out = f"Left out: The sample {torn} is damaged"
    first, second = json.loads(run(*command, "--json").out)["notices"]
    assert first.startswith(left_out) and second.startswith(guess)
    assert "4, as in profile arm64" in second and "--parallelism" in second
    said = run(*command).err
    assert f"note: {left_out}" in said and f"note: {guess}" in said
    assert guess not in run(*command, "--parallelism", "2").err
    assert cores == [4, 4, 2]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("RUN", "-o", "x.txt"), 2, "must end in .weights"),
        (("RUN", "-o", "mine.weights"), 2, "would replace mine.toml"),
        (("RUN", "-o", "x.weights", "--loss", "mean"), 2, "--loss must be one of"),
        (("RUN", "-o", "x.weights", "-t", "host"), 1, "is a run for profile arm64, not host"),
        (("RUN", "-o", "x.weights", "-w", "no.weights"), 1, "no.weights"),
        (("nowhere", "-o", "x.weights"), 1, "nowhere has no .sample files"),
        (("RUN", "-o", "x.weights", "--epochs", "0"), 2, "epochs"),
        (("RUN", "-o", "x.weights", "--parallelism", "0"), 2, "parallelism"),
        (("RUN", "-o", "x.weights", "--parallelism", "-2"), 2, "parallelism"),
        (("RUN", "-o", "x.weights", "--held-out-share", "1.5"), 2, "held-out-share"),
        (("RUN", "-o", "x.weights", "--learning-rate", "-1"), 2, "--learning-rate must be"),
        (("RUN", "-o", "x.weights", "--learning-rate", "nan"), 2, "--learning-rate must be"),
        (("-o", "x.weights"), 2, "RUN"),
    ],
)
def test_a_wrong_retrain_is_one_message(
    run: Run, recorded_run: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (tmp_path / "mine.toml").write_text("mine = true\n")
    done = run("retrain", *(argument.replace("RUN", str(recorded_run)) for argument in arguments))
    assert (done.code, done.out) == (code, ""), done
    assert words in done.err
    assert not list(tmp_path.glob("*.weights"))
