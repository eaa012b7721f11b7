"""The runner on a GPU, as far as that can be shown without one: what is copied, launched and waited for, and when.

The driver is a stand-in that computes nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import sdk
from halide_autotune.sdk.settings import Settings
from tests.stand_in_cuda import StandInCuda, build_stand_in_cuda

pytestmark = pytest.mark.toolchain

KERNEL = ["--kernel", "blur", "--time", "--warm-up-s", "0", "--min-repetitions", "3", "--max-repetitions", "3"]


@pytest.fixture(scope="module")
def benchmark(examples: Path, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline of three kernels, by an autoscheduler that puts every stage on the card."""
    built = sdk.build(
        sdk.GeneratorSpec(str(examples / "separable_filter.py"), ("width=512", "height=256"), function_name="blur"),
        tmp_path_factory.mktemp("built"),
        target="cuda-sm75",
        schedule="li2018",
        settings=settings,
    )
    return built.benchmark


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[StandInCuda]:
    yield build_stand_in_cuda(tmp_path)


def run(benchmark: Path, arguments: list[str], environment: dict[str, str]) -> tuple[int, list[dict[str, object]]]:
    done = subprocess.run(
        [benchmark, *arguments], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_copies_are_outside_the_times_and_waiting_is_inside(
    benchmark: Path, stand_in: StandInCuda, tmp_path: Path
) -> None:
    reference = ["--write-reference", str(tmp_path / "reference.raw")]
    code, events = run(benchmark, [*KERNEL, *reference], stand_in.environment({}))
    assert code == 0 and events[-1] == {"event": "done"}
    timed = next(event for event in events if event["event"] == "timed")
    calls = [(name, len(list(group))) for name, group in itertools.groupby(stand_in.calls())]
    # The first call, which is not timed: code, the input, the output's pattern; its result is brought back.
    assert [name for name, _ in calls[:4]] == ["load", "to_card", "launch", "to_card"]
    last_copy = max(index for index, (name, _) in enumerate(calls) if name in ("to_card", "to_host", "load"))
    assert calls[last_copy] == ("to_host", 1)
    # Then nothing but rounds of launches, each waited for.
    rounds = calls[last_copy + 1 :]
    assert rounds == [("launch", 3), ("wait", 1)] * (len(rounds) // 2)
    repetitions_s, iterations = timed["repetitions_s"], timed["iterations_per_repetition"]
    assert isinstance(repetitions_s, list) and isinstance(iterations, int)
    assert len(repetitions_s) == 3 and len(rounds) // 2 >= 3 * iterations + 1


def test_without_a_reference_the_first_call_is_not_timed_either(benchmark: Path, stand_in: StandInCuda) -> None:
    code, _ = run(benchmark, KERNEL, stand_in.environment({}))
    calls = stand_in.calls()
    assert code == 0 and calls[:2] == ["load", "to_card"]
    first_wait = calls.index("wait")
    assert set(calls[first_wait:]) == {"launch", "wait"}
    assert calls[first_wait:].count("wait") >= 1 + 1 + 3


def test_the_stand_in_gives_every_schedule_the_same_output(
    benchmark: Path, stand_in: StandInCuda, tmp_path: Path
) -> None:
    """So that the comparison with the reference is reached, after copying back."""
    path = str(tmp_path / "reference.raw")
    for option in ("--write-reference", "--reference"):
        code, events = run(benchmark, ["--kernel", "blur", option, path], stand_in.environment({}))
        assert code == 0, events
    assert next(event for event in events if event["event"] == "compared")["mismatches"] == 0
    assert stand_in.calls()[-1] == "to_host"


def test_without_a_driver_there_is_a_message(benchmark: Path, settings: Settings) -> None:
    with contextlib.suppress(OSError):
        ctypes.CDLL("libcuda.so")
        pytest.skip("there is a CUDA driver")
    code, events = run(benchmark, KERNEL, {})
    assert (code, events[-1]["kind"]) == (5, "gpu")
    assert events[-1]["message"] == "This device has no CUDA driver (libcuda.so): 'blur' runs on NVIDIA cards only."
