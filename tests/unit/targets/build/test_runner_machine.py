"""What the runner reports of the machine: from made-up files of the kernel, and from the real ones."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.targets.build.executable import RUNNER_DIR
from halide_autotune.targets.halide_install import HalideInstall
from tests.unit.targets.conftest import Runner

pytestmark = pytest.mark.toolchain

FEW = "--warm-up-s 0 --min-repetition-s 0 --max-repetitions 6 --max-time-s 99".split()
KEYS = {
    "event",
    "duration_s",
    "cores",
    "busy_s",
    "own_s",
    "stolen_s",
    "waiting_s",
    "has_priority",
    "hz",
    "max_hz",
    "hottest_c",
}
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
USABLE = sorted(os.sched_getaffinity(0))
# None is usable where this is tested.
ELSEWHERE = 1023


@pytest.fixture(scope="module")
def program(halide: HalideInstall, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("machine") / "machine"
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-O1"]
    roots = ['-DPROC_ROOT="now/proc"', '-DSYS_ROOT="now/sys"', f"-I{RUNNER_DIR}", f"-I{halide.include_dir}"]
    names = ("machine.c", "neighbours.c", "priority.c", "usable_cores.c", "output.c")
    sources = [str(RUNNER_DIR / name) for name in names]
    here = str(Path(__file__).with_name("scripted_machine.c"))
    subprocess.run(["gcc", *flags, *roots, here, *sources, "-lm", "-o", str(program)], check=True)
    return program


class Moment:
    """The files of a made-up kernel at one moment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._write("proc/stat", "")

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def cores(self, ticks: dict[int, tuple[int, int]]) -> None:
        """Of every core the ticks that it was busy, and those that were stolen from it."""
        lines = [f"cpu{core} {busy} 0 0 5000 70 0 0 {stolen} 0 0\n" for core, (busy, stolen) in ticks.items()]
        # The first line adds them up, and looks like that of a core with a high number.
        self._write("proc/stat", f"cpu  {USABLE[0]} 7 7 7 7 7 7 7 7 7\n" + "".join(lines) + "intr 5 6\n")

    def pressure(self, waiting_us: int) -> None:
        self._write(
            "proc/pressure/cpu", f"some avg10=1.00 avg60=1.00 avg300=1.00 total={waiting_us}\nfull avg10=0.00\n"
        )

    def process(self, pid: int, parent: int, ticks: int, name: str = "cc1plus", core: int = USABLE[0]) -> None:
        fields = f"{parent} 1 1 0 -1 4194304 0 0 0 0 {ticks} 0 0 0 20 0 1 0 100 9000000 300 {2**64 - 1}"
        self._write(f"proc/{pid}/stat", f"{pid} ({name}) R {fields} {'0 ' * 12}17 {core} 0 0\n")

    def clock(self, hz: float, max_hz: float, **temperatures: str) -> None:
        for core in USABLE:
            folder = f"sys/devices/system/cpu/cpu{core}/cpufreq"
            self._write(f"{folder}/scaling_cur_freq", f"{hz / 1e3:.0f}\n")
            self._write(f"{folder}/cpuinfo_max_freq", f"{max_hz / 1e3:.0f}\n")
        for zone, text in temperatures.items():
            self._write(f"sys/class/thermal/thermal_{zone}/temp", text)


@pytest.fixture
def moments(tmp_path: Path) -> tuple[Moment, Moment]:
    return Moment(tmp_path / "before"), Moment(tmp_path / "after")


def report(program: Path, mode: str, folder: Path) -> dict[str, dict[str, Any]]:
    done = subprocess.run([str(program), mode], cwd=folder, check=True, capture_output=True, text=True)
    return {event["event"]: event for event in map(json.loads, done.stdout.splitlines())}


