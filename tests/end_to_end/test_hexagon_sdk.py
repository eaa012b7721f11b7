"""Tuning and building with Qualcomm's Hexagon SDK, on a stand-in for its tools and for a phone with a DSP."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.run.result import Outcome
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk import build
from halide_autotune.sdk.options.generator_spec import GeneratorSpec
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.runner_input_file import write_input_file
from tests.end_to_end.conftest import Tune
from tests.end_to_end.run_files import check_run_folder, rows
from tests.remote_board import adb_board
from tests.stand_in_hexagon_sdk import TOOLS_VERSION, make_stand_in_hexagon_sdk

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("qemu-hexagon"), reason="qemu-hexagon is not installed"),
]
# Rows of whole vectors: Halide 21's Hexagon code generator fails on some others.
TINY = ["width=128", "height=16", "channels=1"]
TWO_SCHEDULES: dict[str, Any] = {"batch_size": 2, "pool_factor": 1.0, "seed": 3}


@pytest.fixture(scope="module")
def root(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One SDK, whose compiler builds its C library once."""
    return make_stand_in_hexagon_sdk(tmp_path_factory.mktemp("sdk") / "4.5.0.3", settings.cache_folder / "zig")


def test_a_run_and_a_build_with_the_sdks_tools(
    tune: Tune, root: Path, settings: Settings, examples: Path, tmp_path: Path
) -> None:
    generator = str(examples / "separable_filter.py")
    result = tune(
        generator,
        target="hexagon-v66",
        hexagon_sdk_root=root,
        parameters=TINY,
        parallelism=4,
        rounds=1,
        **TWO_SCHEDULES,
        run_folder=tmp_path / "run",
    )
    assert result.outcome is Outcome.FINISHED
    assert (result.target, result.device, result.clock) == ("hexagon-v66", "hexagon-sim", "simulated")
    check_run_folder(result, "separable_filter", "simulated")
    checked = rows(result.run_folder, "SELECT output_checked, median_ms FROM measurements WHERE purpose = 'sample'")
    assert checked and all(value == 1 and 1e-3 < median_ms < 10 for value, median_ms in checked)
    record = read_run_record(result.run_folder)
    assert record.made_with.toolchain == f"Hexagon SDK 4.5.0.3, tools {TOOLS_VERSION} for v66, standalone"
    assert record.made_with.clock_model.startswith("hexagon-sim ")
    made = build(
        GeneratorSpec(generator, tuple(TINY)),
        tmp_path / "build",
        target="hexagon-v66",
        schedule=str(result.best.header),
        options=RunOptions.of(hexagon_sdk_root=root),
        settings=settings,
    )
    assert made.toolchain == record.made_with.toolchain
    simulator = next(root.rglob("hexagon-sim"))
    command = [str(simulator), "-mv66g_1024", "--timing", "--simulated_returnval", str(made.benchmark), "--", "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    (kernel,) = [event for line in listed if line.startswith("{") and (event := json.loads(line))["event"] == "kernel"]
    assert kernel["name"] == "separable_filter" and "hexagon-32-noos" in kernel["target"]


def test_a_run_on_a_phones_dsp(tune: Tune, root: Path, examples: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    inventory, image = tmp_path / "devices.toml", tmp_path / "image"
    write_input_file(numpy.random.default_rng(5).integers(0, 256, (1, 16, 128), dtype=numpy.uint8), image)
    with adb_board(tmp_path / "board") as board:
        inventory.write_text(board.inventory_entry("arm64-android"))
        result = tune(
            str(examples / "separable_filter.py"),
            target="hexagon-v66",
            hexagon_sdk_root=root,
            device="phone",
            inventory=inventory,
            parameters=TINY,
            parallelism=4,
            rounds=1,
            **TWO_SCHEDULES,
            input_files={"input": image},
            run_folder=tmp_path / "run",
            listen=events.append,
        )
        left = [path.name for path in board.phone.temporary.rglob("*") if path.name.startswith(("s-", "dsp_", "lib"))]
        assert left == [], "the phone is left as it was"
    assert result.outcome is Outcome.FINISHED
    assert (result.target, result.device, result.clock) == ("hexagon-v66", "phone", "cycles")
    check_run_folder(result, "separable_filter", "cycles")
    timed = rows(result.run_folder, "SELECT output_checked, median_ms, canary_s FROM measurements")
    assert timed and all(median_ms > 0 and canary_s == "[]" for _, median_ms, canary_s in timed)
    assert any(checked == 1 for checked, _, _ in timed)
    record = read_run_record(result.run_folder)
    assert record.made_with.toolchain == f"Hexagon SDK 4.5.0.3, tools {TOOLS_VERSION} for v66, for QuRT"
    assert record.spec.profile.halide_target == "hexagon-32-qurt-hvx-hvx_128-hvx_v66"
    assert record.made_with.clock_model.startswith("processor cycles of a device's DSP v66")
    assert any("on the DSP of phone" in event.text for event in events if isinstance(event, Notice))
