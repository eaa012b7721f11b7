"""The commands build, bench and retrain, for real."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
import pytest

import sdk.main
from autotune_loop.cost_model.training_report import TrainingOutcome, TrainingReport
from autotune_loop.specification.options import LearnOptions
from autotune_loop.store.sample_file import Sample, write_sample
from sdk.settings import Settings
from tests.run_specs import make_record
from tests.unit.autotune_loop.store.test_featurization import random_featurization
from tests.unit.targets.raw_arrays import read_arrays
from weights.weights_file import Weights, read_weights

pytestmark = pytest.mark.toolchain

SMALL = ("-p", "width=128", "-p", "height=64")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in an empty folder, with the session's cache."""
    monkeypatch.setenv("SDK_CACHE_DIR", str(settings.cache_folder))
    monkeypatch.setenv("SDK_CONFIG_DIR", str(settings.config_folder))
    monkeypatch.chdir(tmp_path)

    def get(*arguments: str | Path) -> Done:
        capfd.readouterr()
        code = sdk.main.main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        assert "Traceback" not in said.err
        return Done(code, said.out, said.err)

    return get


@pytest.fixture
def blur(examples: Path) -> Path:
    return examples / "separable_filter.py"


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


def test_bench_times_schedules_side_by_side(run: Run, blur: Path) -> None:
    done = run("bench", blur, *SMALL, "--schedule", "own", "--schedule", "adams2019", "--turns", "2", "--json")
    assert done.code == 0, done.err
    own, adams = json.loads(done.out)
    assert (own["schedule"], adams["schedule"]) == ("own", "adams2019")
    for result in (own, adams):
        assert result["failure"] is None and result["clock"] == "wall" and len(result["turns_s"]) == 2
        assert result["output_compared_with"] and 0 < result["minimum_ms"] <= result["median_ms"]


def test_bench_prints_a_table(run: Run, blur: Path) -> None:
    done = run("bench", blur, *SMALL, "--turns", "1")
    assert done.code == 0, done.err
    assert "median ms" in done.out and "own" in done.out and "1.00×" in done.out


_HALF_SCHEDULED = """
import halide as hl

x, y = hl.Var("x"), hl.Var("y")


@hl.generator(name="half")
class Half(hl.Generator):
    image = hl.InputBuffer(hl.UInt(8), 2)
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self):
        self.output[x, y] = self.image[x, y] // 2
        self.image.set_estimates([(0, 64), (0, 32)])
        self.output.set_estimates([(0, 64), (0, 32)])
        if not self.using_autoscheduler():
            self.output.unroll(x)
"""


def test_bench_times_the_others_where_one_schedule_does_not_compile(run: Run, tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(_HALF_SCHEDULED)
    done = run("bench", "half.py", "--schedule", "own", "--schedule", "li2018", "--turns", "1", "--json")
    assert done.code == 1
    own, other = json.loads(done.out)
    assert "constant extent" in own["failure"] and own["median_ms"] is None
    assert other["failure"] is None and other["median_ms"] > 0
    done = run("bench", "half.py", "--turns", "1")
    assert done.code == 1 and done.out == "" and "constant extent" in done.err, "there is nothing to time"


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
    for wrong, words in ((("--size", "moon=3"), "no buffer of that name"), (("--input", "image=image.py"), "no such")):
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--size", "imag=3x4"), "--size imag: particular has no buffer of that name. Its buffers are: image, output."),
        (("--scalar", "image=3"), "--scalar image: particular has no scalar of that name. Its scalars are: gain."),
        (("--input", "image=image.npy"), "image.npy: there is no such file."),
    ],
)
def test_a_benchmark_is_not_built_for_unknown_arguments(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "particular.py").write_text(_PARTICULAR)
    done = run("build", "particular.py", *arguments, "-o", "made")
    assert (done.code, done.out) == (2, "") and words in done.err
    assert not (tmp_path / "made").exists() or not list((tmp_path / "made").iterdir())


_STRIPS = """
import halide as hl

x, y, xi, yi = (hl.Var(name) for name in ("x", "y", "xi", "yi"))


@hl.generator(name="strips")
class Strips(hl.Generator):
    whole_strips = hl.GeneratorParam("fewer")
    strip = hl.GeneratorParam(8)
    width = hl.GeneratorParam(260)
    image = hl.InputBuffer(hl.UInt(16), 2)
    output = hl.OutputBuffer(hl.UInt(16), 2)

    def generate(self):
        rows = hl.Func("rows")
        clamped = hl.BoundaryConditions.repeat_edge(self.image)
        rows[x, y] = clamped[x - 1, y] + 2 * clamped[x, y] + clamped[x + 1, y]
        self.output[x, y] = rows[x, y - 1] + 2 * rows[x, y] + rows[x, y + 1]
        for buffer in (self.image, self.output):
            buffer.set_estimates([(0, self.width), (0, 100)])
        if self.using_autoscheduler():
            return
        if self.whole_strips == "fewer":
            width, height = (self.output.output_buffer().dim(d).extent() for d in (0, 1))
            self.output.bound(x, 0, width // 32 * 32).bound(y, 0, height // self.strip * self.strip)
        else:
            self.output.align_bounds(x, 32).align_bounds(y, self.strip)
        self.output.tile(x, y, xi, yi, 32, self.strip).vectorize(xi, 8)
        rows.compute_at(self.output, x).vectorize(x, 8)
"""


