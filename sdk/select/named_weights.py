"""Finds weights by the name that a user gives: a registered name, a file, or `baseline`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import WeightsError
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.profile.profile import BASELINE_WEIGHTS
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.lineage import Lineage, read_lineage
from halide_autotune.weights.network import Network
from halide_autotune.weights.registry import WeightsRegistry
from halide_autotune.weights.weights_file import Weights, read_weights, weights_sha256


@dataclass(frozen=True)
class NamedWeights:
    """Weights, and what is known about them.

    Attributes:
        label: as the user called them.
        source: the file they were read from.
        is_shipped: they came with the SDK.
    """

    label: str
    source: Path
    weights: Weights
    lineage: Lineage
    is_shipped: bool = False

    @property
    def sha256(self) -> str:
        """Of the file."""
        return weights_sha256(self.weights)


def open_registry(settings: Settings) -> WeightsRegistry:
    """Return the user's weights and the shipped ones."""
    return WeightsRegistry(settings.config_folder / "weights")


def find_weights(text: str, settings: Settings, network: Network = Network.ADAMS2019) -> NamedWeights:
    """Return the weights that `text` names.

    Args:
        text: `baseline` (those inside the plug-in), a path that ends in .weights (its lineage is beside it), or a
            registered name.
        network: whose baseline.

    Raises:
        WeightsError: there are none, or they are damaged.
    """
    if text == BASELINE_WEIGHTS:
        install = find_halide_install()
        plugin = install.plugin_path(network.value)
        lineage = Lineage(network=network.value, halide_version=install.version, note="inside Halide's plug-in")
        return NamedWeights(text, plugin, baseline_weights(plugin), lineage)
    if text.endswith(".weights"):
        file = Path(text)
        weights = read_weights(file)
        lineage = read_lineage(file, weights_sha256(weights)) or Lineage(network=weights.network.value)
        return NamedWeights(text, file, weights, lineage)
    try:
        entry = open_registry(settings).find(text)
    except WeightsError as error:
        if not Path(text).exists():
            raise
        raise WeightsError(
            f"{text} is neither a registered name nor a file that ends in .weights.", next_step=error.next_step
        ) from error
    return NamedWeights(text, entry.path, read_weights(entry.path), entry.lineage, entry.is_shipped)