def test_the_usable_cores_are_added_up(program: Path, moments: tuple[Moment, Moment], tmp_path: Path) -> None:
    before, after = moments
    before.cores(dict.fromkeys([*USABLE, ELSEWHERE], (100, 10)))
    after.cores({**dict.fromkeys(USABLE, (150, 30)), ELSEWHERE: (9000, 9000)})
    before.pressure(1_000_000)
    after.pressure(1_250_000)
    after.clock(2.0e9, 2.0e9, zone0="95000")
    machine = report(program, "timing", tmp_path)["machine"]
    assert machine.keys() == KEYS
    assert machine["cores"] == len(USABLE)
    assert machine["busy_s"] == pytest.approx(50 * TICK_S * len(USABLE))
    assert machine["stolen_s"] == pytest.approx(20 * TICK_S * len(USABLE))
    assert machine["waiting_s"] == pytest.approx(0.25)
    assert machine["hz"] == machine["max_hz"] == pytest.approx(2.0e9)
    assert machine["hottest_c"] is None, "nobody asks at full speed"


def test_a_slow_clock_has_a_temperature(program: Path, moments: tuple[Moment, Moment], tmp_path: Path) -> None:
    """The hottest one that can be true, in degrees or thousandths of them."""
    moments[1].clock(1.2e9, 2.4e9, zone0="41000", zone1="86", zone2="9999999", zone3="x", zone99="12000")
    machine = report(program, "timing", tmp_path)["machine"]
    assert (machine["hz"], machine["hottest_c"]) == (pytest.approx(1.2e9), pytest.approx(86.0))


def test_what_the_kernel_does_not_tell_is_unknown(
    program: Path, moments: tuple[Moment, Moment], tmp_path: Path
) -> None:
    machine = report(program, "timing", tmp_path)["machine"]
    assert {key for key, value in machine.items() if value is None} == KEYS - {
        "event",
        "duration_s",
        "cores",
        "own_s",
        "has_priority",
    }
    assert machine["cores"] == 0


def test_the_busiest_stranger_is_named(program: Path, moments: tuple[Moment, Moment], tmp_path: Path) -> None:
    """Neither who asks nor what that has started, nor who computes on other cores."""
    before, after = moments
    us, child, grandchild, stranger, other, elsewhere = os.getpid(), 900_001, 900_002, 900_003, 900_004, 900_005
    for moment, ticks in ((before, 1000), (after, 1080)):
        moment.process(us, 1, ticks)
        moment.process(child, us, ticks)
        moment.process(grandchild, child, ticks)
        moment.process(elsewhere, 1, 5 * ticks, core=ELSEWHERE)
    before.process(stranger, 1, 500, "a) (b")
    after.process(stranger, 1, 560, "a) (b")
    after.process(other, stranger, 30)  # it has just begun
    events = report(program, "neighbours", tmp_path)
    busiest = events["busiest"]
    assert (busiest["pid"], busiest["name"]) == (stranger, "a) (b")
    assert busiest["busy_s"] == pytest.approx(60 * TICK_S)
    assert busiest["is_own_users"] is True
    assert events["machine"]["own_s"] == pytest.approx(3 * 80 * TICK_S)


def test_alone_there_is_no_busiest(program: Path, moments: tuple[Moment, Moment], tmp_path: Path) -> None:
    for moment in moments:
        moment.process(900_001, 1, 77)
    assert "busiest" not in report(program, "neighbours", tmp_path)


def test_a_timing_tells_what_else_the_machine_did(runner: Runner) -> None:
    machine = runner("--kernel", "blur_plain", "--time", "--machine", *FEW).one("machine")
    assert machine.keys() == KEYS
    assert machine["duration_s"] > 0 and machine["own_s"] >= 0
    assert 1 <= machine["cores"] <= (os.cpu_count() or 1)
    assert machine["busy_s"] >= 0 and machine["stolen_s"] >= 0


def test_the_neighbours_are_asked_without_a_kernel(native_runner: Runner) -> None:
    result = native_runner("--neighbours", "0.02")
    assert result.exit_code == 0 and result.one("machine").keys() == KEYS
    assert len(result.all("busiest")) <= 1


def test_without_being_asked_it_tells_nothing(native_runner: Runner) -> None:
    assert not native_runner("--kernel", "blur_plain", "--time", *FEW).all("machine")
