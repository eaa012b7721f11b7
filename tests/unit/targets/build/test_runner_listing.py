from __future__ import annotations

from tests.unit.targets.conftest import Runner
from tests.unit.targets.runner_kernels import KERNELS, TYPES


def test_lists_every_kernel(runner: Runner) -> None:
    result = runner("--list")
    assert result.exit_code == 0
    assert [event["name"] for event in result.all("kernel")] == list(KERNELS)
    assert result.events[-1] == {"event": "done"}


def test_lists_buffers_and_scalars(runner: Runner) -> None:
    kernels = {event["name"]: event for event in runner("--list").all("kernel")}
    image, blurred = kernels["blur_plain"]["arguments"]
    assert image == {
        "name": "image",
        "kind": "input_buffer",
        "type_code": "uint",
        "bits": 8,
        "dimensions": 2,
        "estimates": [[0, 100], [0, 60]],
    }
    assert blurred["kind"] == "output_buffer"
    assert blurred["bits"] == 16
    scalars = {item["name"]: item for item in kernels["scalars"]["arguments"][:-1]}
    assert {name: item["estimate"] for name, item in scalars.items()} == {
        "flag": True,
        "tiny": -5,
        "small": 60000,
        "large": -(2**40),
        "half_way": 0.5,
        "precise": 0.25,
    }
    assert all(item["kind"] == "input_scalar" and item["default"] is None for item in scalars.values())
    assert kernels["no_scalar_estimate"]["arguments"][0]["estimate"] is None
    assert kernels["no_estimates"]["arguments"][0]["estimates"] == [[None, None], [None, None]]


def test_lists_every_type(runner: Runner) -> None:
    (types,) = [event for event in runner("--list").all("kernel") if event["name"] == "types"]
    listed = [f"{item['type_code']}{item['bits']}" for item in types["arguments"][: len(TYPES)]]
    assert listed == ["uint1" if name == "bool" else name for name in TYPES]
    assert "no_runtime" in types["target"]
