"""The parts of the side-by-side run of Halide's loop that do not take minutes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from benchmarks.halide_loop import SCRIPT, HalideLoopResult, _is_spoiled, _measured_ms, main, run_halide_loop
from halide_autotune.targets.errors import ToolchainError, UsageError
from tests.process_state import await_condition, under_a_time_limit

BENCHMARK = (
    "Benchmark for blur_batch_0001_sample_0003 produces best case of 0.0133113 sec/iter "
    "(over 4 samples, 24 iterations, accuracy 28%).\nBest output throughput is 1.1e+02 mpix/sec.\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One sample, as the loop leaves it."""
    (tmp_path / "bench.txt").write_text(BENCHMARK)
    write_sample(tmp_path, 13.3113)
    return tmp_path


def write_sample(folder: Path, runtime_ms: float) -> None:
    (folder / "blur.sample").write_bytes(b"\0" * 1304 + struct.pack("<fii", runtime_ms, 0, 10003))


def processes_using(path: Path) -> list[str]:
    """The command lines that name something below path."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_text(errors="replace"))
        except OSError:
            continue
    return [line for line in lines if str(path) in line]


def test_time_is_read_from_the_benchmark(folder: Path) -> None:
    assert _measured_ms(folder) == pytest.approx(13.3113)


@pytest.mark.parametrize("text", ["", "Input buffer is null.\n"])
def test_failed_benchmark_has_no_time(folder: Path, text: str) -> None:
    (folder / "bench.txt").write_text(text)
    assert _measured_ms(folder) is None


def test_sample_that_was_not_built_has_no_time(tmp_path: Path) -> None:
    assert _measured_ms(tmp_path) is None


def test_sample_with_the_measured_time_is_good(folder: Path) -> None:
    assert not _is_spoiled(folder, 13.3113)


def test_sample_with_another_time_is_spoiled(folder: Path) -> None:
    write_sample(folder, 4000)
    assert _is_spoiled(folder, 13.3113)


@pytest.mark.parametrize("content", [None, b"short"])
def test_missing_or_cut_sample_is_spoiled(folder: Path, content: bytes | None) -> None:
    (folder / "blur.sample").unlink()
    if content is not None:
        (folder / "blur.sample").write_bytes(content)
    assert _is_spoiled(folder, 13.3113)


def test_rate_counts_what_was_timed() -> None:
    result = HalideLoopResult(30, 120.0, 5.0, 2, 0, 90.0, 25.0, 5.0)
    assert result.samples_per_minute == 15


def test_loop_is_killed_at_its_time_limit_with_all_it_started(tmp_path: Path) -> None:
    generator = tmp_path / "sleeps.generator"
    generator.write_text("#!/bin/sh\nexec sleep 600\n")
    generator.chmod(0o755)

    def run(limit_s: float) -> Path:
        scratch = tmp_path / f"scratch{limit_s:g}"
        with pytest.raises(ToolchainError, match=f"killed after {limit_s:g} s"):
            run_halide_loop(generator, "sleeps", "host", scratch, time_limit_s=limit_s)
        logs.append(scratch / "loop.log")
        return logs[-1]

    logs: list[Path] = []
    under_a_time_limit(run, lambda: "Compiling 32 samples" in logs[-1].read_text())
    await_condition(lambda: processes_using(tmp_path) == [], "the end of all that it started")


def test_scratch_has_to_be_empty(folder: Path) -> None:
    with pytest.raises(UsageError, match="expected an empty or missing folder"):
        run_halide_loop(folder / "blur.generator", "blur", "host", folder)


def test_scratch_cannot_have_a_space_in_its_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot take a path with a space"):
        run_halide_loop(tmp_path / "blur.generator", "blur", "host", tmp_path / "a b")


def test_missing_source_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["missing.cpp"]) == 2
    assert capsys.readouterr().err == "missing.cpp: there is no such C++ source.\n"


def test_the_script_is_the_one_that_is_expected() -> None:
    """The phases are told apart by what it prints."""
    from halide_autotune.targets.halide_install import find_halide_install

    text = (find_halide_install().tools_dir / SCRIPT).read_text()
    assert "echo -n Compiling ${BATCH_SIZE} samples" in text
    assert "echo  done." in text
    assert "echo Retraining model..." in text
