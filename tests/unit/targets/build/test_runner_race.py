"""Kernels timed in alternation: the race on a scripted clock, and real kernels beside each other."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from halide_autotune.targets.build.executable import RUNNER_DIR
from halide_autotune.targets.halide_install import HalideInstall
from tests.unit.targets.conftest import X86, Architecture, Runner

pytestmark = pytest.mark.toolchain

RACES = 1000
ALONE = 0.0
FEW = "--warm-up-s 0 --min-repetition-s 0 --precision 0 --max-repetitions 6 --max-time-s 99".split()


@pytest.fixture(scope="module")
def scripted_race(halide: HalideInstall, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("race") / "race"
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-O1"]
    includes = [f"-I{RUNNER_DIR}", f"-I{halide.include_dir}"]
    sources = [str(Path(__file__).with_name("scripted_race.c")), str(RUNNER_DIR / "timing.c")]
    subprocess.run(["gcc", *flags, *includes, *sources, "-lm", "-o", str(program)], check=True)
    return program


def races(
    program: Path,
    ratio: float,
    noise: float,
    lost_over: float = 1.0,
    *,
    warm_up_s: float = 0.0,
    min_time_s: float = 0.0,
    give_up_over_s: float = 0.0,
    disturbed: float = 0.0,
    beside_disturbed: float = 0.0,
) -> list[tuple[str, int, int, int]]:
    """What each race was stopped by, its repetitions, those with the yardstick first, and those that do not count."""
    command = [program, ratio, noise, RACES, 1, lost_over, warm_up_s, min_time_s, give_up_over_s]
    lines = subprocess.run(
        [str(word) for word in [*command, disturbed, beside_disturbed]], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [(words[0], int(words[1]), int(words[2]), int(words[3])) for words in map(str.split, lines)]


@pytest.mark.parametrize("noise", [0.02, 0.12, 0.3])
def test_equal_kernels_rarely_lose(scripted_race: Path, noise: float) -> None:
    stops = Counter(stopped_by for stopped_by, *_ in races(scripted_race, 1.0, noise))
    assert stops["slower"] <= RACES / 20


@pytest.mark.parametrize("noise", [0.02, 0.12, 0.3])
def test_faster_kernels_hardly_ever_lose(scripted_race: Path, noise: float) -> None:
    stops = Counter(stopped_by for stopped_by, *_ in races(scripted_race, 0.8, noise))
    assert stops["slower"] <= RACES / 200


@pytest.mark.parametrize(("noise", "most"), [(0.02, 3.1), (0.12, 4), (0.3, 7)])
def test_twice_as_slow_ones_stop_after_a_few_repetitions(scripted_race: Path, noise: float, most: float) -> None:
    result = races(scripted_race, 2.0, noise)
    assert sum(stopped_by == "slower" for stopped_by, *_ in result) >= 0.99 * RACES
    assert sum(repetitions for _, repetitions, *_ in result) / RACES <= most


@pytest.mark.parametrize(("noise", "most"), [(0.02, 3.1), (0.12, 6)])
def test_hopeless_ones_stop_while_they_warm_up(scripted_race: Path, noise: float, most: float) -> None:
    """A race takes 50 ms, which is 11 repetitions, unless the kernel is clearly worse than one that loses."""
    result = races(scripted_race, 3.0, noise, warm_up_s=0.02, min_time_s=0.05)
    assert sum(repetitions for _, repetitions, *_ in result) / RACES <= most
    lost = races(scripted_race, 1.2, noise, warm_up_s=0.02, min_time_s=0.05)
    assert sum(repetitions < 11 for _, repetitions, *_ in lost) <= RACES / 100


@pytest.mark.parametrize("noise", [0.02, 0.12, 0.3])
def test_equal_ones_do_not_lose_while_they_warm_up(scripted_race: Path, noise: float) -> None:
    stops = Counter(stopped_by for stopped_by, *_ in races(scripted_race, 1.0, noise, warm_up_s=0.02))
    assert stops["slower"] <= RACES / 20


def test_a_race_may_be_against_a_multiple_of_the_other_kernel(scripted_race: Path) -> None:
    """A yardstick that is twice as slow as the best: what is half as fast as the best is as fast as the yardstick."""
    slower = Counter(stopped_by for stopped_by, *_ in races(scripted_race, 1.0, 0.12, lost_over=0.5))
    assert slower["slower"] >= 0.99 * RACES
    equal = Counter(stopped_by for stopped_by, *_ in races(scripted_race, 0.5, 0.12, lost_over=0.5))
    assert equal["slower"] <= RACES / 20


def test_repetitions_that_lost_their_core_do_not_lose_a_race(scripted_race: Path) -> None:
    result = races(scripted_race, 1.0, 0.02, min_time_s=0.05, disturbed=0.25, beside_disturbed=0.25)
    assert sum(stopped_by == "slower" for stopped_by, *_ in result) <= RACES / 20


@pytest.mark.parametrize(("disturbed", "others", "marked"), [(0.0, 0.0, 0.0), (0.4, 0.4, 0.4), (0.8, 0.0, 0.0)])
def test_repetitions_without_a_core_do_not_count_unless_only_one_of_the_two_seldom_has_it(
    scripted_race: Path, disturbed: float, others: float, marked: float
) -> None:
    result = races(scripted_race, 1.0, 0.02, 99.0, min_time_s=0.2, disturbed=disturbed, beside_disturbed=others)
    share = sum(marks for *_, marks in result) / sum(repetitions for _, repetitions, *_ in result)
    assert share == pytest.approx(marked, abs=0.05)


def test_alone_it_is_repeated_until_the_median_is_as_precise_as_was_asked(scripted_race: Path) -> None:
    """To 1 % with noise of 5 %: the standard error of a median is 1.25 times the noise over the root of the count."""
    result = races(scripted_race, 1.0, 0.05, ALONE)
    assert sum(stopped_by == "precision" for stopped_by, *_ in result) >= 0.99 * RACES
    assert 20 < sum(repetitions for _, repetitions, *_ in result) / RACES < 60


@pytest.mark.parametrize("lost_over", [ALONE, 99.0])
def test_a_kernel_is_given_up_by_its_fastest_call(scripted_race: Path, lost_over: float) -> None:
    """Of twenty calls the slowest takes 2 ms and the fastest half a one."""
    stops = Counter(
        stopped_by for stopped_by, *_ in races(scripted_race, 1.0, 0.4, lost_over, warm_up_s=0.02, give_up_over_s=1e-3)
    )
    assert stops["gave_up"] <= RACES / 100
    stops = Counter(
        stopped_by for stopped_by, *_ in races(scripted_race, 9.0, 0.4, lost_over, warm_up_s=0.02, give_up_over_s=1e-3)
    )
    assert stops["gave_up"] >= 0.99 * RACES


def test_the_order_is_random(scripted_race: Path) -> None:
    result = races(scripted_race, 0.8, 0.12)
    share = sum(first for _, _, first, _ in result) / sum(repetitions for _, repetitions, *_ in result)
    assert 0.45 < share < 0.55


def test_reports_both_kernels(runner: Runner) -> None:
    result = runner("--kernel", "blur_plain", "--time", "--beside", "blur_tiled", *FEW)
    timed = result.one("timed")
    assert timed["beside"] == "blur_tiled"
    assert 3 <= len(timed["repetitions_s"]) == len(timed["beside_s"]) == len(timed["beside_first"]) <= 6
    assert all(0 < time_s < 60 for time_s in timed["repetitions_s"] + timed["beside_s"])
    assert timed["stopped_by"] in ("slower", "repetitions")
    # The buffers that are reported are the kernel's own.
    assert {event["name"].partition("$")[0] for event in result.all("buffer")} == {"image", "blurred"}
    assert len(result.all("buffer")) == 2


LONG = "--warm-up-s 0 --precision 0 --lost-over 1e6 --max-repetitions 100000 --max-time-s 999".split()


def children_of(parent: int) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError):  # it has ended meanwhile
            if int(Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()[1]) == parent:
                found.append(int(name))
    return found


@pytest.fixture
def long_race(runner_of: Callable[[Architecture], Runner]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A race that goes on, and the process of its other kernel."""
    command = [str(runner_of(X86).executable.path), "--kernel", "blur_plain", "--time", "--beside", "blur_tiled"]
    race = subprocess.Popen([*command, *LONG], stdout=subprocess.DEVNULL)
    while not (found := children_of(race.pid)):
        assert race.poll() is None
    yield race, found[0]
    race.kill()
    race.wait()


