"""`sdk bench`, for real."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.sdk.commands.conftest import Run

pytestmark = pytest.mark.toolchain

SMALL = ("-p", "width=128", "-p", "height=64")
LARGER = ("-p", "width=512", "-p", "height=256")


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


def test_bench_tells_what_each_func_takes(run: Run, blur: Path) -> None:
    schedules = ("--schedule", "own", "--schedule", "mullapudi2016")
    done = run("bench", blur, *LARGER, *schedules, "--by-func", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert [one["schedule"] for one in told] == ["own", "mullapudi2016"]
    for one in told:
        times = one["times"]
        assert one["failure"] is None and times["call_s"] > 0 and times["looks"] > 0
        assert sum(func["time_s"] for func in times["funcs"]) == pytest.approx(times["call_s"])
        assert "output" in {func["name"] for func in times["funcs"]}
    done = run("bench", blur, *LARGER, *schedules, "--by-func")
    rows = [line.split() for line in done.out.splitlines()]
    assert done.code == 0 and ["Func", "own", "mullapudi2016"] in rows
    assert next(row for row in rows if row[:1] == ["all"])[2:3] == ["100"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--play-off",), 2, "--by-func and --play-off do not go together"),
        (
            ("-t", "arm64", "--device", "qemu"),
            2,
            "Halide's profiler needs a real device's clock, and qemu has simulated",
        ),
        (("--schedule", "nowhere.h"), 2, "nowhere.h"),
    ],
)
def test_what_has_no_times_of_funcs_is_one_message(
    run: Run, blur: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = run("bench", blur, *SMALL, "--by-func", *arguments)
    assert (done.code, done.out) == (code, "") and words in done.err.replace("\n", " ")


def test_the_funcs_of_the_other_schedules_are_told_where_one_does_not_compile(run: Run, tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(_HALF_SCHEDULED)
    done = run("bench", "half.py", "--schedule", "own", "--schedule", "li2018", "--by-func")
    assert done.code == 1 and "li2018" in done.out and "constant extent" in done.err
