"""Random programs: other ones in each iteration, and every one is a pipeline that Halide compiles."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.training.programs import PROGRAM_FILE, is_judged_by, program_sets, seeds_of
from halide_autotune.autotune_loop.training.training_options import ProgramOptions
from halide_autotune.targets.halide_install import find_halide_install

SIZE_PX = (64, 48)
# Halide 21 takes products of bytes in whole vectors only (CodeGen_Hexagon.cpp), and ends at half of one.
HALF_VECTOR = "Condition failed: op->type.lanes() % (native_vector_bits() * 2 / op->type.bits()) == 0"


def test_no_two_iterations_have_a_program_in_common_and_a_fifth_judges() -> None:
    options = ProgramOptions(programs=7)
    drawn = [seed for iteration in range(10) for seed in seeds_of(options, iteration)]
    assert len({*drawn}) == 70
    assert sum(map(is_judged_by, drawn)) == 14
    other = [seed for iteration in range(10) for seed in seeds_of(ProgramOptions(programs=7, seed=1), iteration)]
    assert not {*drawn} & {*other}
    assert seeds_of(options, 3) == seeds_of(options, 3)
    named = [parameters[0] for parameters in program_sets(seeds_of(options, 3), SIZE_PX, for_dsp=False)]
    assert named == [f"seed={seed}" for seed in seeds_of(options, 3)]


@pytest.mark.parametrize("for_dsp", [False, True])
def test_every_program_compiles_and_only_those_for_a_dsp_are_without_floats(for_dsp: bool, tmp_path: Path) -> None:
    texts = []
    for parameters in program_sets(seeds_of(ProgramOptions(), 0), SIZE_PX, for_dsp=for_dsp):
        generate(tmp_path, "-e", "stmt", "target=x86-64-linux-no_runtime", *parameters)
        texts.append((tmp_path / "program.stmt").read_text())
    assert len({*texts}) == len(texts), "each seed is another program"
    has_floats = [re.search(r"\bfloat32\(|\bexp_f32|\d\.\d+f\b", text) is not None for text in texts]
    assert not any(has_floats) if for_dsp else any(has_floats)


@pytest.mark.toolchain
def test_programs_for_a_dsp_compile_in_vectors(tmp_path: Path) -> None:
    """HVX has no vectors of 64 bits, which a division by a number takes that is no power of two."""
    plug_in = find_halide_install().plugin_path("Mullapudi2016")
    scheduled = ["-p", str(plug_in), "autoscheduler=Mullapudi2016", "autoscheduler.parallelism=4"]
    target = "target=hexagon-32-noos-hvx-hvx_128-hvx_v66-no_runtime"
    programs = program_sets(seeds_of(ProgramOptions(), 0), SIZE_PX, for_dsp=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HL_DEBUG_CODEGEN", "1")  # else Halide does not say what it ended with
        endings = [generated(tmp_path, "-e", "o", *scheduled, target, *parameters) for parameters in programs]
    failed = [ended.stderr[-2000:] for ended in endings if ended.returncode]
    assert len(failed) <= len(programs) // 8 and all(HALF_VECTOR in text for text in failed), failed


def generate(folder: Path, *arguments: str) -> None:
    """Has the generator write a program."""
    ended = generated(folder, *arguments)
    assert ended.returncode == 0, f"{' '.join(arguments)}: {ended.stderr[-2000:]}"


def generated(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM_FILE), "-g", "random_program", "-f", "program", "-o", str(folder)]
    return subprocess.run([*command, *arguments], check=False, capture_output=True, text=True)
