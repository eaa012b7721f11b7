"""The networks are those of the papers, and the table says what was timed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sdk
from benchmarks import networks
from benchmarks.network_models import BUILT
from halide_autotune.autotune_loop.network.layer_check import CheckedLayer
from halide_autotune.autotune_loop.network.read_keras import read_keras
from halide_autotune.autotune_loop.network.tasks import operations_of
from halide_autotune.devices.device import Clock, Device

DEVICE = Device("local", "local", "host", Clock.WALL, 1, uses_host_cores=True)


def benched(times_ms: dict[str, float], error: float = 0.0, **further: Any) -> sdk.BenchedNetwork:
    outputs = {"tuned": (CheckedLayer("output 0", error),)}
    ranges_ms = {name: (0.9 * time_ms, 1.1 * time_ms) for name, time_ms in times_ms.items()}
    return sdk.BenchedNetwork("small", DEVICE, (), outputs, times_ms, ranges_ms=ranges_ms, **further)


@pytest.mark.parametrize(
    ("name", "parameters", "million_operations", "operators"),
    [
        # As others count them: PyTorch's resnet18 has 11,689,512 that are trained, and 1.8 billion products.
        ("resnet18", 11_689_512, 3_630, {"convolution": 20, "pool": 1, "global_pool": 1, "dense": 1, "softmax": 1}),
        ("dqn", 1_693_362, 18.7, {"convolution": 3, "reshape": 1, "dense": 2}),
        # Zaremba's has 19.8 million, of which 6.5 are the embedding's.
        (
            "lstm_lm",
            13_275_200,
            27,
            {"concatenate": 2, "dense": 3, "lstm_state": 4, "reshape": 2, "softmax": 1},
        ),
    ],
)
def test_the_networks_are_those_of_the_papers(
    name: str, parameters: int, million_operations: float, operators: dict[str, int], tensorflow_ready: None
) -> None:
    model = BUILT[name]()
    assert sum(int(each.numpy().size) for each in model.trainable_weights) == parameters
    network = read_keras(model)
    assert network.unsupported == () and network.name == name
    assert Counter(operator.kind.value for operator in network.operators) == operators
    assert sum(map(operations_of, network.operators)) / 1e6 == pytest.approx(million_operations, rel=0.02)


def test_the_table_says_what_was_timed_and_what_is_wrong() -> None:
    right = benched({"default": 8.0, "tuned": 2.0, "TensorFlow": 3.0, "LiteRT": 5.0})
    wrong = benched({"default": 8.0, "tuned": 2.0, "LiteRT": 5.0}, error=0.5)
    told = networks.row("dqn", right)
    assert told.startswith("| dqn | 8.000 [7.200, 8.800] | 2.000 [1.800, 2.200] | 3.000 [2.700, 3.300] |")
    assert told.endswith("| 1.50 | 2.50 | none |")
    assert networks.row("other", wrong).endswith("| – | 5.000 [4.500, 5.500] | nan | 2.50 | output 0 |")
    assert {told.count("|"), *(line.count("|") for line in networks.heading().splitlines())} == {9}


def test_the_goal_is_the_time_of_tensorflow_or_of_litert_where_it_is_alone() -> None:
    ours = {"default": 8.0, "tuned": 2.0}
    assert networks.reaches_goal(benched({**ours, "TensorFlow": 2.0, "LiteRT": 1.0}))
    assert not networks.reaches_goal(benched({**ours, "TensorFlow": 1.9, "LiteRT": 5.0}))
    assert networks.reaches_goal(benched({**ours, "LiteRT": 2.0}))
    assert not networks.reaches_goal(benched({**ours, "LiteRT": 2.0}, not_timed={"TensorFlow": "it has ended"}))
    assert not networks.reaches_goal(benched({**ours, "TensorFlow": 5.0}, error=0.5))
    assert not networks.reaches_goal(benched(ours))


def test_a_run_that_is_kept_is_not_tuned_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tuned: list[str] = []

    def tune(model: str, *, options: sdk.RunOptions, run_folder: Path) -> None:
        tuned.append(model)
        run_folder.mkdir(parents=True)

    def bench(model: str, *, run: Path) -> sdk.BenchedNetwork:
        assert run == tmp_path / "mobilenet" and run.is_dir()
        return benched({"default": 8.0, "tuned": 2.0, "TensorFlow": 3.0})

    monkeypatch.setattr(sdk, "tune_network", tune)
    monkeypatch.setattr(sdk, "bench_network", bench)
    for _ in range(2):
        assert networks.main(["mobilenet", "--runs", str(tmp_path)]) == 0
    assert tuned == ["MobileNet"]