def test_a_crash_of_the_other_kernel_ends_the_race_as_if_it_were_called_there(
    long_race: tuple[subprocess.Popen[bytes], int],
) -> None:
    race, other = long_race
    os.kill(other, signal.SIGSEGV)
    assert race.wait() == -signal.SIGSEGV


def test_the_other_kernels_process_does_not_outlive_the_race(long_race: tuple[subprocess.Popen[bytes], int]) -> None:
    race, other = long_race
    waiting = os.pidfd_open(other)
    race.kill()
    assert select.select([waiting], [], [], 60)[0], "it ends"
    os.close(waiting)


def test_a_kernel_beside_itself_is_as_fast(runner: Runner) -> None:
    timed = runner("--kernel", "blur_plain", "--time", "--beside", "blur_plain", *FEW).one("timed")
    assert timed["beside"] == "blur_plain"


@pytest.mark.parametrize("other", ["blur_rounded_up", "blur_plain"])
def test_the_output_is_checked_as_without_another_kernel(runner: Runner, other: str, tmp_path: Path) -> None:
    """One that requires another shape has buffers of its own."""
    runner("--kernel", "blur_plain", "--write-reference", tmp_path / "ref")
    right = runner("--kernel", "blur_tiled", "--reference", tmp_path / "ref", "--time", "--beside", other, *FEW)
    assert right.exit_code == 0
    assert right.one("timed")["beside"] == other
    wrong = runner("--kernel", "blur_wrong", "--reference", tmp_path / "ref", "--time", "--beside", other, *FEW)
    assert wrong.exit_code == 4
    assert not wrong.all("timed")


def test_gives_up_beside_another_kernel(runner: Runner) -> None:
    options = ("--precision", "0", "--give-up-over-s", "1e-9", "--warm-up-s", "0")
    timed = runner("--kernel", "blur_plain", "--time", "--beside", "blur_tiled", *options).one("timed")
    assert timed["stopped_by"] == "gave_up"
    assert len(timed["repetitions_s"]) == len(timed["beside_s"]) == 1


@pytest.mark.parametrize(
    ("options", "message"), [(("--time", "--beside", "none"), "no kernel 'none'"), (("--beside", "a"), "--time")]
)
def test_refuses_what_cannot_be_timed(native_runner: Runner, options: tuple[str, ...], message: str) -> None:
    result = native_runner("--kernel", "blur_plain", *options)
    assert result.exit_code == 2
    assert message in result.one("error")["message"]
