"""The weights inside Halide's own plug-ins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halide_autotune.targets.errors import WeightsError
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import SIGNATURE, format_weights


@pytest.mark.parametrize("network", list(Network))
def test_both_plugins_hold_weights(network: Network) -> None:
    plugin = find_halide_install().plugin_path(network)
    weights = baseline_weights(plugin)
    assert weights.network is network
    assert format_weights(weights) in plugin.read_bytes()
    assert np.ptp(weights.conv1_filter) > 0


def test_a_plugin_without_weights_says_so() -> None:
    with pytest.raises(WeightsError, match="has no weights"):
        baseline_weights(find_halide_install().plugin_path("Mullapudi2016"))


def test_a_signature_in_the_code_is_passed_over(tmp_path: Path) -> None:
    real = format_weights(baseline_weights(find_halide_install().plugin_path("Adams2019")))
    plugin = tmp_path / "plugin.so"
    plugin.write_bytes(b"\x7fELF" + SIGNATURE.to_bytes(4, "little") + real[:100] + real + b"more code")
    assert format_weights(baseline_weights(plugin)) == real


@pytest.mark.parametrize("content", [None, b""])
def test_an_unreadable_plugin_is_a_weights_error(tmp_path: Path, content: bytes | None) -> None:
    plugin = tmp_path / "plugin.so"
    if content is not None:
        plugin.write_bytes(content)
    with pytest.raises(WeightsError, match=r"plugin\.so cannot be read"):
        baseline_weights(plugin)