@pytest.mark.parametrize(
    ("strips", "computed", "common"), [("fewer", "256x96", "256x96"), ("more", "288x104", "260x100")]
)
def test_bench_compares_what_both_compute(run: Run, tmp_path: Path, strips: str, computed: str, common: str) -> None:
    """As in Halide's camera_pipe, the generator's own schedule computes whole strips only."""
    (tmp_path / "strips.py").write_text(_STRIPS)
    command = ("bench", "strips.py", "-p", f"whole_strips={strips}", "--schedule", "own", "--schedule", "adams2019")
    done = run(*command, "--turns", "1", "--json")
    assert done.code == 0, done.err
    own, adams = json.loads(done.out)
    assert own["output_compared_with"] and own["failure"] is None and adams["reshaped"] == []
    shapes = {"computed": computed, "reference": "260x100", "common": common}
    assert own["reshaped"] == [{"name": "output", **shapes}]
    done = run(*command, "--play-off")
    said = f"own computes {computed} of output, and the reference 260x100: its time is for that"
    assert done.code == 0 and said in done.out and "adams2019 computes" not in done.out


def test_bench_says_why_outputs_cannot_be_compared(run: Run, tmp_path: Path) -> None:
    (tmp_path / "strips.py").write_text(_STRIPS)
    done = run("bench", "strips.py", "-p", "strip=64", "-p", "whole_strips=fewer", "--turns", "1")
    assert done.code == 0 and "own computes 256x64 of output" in done.out
    done = run("bench", "strips.py", "-p", "strip=64", "-p", "width=60", "--turns", "1")
    assert done.code == 1
    assert "cannot be compared: the kernel computes 32x64, the reference 60x100, and 50 % of each" in done.err


@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-aarch64 is not installed")
def test_bench_takes_the_clock_that_is_asked_for(run: Run, blur: Path) -> None:
    for asked, clock in (((), "simulated"), (("--clock", "emulated"), "emulated")):
        done = run("bench", blur, *SMALL, "-t", "arm64", "--turns", "1", "--json", *asked)
        assert done.code == 0, done.err
        assert [result["clock"] for result in json.loads(done.out)] == [clock]


def test_a_play_off_of_headers_decides_and_says_why(run: Run, blur: Path) -> None:
    schedules = ("--schedule", "own", "--schedule", "adams2019", "--schedule", "mullapudi2016")
    done = run("bench", blur, *SMALL, *schedules, "--play-off", "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    verdict = result["verdict"]
    assert verdict["baseline"] == "own" and verdict["challenger"] in ("adams2019", "mullapudi2016")
    assert verdict["winner"] in (verdict["challenger"], "own") and verdict["turns"] >= 8 and result["clock"] == "wall"
    assert (verdict["winner"] == "own") == (verdict["reason"] != "faster")
    decided = [c for c in result["contenders"] if c["schedule"] in (verdict["challenger"], "own")]
    for contender in decided:
        times = contender["times"]["local"]
        assert len(times["turns_s"]) == verdict["turns"] and contender["failure"] is None
        assert times["range_ms"][0] <= times["median_ms"] <= times["range_ms"][1]


def test_a_play_off_without_time_is_unconfirmed(run: Run, blur: Path) -> None:
    done = run("bench", blur, *SMALL, "--schedule", "own", "--schedule", "adams2019", "--play-off", "--budget", "0.1s")
    assert done.code == 1 and "Unconfirmed: there was no time left" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--turns", "0"), 2, "turns"),
        (("--play-off",), 2, "A play-off needs at least two schedules"),
        (("--play-off", "--schedule", "own", "--schedule", "own", "--device-weight", "pi=2"), 2, "names pi, which is"),
        (("--parallelism", "0"), 2, "--parallelism must be"),
        (("--device", "moon"), 2, "There is no device 'moon'"),
        (("--clock", "emulated"), 2, "--clock is for this machine's emulator only, and local is another"),
        (("-t", "arm64", "--device", "qemu", "--clock", "sundial"), 2, "There is no clock 'sundial'"),
        (("-t", "cuda-sm80", "--device", "qemu"), 2, "QEMU cannot run code of profile cuda-sm80"),
        (("-t", "arm64", "--device", "local"), 1, "cannot run arm-64 code"),
    ],
)
def test_a_wrong_bench_is_one_message(run: Run, blur: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = run("bench", blur, *arguments)
    assert (done.code, done.out) == (code, "") and words in done.err


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
        [sys.executable, "-m", "sdk.main", "retrain", recorded_run, "-o", output, "--epochs", "3", "--json"],
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

    monkeypatch.setattr("sdk.api.retrain.train", train)
    monkeypatch.setattr("sdk.api.retrain.export_variables", lambda variables: None)
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
    done = run("retrain", *(argument.replace("RUN", str(recorded_run)) for argument in arguments))
    assert (done.code, done.out) == (code, ""), done
    assert words in done.err
    assert not list(tmp_path.glob("*.weights"))
