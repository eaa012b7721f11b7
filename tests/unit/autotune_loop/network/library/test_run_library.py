"""What a device says of a network is checked before it is believed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from halide_autotune.autotune_loop.network.library.build_library import NetworkLibrary
from halide_autotune.autotune_loop.network.library.run_library import compute_on, time_on
from halide_autotune.autotune_loop.network.library.steps import network_steps
from halide_autotune.autotune_loop.network.operators import Network, Operator, OperatorKind, Tensor
from halide_autotune.devices.transport import RunOutcome
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.stop_signal import StopSignal

SOURCE, MADE = Tensor("in", (2, 3)), Tensor("out", (3, 2))


class _Device:
    """Ends as it is told, and has files that a program has left there."""

    def __init__(self, files: dict[str, bytes], exit_code: int = 0, output: str = "") -> None:
        self.files, self.exit_code, self.output = files, exit_code, output

    def push(self, source: Path, name: str) -> None:
        self.files[name] = source.read_bytes()

    def pull(self, name: str, destination: Path) -> None:
        destination.write_bytes(self.files[name])

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        return RunOutcome(self.exit_code, timed_out=False, stopped=False, output=self.output, duration_s=0.1)

    def remove(self, name: str) -> None:
        del self.files[name]

    def close(self) -> None:
        pass


@pytest.fixture
def library() -> NetworkLibrary:
    operators = (Operator(OperatorKind.CONCATENATE, ("only",), (SOURCE,), MADE),)
    steps = network_steps(Network("n", (SOURCE,), (MADE,), operators), (), [()])
    return NetworkLibrary("n", Path(), Path(), Path(), "", steps)


def report(**changes: object) -> dict[str, bytes]:
    layers = [{"name": "only", "median_ms": 0.5}]
    told = {"network": "n", "repetitions": 3, "threads": 1, "median_ms": 0.5, "layers": layers, **changes}
    return {"network_report.json": json.dumps(told).encode()}


def test_times_are_read(library: NetworkLibrary, tmp_path: Path) -> None:
    times = time_on(_Device(report()), "bench", library, 3, 1, tmp_path)
    assert (times.median_ms, times.layers[0].median_ms) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (report(median_ms=-1), "key 'median_ms'"),
        (report(layers=[{"name": "other", "median_ms": 0.5}]), "it has other layers than the network"),
        (report(layers=[]), "it has other layers than the network"),
        ({"network_report.json": b"{"}, "not valid JSON"),
    ],
)
def test_a_report_that_cannot_be_is_refused(
    files: dict[str, bytes], said: str, library: NetworkLibrary, tmp_path: Path
) -> None:
    with pytest.raises(DeviceError, match=said):
        time_on(_Device(files), "bench", library, 3, 1, tmp_path)


def test_outputs_have_the_sizes_that_they_must(library: NetworkLibrary, tmp_path: Path) -> None:
    numbers = np.arange(6, dtype="<f4")
    files = {"network_layers.raw": numbers.tobytes(), "network_output.raw": numbers.tobytes()}
    found = compute_on(_Device(files), "bench", library, [numbers], tmp_path)
    assert np.array_equal(found.layers[0], numbers) and np.array_equal(found.outputs[0], numbers)
    files["network_layers.raw"] = bytes(8)
    with pytest.raises(DeviceError, match="has 8 bytes instead of 24"):
        compute_on(_Device(files), "bench", library, [numbers], tmp_path)


def test_a_program_that_fails_is_told_with_its_last_line(library: NetworkLibrary, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"exited with code 1 on the device: There is not enough memory\.$"):
        time_on(_Device({}, 1, "\nThere is not enough memory.\n"), "bench", library, 3, 1, tmp_path)
    with pytest.raises(DeviceError, match=r"was ended by SIGSEGV on the device\.$"):
        time_on(_Device({}, -11), "bench", library, 3, 1, tmp_path)
