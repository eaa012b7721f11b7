"""Kernels that no card would run are found without one: real schedules, real PTX, NVIDIA's own assembler."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.schedule.print_header import mend_header
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.cuda.device_code import CardCheck, embedded_ptx, find_excess, run_checked_generator
from halide_autotune.targets.cuda.kernel_launch import KernelLaunch
from halide_autotune.targets.cuda.ptxas import AssembledKernel, AssemblyFailure, assemble, find_ptxas, ptxas_version
from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import (
    AutoschedulerRequest,
    GeneratedFiles,
    GeneratorFailure,
    GeneratorFailureReason,
    GeneratorRequest,
)
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.cuda_card import CudaCard
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.schedule.autoschedulers import li2018, mullapudi2016, profile_autoscheduler
from halide_autotune.targets.schedule.plugins import schedule_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
SMALL = {"width": "192", "height": "96"}
RANDOM = {"beam_size": "1", "random_dropout": "1", "random_dropout_seed": "3", "randomize_tilings": "1"}


@pytest.fixture(scope="module")
def profile() -> TargetProfile:
    return load_profile("cuda-sm80")


@pytest.fixture(scope="module")
def card(profile: TargetProfile) -> CudaCard:
    assert profile.machine.gpu is not None
    return profile.machine.gpu


@pytest.fixture(scope="module")
def ptxas(settings: Settings) -> Path:
    found = find_ptxas(settings.environment)
    if found is None:
        pytest.skip("ptxas is not installed")
    return found


@pytest.fixture(scope="module")
def program(
    examples: Path, halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings
) -> Iterator[GeneratorProgram]:
    reference = parse_generator(str(examples / "separable_filter.py"))
    with contextlib.closing(open_generator(reference, halide, cpp_compiler, settings.environment)) as opened:
        yield opened


@pytest.fixture(scope="module")
def anderson(halide: HalideInstall, profile: TargetProfile) -> AutoschedulerRequest:
    return profile_autoscheduler(halide, profile, profile.machine.parallelism, RANDOM)


def request(profile: TargetProfile, schedule: AutoschedulerRequest, folder: Path) -> GeneratorRequest:
    emit = ("object", "schedule")
    target = profile.halide_target + "-no_runtime"
    return GeneratorRequest("separable_filter", "f", "f", folder, emit, target, SMALL, schedule)


def operations(ptx: bytes) -> Counter[bytes]:
    return Counter(line.split()[0] for line in ptx.splitlines() if line.startswith(b"\t") and line.endswith(b";"))


def test_a_schedule_for_the_card_passes(
    program: GeneratorProgram,
    profile: TargetProfile,
    card: CudaCard,
    anderson: AutoschedulerRequest,
    ptxas: Path,
    tmp_path: Path,
) -> None:
    made = run_checked_generator(program, request(profile, anderson, tmp_path), LIMITS, CardCheck(card, ptxas))
    assert isinstance(made, GeneratedFiles), made
    assert set(made.files) == {"object", "schedule"} and not list(tmp_path.glob("*.stmt"))
    (ptx,) = embedded_ptx(made.files["object"])
    assert b"\n.target sm_80\n" in ptx and ptx.count(b".visible .entry") >= 1
    kernels = assemble(ptxas, ptx, card.architecture)
    assert isinstance(kernels, list) and len(kernels) == ptx.count(b".visible .entry")
    assert all(0 < kernel.registers < 256 and kernel.spill_bytes == 0 for kernel in kernels)


def test_blocks_larger_than_any_card_runs_are_dropped(
    examples: Path,
    profile: TargetProfile,
    card: CudaCard,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    settings: Settings,
    tmp_path: Path,
) -> None:
    """Halide 21's Mullapudi2016 makes them for a GPU; without an assembler they are found, too."""
    wrong = mullapudi2016(halide, 8, profile.machine)
    wrong = replace(wrong, parameters={**wrong.parameters, "experimental_gpu_schedule": "1"})
    asked = replace(request(profile, wrong, tmp_path), generator_name="corner_detector", parameters={})
    reference = parse_generator(str(examples / "corner_detector.py"))
    with contextlib.closing(open_generator(reference, halide, cpp_compiler, settings.environment)) as detector:
        made = run_checked_generator(detector, asked, LIMITS, CardCheck(card, None))
    assert isinstance(made, GeneratorFailure) and made.reason is GeneratorFailureReason.UNRUNNABLE
    assert "cannot run on A100: kernel _kernel_response_" in made.message
    assert re.search(r"has \d{5} threads per block, .*1024\.$", made.message)
    assert not list(tmp_path.iterdir()) and not made.reason.concerns_every_candidate


