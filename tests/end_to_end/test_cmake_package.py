"""`find_package(HalideAutotune)`: the example is built with its schedules, without, and tuned by a target of CMake."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from halide_autotune.sdk.settings import Settings
from tests.cmake_tool import CMAKE

SDK = Path(sys.executable).with_name("sdk")
PACKAGE = Path(__file__).parents[2] / "sdk" / "cmake_package"
WIDTH, HEIGHT, STRENGTH = 1536, 1024, 3
# What every x86-64 machine that runs the tests has, with the features of the example's schedule.
TARGET = "x86-64-linux-avx-avx2-f16c-fma-sse41"
OWN = r"no schedule for {} in \S+/schedules; built with the generator's own schedule\. Tune it: cmake --build \S+/build"

Cmake = Callable[..., str]


@pytest.fixture
def project(examples: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(examples / "cmake", tmp_path / "project"))


@pytest.fixture
def cmake(project: Path, settings: Settings) -> Cmake:
    """Run CMake in the project, and return what it prints; `fails` says that it must fail."""

    def run(*arguments: str | Path, fails: bool = False) -> str:
        done = subprocess.run(
            [CMAKE, *arguments],
            cwd=project,
            env=dict(settings.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=1700,
        )
        assert (done.returncode != 0) == fails, done.stdout
        return " ".join(done.stdout.split())

    return run


def configure(cmake: Cmake, *more: str, targets: str = TARGET, fails: bool = False) -> str:
    where = [f"-DHalideAutotune_DIR={PACKAGE}", f"-DHalideAutotune_SDK={SDK}", f"-DSHARPEN_TARGETS={targets}"]
    return cmake("-S", ".", "-B", "build", *where, *more, fails=fails)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def shown(project: Path) -> int:
    """What the example's program prints."""
    return int(subprocess.run([project / "build/show_sharpen"], capture_output=True, check=True).stdout)


def expected() -> int:
    x, y = numpy.meshgrid(numpy.arange(WIDTH), numpy.arange(HEIGHT))
    image = (7 * x + 13 * y) % 251
    padded = numpy.pad(image, 1, mode="edge")
    across = (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) // 4
    down = (across[:-2] + 2 * across[1:-1] + across[2:]) // 4
    sharp = numpy.clip(image + STRENGTH * (image - down), 0, 255)
    return int((sharp * (x + 3 * y + 1)).sum())


@pytest.mark.slow
def test_schedules_that_come_and_change_are_used_by_the_next_build(project: Path, cmake: Cmake) -> None:
    schedules = project / "schedules"
    away = schedules.rename(project / "away")
    assert re.search(OWN.format(TARGET), configure(cmake))
    cmake("--build", "build")
    assert shown(project) == expected()
    own = (project / "build/sharpen.o").read_bytes()

    away.rename(schedules)
    assert "sharpen.schedule.cpp" in cmake("--build", "build")
    assert shown(project) == expected()
    assert (project / "build/sharpen.o").read_bytes() != own
    assert "is unchanged since it was shipped, 2 compared" in cmake("--build", "build", "--target", "check-sharpen")

    generator, renamed = project / "source/sharpen_generator.cpp", "Func 4 is now 'sideways', was 'across'."
    edit(generator, '"across"', '"sideways"')
    assert renamed in cmake("--build", "build", fails=True)
    assert renamed in cmake("--build", "build", "--target", "check-sharpen", fails=True)
    edit(generator, '"sideways"', '"across"')
    edit(generator, "int(strength)", "int(strength) * 2")
    assert "Warning: The algorithm has changed since" in cmake("--build", "build")


def test_a_target_without_a_schedule_is_told(project: Path, cmake: Cmake) -> None:
    assert re.search(OWN.format("riscv-64-linux"), configure(cmake, targets="riscv-64-linux"))
    assert "HalideAutotune: sharpen: no schedule" not in configure(cmake, targets="arm64")
    several = configure(cmake, targets=f"{TARGET};x86-64-linux")
    assert "no schedule for x86-64-linux, so all of its targets are built with the generator's own" in several
    lists = project / "CMakeLists.txt"
    edit(lists, "PARAMS strength=3", "PARAMS strength=4\n AUTOSCHEDULER Halide::Mullapudi2016")
    several = configure(cmake, targets=f"{TARGET};x86-64-linux")
    assert "no schedule for x86-64-linux, which is built with Halide::Mullapudi2016." in several
    assert f'the schedule for {TARGET} was tuned with the parameters "strength=3", not "strength=4". Tune' in several


