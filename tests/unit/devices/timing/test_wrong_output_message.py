"""A wrong output says how many elements differ, by how much and where: a user decides by it what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.timing.measure import Session, measure_kernel
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason
from halide_autotune.devices.transport import RunOutcome
from halide_autotune.targets.process.stop_signal import StopSignal

# As the runner printed it.
_REPORT = """\
{"event":"compared","output":"good","elements":10,"mismatches":0,"far_mismatches":0,"max_absolute_error":0,\
"accepted":true,"first_mismatch":[]}
{"event":"compared","output":"output","elements":11796480,"mismatches":3253,"far_mismatches":0,\
"max_absolute_error":602,"accepted":false,"first_mismatch":[1011,19,0],"expected":34341,"actual":34343}
{"event":"error","kind":"wrong_output","message":"The output of 'f' differs from the reference."}
"""


class _Recorded:
    def __init__(self) -> None:
        self.arguments: list[str] = []

    def push(self, source: Path, name: str) -> None: ...

    def pull(self, name: str, destination: Path) -> None: ...

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        self.arguments = list(arguments)
        return RunOutcome(4, False, False, _REPORT, 1.0)

    def remove(self, name: str) -> None: ...

    def close(self) -> None: ...


def test_a_wrong_output_is_described() -> None:
    transport = _Recorded()
    device = Device("board", "local", "host", Clock.WALL, 2, uses_host_cores=False)
    session = Session(device, transport, KernelInputs(), Tolerance(far_scale=0.25, far_share=0.125))
    result = measure_kernel(session, "batch", "f", MeasureSettings(), "reference.raw")
    assert isinstance(result, MeasureFailure)
    assert result.reason is MeasureFailureReason.WRONG_OUTPUT
    assert result.message == (
        "The runner reports: The output of 'f' differs from the reference. 3253 of 11796480 elements of output differ, "
        "by up to 602; the first is at [1011, 19, 0]: expected 34341, got 34343."
    )
    at = transport.arguments.index("--far-scale")
    assert transport.arguments[at : at + 4] == ["--far-scale", "0.25", "--far-share", "0.125"]