def test_a_smaller_card_is_held_to_its_own_limits(
    program: GeneratorProgram,
    profile: TargetProfile,
    card: CudaCard,
    halide: HalideInstall,
    ptxas: Path,
    tmp_path: Path,
) -> None:
    schedule = li2018(halide, 8)
    for small_card, expected in (
        (replace(card, threads_per_block=32), "64 threads per block, and the card's limit is 32"),
        (replace(card, registers_per_block=512), "registers per block, and the card's limit is 512"),
    ):
        small = CardCheck(small_card, ptxas)
        made = run_checked_generator(program, request(profile, schedule, tmp_path), LIMITS, small)
        assert isinstance(made, GeneratorFailure) and expected in made.message


@pytest.mark.parametrize(
    ("launch", "kernel", "expected"),
    [
        (KernelLaunch("k", (16, 1, 64), 49152), None, ""),
        (KernelLaunch("k", (1, 1, 65), 0), None, "kernel k has 65 threads in z"),
        (KernelLaunch("k", (1, 1, 1), 49153), None, "49153 bytes of shared memory"),
        (KernelLaunch("k", (1, 1, 1), 49000), ("k", 8, 200, 0, 0), "49200 bytes of shared memory"),
        (KernelLaunch("k", (1, 1, 1), None), ("k", 8, 0, 524289, 0), "524289 bytes of local memory"),
        (KernelLaunch("k", (1000, 1, 1), 0), ("k", 64, 0, 0, 0), ""),
        # 33 warps of 32 threads with 64 registers each, and 65 registers count as 72.
        (KernelLaunch("k", (900, 1, 1), 0), ("k", 65, 0, 0, 0), "has 66816 registers per block"),
        (KernelLaunch("k", (None,) * 3, None), ("k", 255, 0, 0, 999), ""),
    ],
)
def test_each_limit(
    launch: KernelLaunch, kernel: tuple[str, int, int, int, int] | None, expected: str, card: CudaCard
) -> None:
    known = {} if kernel is None else {kernel[0]: AssembledKernel(*kernel)}
    found = find_excess([launch], known, card)
    assert expected in found and bool(found) is bool(expected)


def test_what_the_assembler_refuses_has_its_words(ptxas: Path) -> None:
    nonsense = assemble(ptxas, b".version 7.0\n.target sm_80\n.address_size 64\nnonsense\n", "sm_80")
    assert isinstance(nonsense, AssemblyFailure) and "syntax error" in nonsense.message.lower()
    assert not nonsense.concerns_card
    unknown = assemble(ptxas, b".version 7.0\n.target sm_80\n.address_size 64\n", "sm_999")
    assert isinstance(unknown, AssemblyFailure) and unknown.concerns_card
    assert int(ptxas_version(ptxas).split(".")[0]) >= 12


def test_an_assembler_that_is_not_one_is_a_message(tmp_path: Path) -> None:
    assert find_ptxas({"PATH": str(tmp_path)}) != tmp_path / "ptxas"
    wrong = tmp_path / "ptxas"
    wrong.write_text("#!/bin/sh\necho hello\n")
    wrong.chmod(0o755)
    with pytest.raises(ToolchainError, match="printed no version, but: hello"):
        ptxas_version(wrong)
    wrong.chmod(0o644)
    with pytest.raises(ToolchainError, match="cannot be run"):
        assemble(wrong, b"", "sm_80")


def test_a_shipped_header_gives_the_searched_code_in_both_languages(
    program: GeneratorProgram,
    profile: TargetProfile,
    card: CudaCard,
    anderson: AutoschedulerRequest,
    examples: Path,
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    settings: Settings,
    tmp_path: Path,
) -> None:
    """As Halide 21 emits it, Anderson2021's header does not compile."""
    check = CardCheck(card, None)
    searched = run_checked_generator(program, request(profile, anderson, tmp_path / "searched"), LIMITS, check)
    assert isinstance(searched, GeneratedFiles), searched
    emitted = searched.files["schedule"].read_text()
    shipped = schedule_autoscheduler(mend_header(emitted, "f"), cpp_compiler)
    reference = parse_generator(str(examples / "separable_filter.cpp"))
    ptx: dict[str, bytes] = {}
    with contextlib.closing(open_generator(reference, halide, cpp_compiler, settings.environment)) as cpp_program:
        for folder, generator in ((tmp_path / "python", program), (tmp_path / "cpp", cpp_program)):
            made = run_checked_generator(generator, request(profile, shipped, folder), LIMITS, check)
            assert isinstance(made, GeneratedFiles), made
            ptx[folder.name] = embedded_ptx(made.files["object"])[0]
    assert ptx["python"] == ptx["cpp"]
    # Parameters of kernels and registers are numbered by the names of variables, which the search makes up.
    assert operations(ptx["cpp"]) == operations(embedded_ptx(searched.files["object"])[0])