def test_wrong_use_is_told(project: Path, cmake: Cmake) -> None:
    wrong = configure(cmake, targets="arm46", fails=True)
    assert "HalideAutotune: arm46 is neither a Halide target nor a target profile: " in wrong
    (project / "schedules/ship.json").write_text("{")
    assert "ship.json is damaged" in configure(cmake, fails=True)
    edit(project / "CMakeLists.txt", "SCHEDULES schedules", "SCHEDULE schedules")
    assert "HalideAutotune: sharpen: SCHEDULES is missing." in configure(cmake, fails=True)


@pytest.mark.slow
def test_a_library_for_several_machines_has_the_schedule_of_each(project: Path, cmake: Cmake) -> None:
    edit(project / "CMakeLists.txt", "PARAMS strength=3", "PARAMS strength=3\n AUTOSCHEDULER Halide::Mullapudi2016")
    configure(cmake, targets=f"{TARGET};x86-64-linux")
    cmake("--build", "build")
    assert shown(project) == expected()


@pytest.mark.slow
def test_a_cross_build_takes_generator_and_plug_in_from_the_hosts(project: Path, cmake: Cmake) -> None:
    configure(cmake, targets="arm64")
    cmake("--build", "build", "--target", "sharpen-halide_generators")
    (project / "arm.cmake").write_text(
        "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\n"
        "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n"
    )
    options = ["--toolchain", "arm.cmake", "-Dsharpen-halide_generators_ROOT=build", "-DSHARPEN_TARGETS=arm-64-linux"]
    told = cmake("-S", ".", "-B", "arm", f"-DHalideAutotune_DIR={PACKAGE}", f"-DHalideAutotune_SDK={SDK}", *options)
    assert "no schedule" not in told
    cmake("--build", "arm", "--target", "sharpen.update")
    assert (
        (project / "arm/sharpen.o").read_bytes()[:20].endswith(bytes([1, 0, 183, 0]))
    )  # a relocatable file for AArch64
    told = cmake("--build", "arm", "--target", "tune-sharpen", fails=True)
    assert "sharpen.generator is built by the host's build: run this target there." in told


@pytest.mark.slow
def test_a_target_of_cmake_tunes_and_ships(project: Path, cmake: Cmake) -> None:
    shutil.rmtree(project / "schedules")
    edit(project / "CMakeLists.txt", "TUNE_TARGETS arm64 x86-64", "TUNE_TARGETS arm64\n SHIP_OPTIONS --no-sizes")
    small = "--num-batches;1;--batch-size;4;--pool-factor;1;--epochs;5;--play-off-turns;8"
    small += ";--budget;60m;--size;input=128x64"
    configure(cmake, f"-DHalideAutotune_TUNE_OPTIONS={small}", targets="arm64")
    cmake("--build", "build", "--target", "tune-sharpen")
    assert (project / "build/tuned/sharpen-arm64-1/run.toml").is_file()
    assert "sharpen.arm64.schedule.h" in {path.name for path in (project / "schedules").iterdir()}
    assert "sharpen.schedule.cpp" in cmake("--build", "build")
    assert "compared with" in cmake("--build", "build", "--target", "check-sharpen")


def test_which_schedule_fits_is_decided_as_in_the_headers(tmp_path: Path, cmake: Cmake) -> None:
    cases = {
        "x86-64-linux-avx-avx2": ("x86-64-linux-avx;x86-64-linux-avx-avx2;x86-64-linux", "x86-64-linux-avx-avx2"),
        "x86-64-linux-sse41": ("x86-64-linux-avx;x86-64-osx", "x86-64-osx"),
        "arm-64-android": ("arm-64-linux-dot_prod;arm-32-android", ""),
        "arm-64-android-dot_prod-no_asserts": ("arm-64-linux-dot_prod;arm-64-android", "arm-64-android"),
    }
    script = [f'include("{PACKAGE}/HalideTargets.cmake")']
    for target, (fitting, _) in cases.items():
        script += [f'_HalideAutotune_best("{target}" "{fitting}" best)', 'message(STATUS "<${best}>")']
    (tmp_path / "best.cmake").write_text("\n".join(script))
    found = re.findall(r"<(.*?)>", cmake("-P", tmp_path / "best.cmake"))
    assert found == [best for _, best in cases.values()]


def test_sdk_says_where_the_package_is(settings: Settings) -> None:
    told = subprocess.run(
        [SDK, "cmake-dir"], env=dict(settings.environment), capture_output=True, text=True, check=True
    )
    assert Path(told.stdout.strip()).resolve() == PACKAGE
