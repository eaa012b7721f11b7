"""The whole loop for a phone without one: static programs, under the emulator."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.run.result import Outcome
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk.settings import Settings
from tests.end_to_end.conftest import Tune
from tests.end_to_end.run_files import check_header, check_run_folder

pytestmark = pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-aarch64 is not installed")


# The first static program of a session waits until zig has built musl.
@pytest.mark.slow
def test_a_phone_is_tuned_for_under_the_emulator(
    tune: Tune, settings: Settings, examples: Path, tmp_path: Path
) -> None:
    events: list[Event] = []
    result = tune(
        str(examples / "separable_filter.py"),
        target="arm64-android",
        parameters=["width=64", "height=32", "channels=1"],
        rounds=1,
        run_folder=tmp_path / "run",
        listen=events.append,
        # Nobody looks at it: its programs would not run here.
        settings=replace(settings, ndk_root=tmp_path / "no ndk"),
    )
    assert result.outcome is Outcome.FINISHED
    assert (result.target, result.device, result.clock) == ("arm64-android", "qemu", "simulated")
    check_run_folder(result, "separable_filter", "simulated")
    best = result.best
    assert best.header is not None and best.confirmed
    check_header(best.header, "separable_filter")
    assert "arm-64-android" in best.header.read_text()
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert any("static musl" in text and "do not run on this machine" in text for text in notices)
    toolchain = read_run_record(tmp_path / "run").made_with.toolchain
    assert toolchain.startswith("zig ") and toolchain.endswith(" for aarch64-linux-musl, static")
