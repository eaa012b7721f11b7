"""Programs on the DSP of a phone behind ADB: started by the launcher there, for a DSP that does what a test says."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.remote.open import open_remote
from halide_autotune.devices.timing.measure import Session, measure_kernel, write_reference
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.devices.transport import Transport
from halide_autotune.targets.hexagon.runners import HexagonDeviceRunner, open_hexagon_device_runner
from halide_autotune.targets.hexagon.sdk import find_hexagon_sdk
from halide_autotune.targets.process.content_cache import ContentCache
from tests.adb_device.programs import running_programs
from tests.remote_board import AdbBoard, adb_board
from tests.stand_in_hexagon_sdk import make_stand_in_hexagon_sdk

pytestmark = pytest.mark.slow

_TIMED = {"event": "timed", "repetitions_s": [0.002, 0.001], "stopped_by": "precision"}
_ENDED = {"event": "exit", "code": 0}


class Phone:
    """A phone whose run_main_on_hexagon is a script."""

    def __init__(self, board: AdbBoard, runner: HexagonDeviceRunner, cache: ContentCache) -> None:
        self.board = board
        self._runner = runner
        place = replace(board.place, environment=(("ADSP_LIBRARY_PATH", "/mine"),))
        device = Device("phone", "adb", "hexagon-v66", Clock.CYCLES, 4, uses_host_cores=False, remote=place, dsp=runner)
        self.transport: Transport = open_remote(device, board.connections, cache)
        self.session = Session(device, self.transport, KernelInputs(seed=7), Tolerance())

    def dsp_does(self, script: str, *events: object) -> None:
        said = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
        written = f"open(sys.argv[5] + '/' + sys.argv[7], 'w').write({said!r})\n" if said else ""
        self._runner.program.write_text(f"#!{sys.executable}\nimport os, sys, time\n{written}{script}\n")

    def measure(self, time_s: float = 60.0) -> Measurement | MeasureFailure:
        settings = MeasureSettings(run_limit_s=time_s)
        return measure_kernel(self.session, "batch", "blur", settings, None)


@pytest.fixture
def phone(tmp_path: Path, cache: ContentCache) -> Iterator[Phone]:
    runner = open_hexagon_device_runner(
        find_hexagon_sdk(make_stand_in_hexagon_sdk(tmp_path / "sdk")), "hexagon-32-qurt-hvx_v66"
    )
    runner.program.chmod(0o644)  # an unpacked SDK's need not be executable
    batch = tmp_path / "batch"
    batch.write_text("a shared object")
    batch.chmod(0o755)
    with adb_board(tmp_path / "board") as board:
        phone = Phone(board, runner, cache)
        try:
            phone.dsp_does("")
            yield phone
        finally:
            phone.transport.close()


def test_a_kernel_is_timed(phone: Phone, tmp_path: Path) -> None:
    phone.dsp_does("print('RPC to Hexagon DSP')", _TIMED, {"event": "done"}, _ENDED)
    phone.transport.push(tmp_path / "batch", "batch")
    measured = phone.measure()
    assert isinstance(measured, Measurement), measured
    assert (measured.clock, measured.repetitions_s, measured.canary_s) == (Clock.CYCLES, (0.002, 0.001), ())


def test_what_the_dsp_is_given(phone: Phone, tmp_path: Path) -> None:
    note = tmp_path / "heard"
    what = "[sys.argv, os.environ['ADSP_LIBRARY_PATH'], os.listdir()]"
    phone.dsp_does(f"import json\nopen({str(note)!r}, 'w').write(json.dumps({what}))", _ENDED)
    phone.transport.push(tmp_path / "batch", "batch")
    assert write_reference(phone.session, "batch", "blur", "expected", 60.0) is None
    arguments, path, files = json.loads(note.read_text())
    folder = arguments[5]
    assert Path(folder).is_relative_to(phone.board.phone.temporary) and path == f"{folder};/mine"
    assert arguments[8:] == "--kernel blur --seed 7 --threads 4 --write-reference expected".split()
    assert {"batch", "dsp_launcher", "librun_main_on_hexagon_skel.so", "run_main_on_hexagon"} <= set(files)


def test_a_dsp_that_hangs_is_ended_at_the_time_limit(phone: Phone, tmp_path: Path) -> None:
    phone.dsp_does("time.sleep(600)", {"event": "start"})
    phone.transport.push(tmp_path / "batch", "batch")
    started_s = time.monotonic()
    failure = phone.measure(time_s=2.0)
    assert isinstance(failure, MeasureFailure) and failure.reason is MeasureFailureReason.TIMED_OUT
    assert time.monotonic() - started_s < 300, "it was not waited for"
    until_s = time.monotonic() + 120
    while (left := running_programs(phone.board.phone.files.root)) and time.monotonic() < until_s:
        time.sleep(0.1)
    assert left == [], "nothing of it runs on the phone"


@pytest.mark.parametrize(
    ("script", "events", "reason", "words"),
    [
        ("sys.exit(78)", [], MeasureFailureReason.DEVICE, "The DSP did not start the program"),
        ("sys.exit(45)", [{"event": "start"}], MeasureFailureReason.CRASHED, "The program crashed on the DSP"),
        (
            "",
            [{"event": "error", "kind": "wrong_output", "message": "Other."}, {"event": "exit", "code": 4}],
            MeasureFailureReason.WRONG_OUTPUT,
            "Other.",
        ),
    ],
)
def test_failures_are_told_apart(
    script: str, events: list[object], reason: MeasureFailureReason, words: str, phone: Phone, tmp_path: Path
) -> None:
    phone.dsp_does(script, *events)
    phone.transport.push(tmp_path / "batch", "batch")
    failure = phone.measure()
    assert isinstance(failure, MeasureFailure) and failure.reason is reason and words in failure.message
